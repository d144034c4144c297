"""The way to a server that is a process of ours: one message on each line, both ways."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import msgspec

from covey.tools.child import ChildBroken, LiveChild
from covey.tools.mcp.connection import OnMessage
from covey.tools.mcp.words import LINE_LIMIT, ConnectionEnded, Message

_ERRORS_SHOWN = 2_000
"""Characters of stderr in the sentence that says why it is gone."""


class StdioTransport:
    """Lines to and from a process, which ends with it."""

    def __init__(self, child: LiveChild) -> None:
        self.child = child
        self.skipped = 0
        """Lines that were no messages: what a program prints at its start, for instance."""
        self._reading: asyncio.Task[None] | None = None

    def start(self, on_message: OnMessage, on_end: Callable[[Exception], None]) -> None:
        self._reading = asyncio.get_running_loop().create_task(self._read(on_message, on_end))

    def send(self, message: Message) -> None:
        try:
            self.child.write(msgspec.json.encode(message) + b"\n")
        except ChildBroken as error:
            raise ConnectionEnded(self._why(str(error))) from None

    def abandon(self, request_id: int, method: str) -> None:
        if method == "initialize":
            return  # which must not be cancelled
        cancelled = {"requestId": request_id, "reason": "nobody waits for it any more"}
        with suppress(ConnectionEnded):
            self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})

    async def close(self) -> None:
        if self._reading:
            self._reading.cancel()
        await self.child.end()

    async def _read(self, on_message: OnMessage, on_end: Callable[[Exception], None]) -> None:
        """Each byte is looked at once, however long a line is."""
        line: list[bytes] = []
        length = 0
        while piece := await self.child.read():
            *whole, rest = piece.split(b"\n")
            for end in whole:
                self._take(b"".join((*line, end)), on_message)
                line, length = [], 0
            line.append(rest)
            length += len(rest)
            if length > LINE_LIMIT:
                on_end(ConnectionEnded(f"it sent a line of more than {LINE_LIMIT // 1024 // 1024} MiB, and was ended"))
                await self.child.end()
                return
            await asyncio.sleep(0)  # a server that never stops writing must not keep everybody else waiting
        with suppress(TimeoutError):  # what it says at its end comes with its end
            async with asyncio.timeout(1):
                await asyncio.shield(self.child.exited)
        await asyncio.sleep(0)
        on_end(ConnectionEnded(self._why("it has ended")))

    def _take(self, line: bytes, on_message: OnMessage) -> None:
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            message = None
        if isinstance(message, dict) and message.get("jsonrpc") == "2.0":
            on_message(message)
        elif line.strip():
            self.skipped += 1

    def _why(self, what: str) -> str:
        said = self.child.errors.strip()[-_ERRORS_SHOWN:]
        return f"{what}. Its last words: {said}" if said else f"{what}, without a word"
