"""A language server as a process: started, introduced, and ended with all that it started."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from covey.tools.child import ChildBroken, LiveChild
from covey.tools.lsp.connection import RequestRefused, ServerGone
from covey.tools.lsp.entries import ServerEntry
from covey.tools.lsp.server import LanguageServer
from covey.tools.processes import LiveProcesses

LAST_LINES = 3
"""Of what it wrote to stderr: why it ended is mostly there."""


class StartFailed(Exception):
    """It could not be started; the text says why, for people and models."""


class RunningServer:
    """Made by `start_server`. `ended` is done when it ends by itself; whoever made it calls `close`."""

    def __init__(self, child: LiveChild, server: LanguageServer) -> None:
        self._child = child
        self.server = server
        self.ended = asyncio.create_task(server.serve())

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def last_words(self) -> str:
        lines = [line.strip() for line in self._child.errors.splitlines() if line.strip()]
        return " ".join(lines[-LAST_LINES:])[-500:]

    async def close(self, *, politely: bool = True) -> None:
        """Ask it to end, for a moment; then it is ended."""
        try:
            if politely and not self.ended.done():
                await self.server.goodbye()
        finally:
            await self._child.end()
            self.ended.cancel()
            await asyncio.wait({self.ended})


async def start_server(
    processes: LiveProcesses, entry: ServerEntry, program: str, root: Path, env: Mapping[str, str], tag: str
) -> RunningServer:
    """Raises StartFailed. Cancelled, it leaves nothing behind."""
    try:
        child = processes.open([program, *entry.command[1:]], cwd=root, env=env, tag=tag)
    except (OSError, ValueError) as error:
        raise StartFailed(f"{entry.command[0]} cannot be started: {error}") from None
    running = RunningServer(child, LanguageServer(child, root, options=entry.options, settings=entry.settings))
    try:
        await running.server.start()
    except (ServerGone, RequestRefused, TimeoutError, ChildBroken) as error:
        await running.close(politely=False)
        why = running.last_words or str(error) or "it did not answer in time"
        raise StartFailed(f"{entry.command[0]} does not work: {why}") from None
    except BaseException:
        await running.close(politely=False)
        raise
    return running
