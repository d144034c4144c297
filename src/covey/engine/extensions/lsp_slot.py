"""One language server of a workspace: its life (`lifecycle/extensions.py`), and the process that belongs to it."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from covey.config.approvals import JudgedEntry
from covey.engine.extensions.kind import ExtensionParts
from covey.lifecycle.extensions import Decision, ExtensionLife
from covey.machine.programs import find_program
from covey.protocol.extensions import ExtensionView, LspEvent, v1_lsp_state
from covey.tools.base import ToolFailed
from covey.tools.lsp.entries import ServerEntry
from covey.tools.lsp.running import RunningServer, StartFailed, start_server
from covey.tools.lsp.server import LanguageServer
from covey.tools.process_use import used_by
from covey.tools.threads import in_thread

log = logging.getLogger(__name__)

REST_AFTER_S = 15 * 60.0
"""Without a question. The next one starts it again."""
RETRY_S = 30.0
"""After a start that failed: a program that is only a shim would fail at every edit."""
LOOK_S = 30.0
"""How often a running server is looked at: whether somebody still needs it, and how large it is."""
MEMORY_MB = 4096.0
"""With all its processes. The largest that was seen on a small project took 486."""


class LspSlot:
    """Started at most once at a time, however many ask for it."""

    def __init__(self, parts: ExtensionParts, entry: ServerEntry) -> None:
        self._parts = parts
        self.entry = entry
        self._life = ExtensionLife()
        self._source: str | None = None
        self.running: RunningServer | None = None
        self._starting: asyncio.Task[RunningServer] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._used_at = self._failed_at = 0.0

    @property
    def is_approved(self) -> bool:
        return self._life.is_approved

    @property
    def is_configured(self) -> bool:
        """A file names it; else it is a well-known one of this machine."""
        return self._source is not None

    @property
    def was_needed(self) -> bool:
        return self._used_at > 0

    @property
    def pid(self) -> int | None:
        return self.running.pid if self.running else None

    def approve(self, judged: JudgedEntry | None = None) -> None:
        """It may be started: well-known programs of this machine (None) are the user's own."""
        self._source = str(judged.entry.source) if judged else None
        if judged is None or judged.is_approved:
            self._life, _ = self._life.approved()
        else:
            self._life, _ = self._life.unapproved("nobody has approved it as it is")
        self._announce()

    def view(self, why: str = "") -> ExtensionView:
        state, reason = self._life.state, why or self._life.why
        return ExtensionView(kind="lsp", name=self.entry.name, state=state, why=reason or None, source=self._source)

    async def wanted(self) -> LanguageServer:
        """The server, started if need be. Raises ToolFailed. Cancelled, only the waiting ends, and not the start."""
        self._used_at = self._loop.time()
        if self.running:
            return self.running.server
        now = self._loop.time()
        if self._life.state == "failed" and now < self._failed_at + RETRY_S:
            raise ToolFailed(self._life.why)
        self._life, decision = self._life.wanted(now)
        if decision is Decision.START:
            self._announce()
            self._starting = asyncio.create_task(self._start())
        if self._starting is None:
            raise ToolFailed(self._life.refusal(now) or f"{self.entry.name} does not run")
        try:
            return (await asyncio.shield(self._starting)).server
        except StartFailed as error:
            raise ToolFailed(str(error)) from None

    async def _start(self) -> RunningServer:
        parts, entry = self._parts, self.entry
        try:
            env = parts.environment(entry.env)
            program = await in_thread(lambda: find_program(entry.command[0], env.get("PATH", ""), parts.root))
            if program is None:
                raise StartFailed(f"{entry.command[0]} is not on this machine")
            tag = parts.tag("lsp", entry.name)
            running = await start_server(parts.processes, entry, program, parts.root, env, tag)
        except Exception as error:  # whatever it is: else it would be starting for ever
            self._failed(str(error))
            if isinstance(error, StartFailed):
                raise
            log.exception("the language server %s could not be started", entry.name)
            raise StartFailed(f"{entry.name} could not be started: {error}") from error
        finally:
            self._starting = None
        self.running = running
        self._life, _ = self._life.started()
        self._announce()
        self._watching = asyncio.create_task(self._watch(running))
        return running

    def _failed(self, why: str) -> None:
        self._failed_at = self._loop.time()
        self._life, _ = self._life.failed(why)
        self._announce()

    async def _watch(self, running: RunningServer) -> None:
        """Until it ends by itself, nobody has needed it for long, or it has grown too large."""
        while not running.ended.done():
            await asyncio.wait({running.ended}, timeout=LOOK_S)
            if running.ended.done():
                break
            if self._loop.time() >= self._used_at + REST_AFTER_S:
                self._life, _ = self._life.idle()
                break
            used = (await in_thread(lambda: used_by([running.pid]))).get(running.pid, (0.0, 0.0))
            if used[0] > MEMORY_MB:
                self._life, _ = self._life.idle()
                break
        if running.ended.done():
            words = running.last_words or running.ended.result()
            self._failed(f"{self.entry.name} has ended: {words}")
        self.running = None
        self._announce()
        await running.close()

    async def rest(self) -> None:
        """End its process, unless somebody waits for what it says. The next question starts it again."""
        running, watching = self.running, self._watching
        if running is None or running.server.is_asked:
            return
        self._life, _ = self._life.idle()
        self.running = self._watching = None
        if watching:
            watching.cancel()
        self._announce()
        await running.close()

    async def close(self) -> None:
        """End whatever there is of it. A start that is under way is given up."""
        self._life, _ = self._life.closed()
        for task in (self._starting, self._watching):
            if task:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, StartFailed):
                    await task
        running, self.running = self.running, None
        if running:
            await running.close()

    def _announce(self) -> None:
        view = self.view()
        state = v1_lsp_state(view.state)
        event = LspEvent(type="state_changed", name=view.name, state=state, error=view.why, extension=view)
        self._parts.announce(event)
