"""Ways between processes that can be cut: a TCP proxy on loopback for each, all in the loop of the test.

A way may be cut by `reset` (connections break, new ones are refused), by `silence` (nothing arrives any more, and
nobody is told), or by `swallow` (what is asked arrives, and no answer comes back: a commit is made, and in doubt).
"""

from __future__ import annotations

import asyncio
from typing import Literal, cast

Cut = Literal["reset", "silence", "swallow"]


class _Side(asyncio.Protocol):
    """One end of a connection through a link; `other` is the opposite one."""

    def __init__(self, link: Link, *, is_answer: bool) -> None:
        self._link = link
        self._is_answer = is_answer
        self.other: _Side | None = None
        self.transport: asyncio.Transport | None = None
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._link.sides.add(self)
        if self._link.how == "silence":
            self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        if self._link.how == "swallow" and self._is_answer:
            self._link.swallowed.add(self)
        elif self.other and self.other.transport:
            self.other.transport.write(data)
        else:
            self._early.append(data)

    def joined(self, other: _Side) -> None:
        self.other, other.other = other, self
        early, self._early = self._early, []
        for data in early:
            assert other.transport
            other.transport.write(data)

    def eof_received(self) -> bool:
        if self.other and self.other.transport and self.other.transport.can_write_eof():
            self.other.transport.write_eof()
        return True

    def pause_writing(self) -> None:
        if self.other and self.other.transport:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other and self.other.transport and self._link.how != "silence":
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._link.sides.discard(self)
        self._link.swallowed.discard(self)
        if self.other and self.other.transport:
            self.other.transport.close()

    def abort(self) -> None:
        if self.transport:
            self.transport.abort()


class Link:
    """A way to one port. Everything passes until it is cut, and again when it is mended."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.how: Cut | None = None
        self.sides: set[_Side] = set()
        self.swallowed: set[_Side] = set()
        self._server: asyncio.Server | None = None
        self._joining: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accepted, "127.0.0.1", self.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    def _accepted(self) -> asyncio.Protocol:
        side = _Side(self, is_answer=False)
        task = asyncio.get_running_loop().create_task(self._join(side))
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)
        return side

    async def _join(self, side: _Side) -> None:
        if self._is_refusing():
            side.abort()
            return
        answers = _Side(self, is_answer=True)
        try:
            await asyncio.get_running_loop().create_connection(lambda: answers, "127.0.0.1", self.target)
        except OSError:
            side.abort()
            return
        if side.transport is None or side.transport.is_closing() or self._is_refusing():
            side.abort()
            answers.abort()
        else:
            side.joined(answers)

    def _is_refusing(self) -> bool:
        return self.how == "reset"

    def cut(self, how: Cut) -> None:
        self.how = how
        for side in list(self.sides):
            if how == "reset":
                side.abort()
            elif how == "silence" and side.transport:
                side.transport.pause_reading()

    def mend(self) -> None:
        how, self.how = self.how, None
        for side in list(self.swallowed):  # what it waits for will never come
            side.abort()
        if how == "silence":
            for side in list(self.sides):
                if side.transport and not side.transport.is_closing():
                    side.transport.resume_reading()

    async def close(self) -> None:
        for side in list(self.sides):
            side.abort()
        if self._server:
            self._server.close()
        await asyncio.gather(*self._joining, return_exceptions=True)
