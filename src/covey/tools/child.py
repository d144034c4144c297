"""A process that lives on and is talked to: an MCP server, a language server, a hook. Its three pipes, and its end.

Nothing here waits for ever for it: what it does not read is bounded, what it writes is taken in pieces as somebody
asks for them, of its errors the last lines are kept. `end` leaves no process of it, whatever it did meanwhile.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress

from covey.tools.owned_process import OwnedProcess, Started
from covey.tools.process_table import Process
from covey.tools.threads import in_thread

UNREAD_LIMIT = 16 * 1024 * 1024
"""Bytes that it has not read yet: two of the longest messages. One that reads nothing is broken."""
ERRORS_KEPT = 8 * 1024
"""Bytes of what it last wrote to stderr: enough for a traceback."""
FAREWELL_S = 0.5
"""After the end of its input: time to leave by itself, before it is told to."""
_PIECE = 65536
"""What a pipe holds on Linux."""

Start = Callable[[int, int, int], Started]
"""Starts a process with these descriptors for input, output and errors."""


class ChildBroken(Exception):
    """It can no longer be talked to: it has ended, or does not read. The text says which."""


class LiveChild:
    """One process with pipes. Made by `Processes.open`; whoever did so calls `end`."""

    def __init__(self, start: Start, tag: str, endings: Executor) -> None:
        self._loop = asyncio.get_running_loop()
        self._endings = endings
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._wants_write = False
        self._errors = bytearray()
        self._ending: asyncio.Task[None] | None = None
        self._reader: asyncio.Future[None] | None = None
        self._is_closed = False
        self._is_finishing = False
        (given, self._input), (self._output, output), (self._messages, errors) = (os.pipe() for _ in range(3))
        for pipe in (self._input, self._output, self._messages):
            os.set_blocking(pipe, False)
        try:
            self._owned = OwnedProcess(start(given, output, errors), tag)
        except BaseException:
            for pipe in (self._input, self._output, self._messages):
                os.close(pipe)
            raise
        finally:
            for pipe in (given, output, errors):
                os.close(pipe)
        self._owned.watch()
        self._loop.add_reader(self._messages, self._read_errors)

    @property
    def pid(self) -> int:
        return self._owned.process.pid

    @property
    def exited(self) -> asyncio.Future[None]:
        """Done when its first process has exited. Others of it may go on."""
        return self._owned.exited

    @property
    def exit_code(self) -> int | None:
        """As the system gives it; None before `end`, as it is reaped there."""
        return self._owned.process.returncode

    @property
    def errors(self) -> str:
        """The end of what it wrote to stderr."""
        return bytes(self._errors[-ERRORS_KEPT:]).decode("utf-8", "replace")

    def members(self) -> set[Process]:
        """Its processes that are alive. Reads the process table: for a thread."""
        return self._owned.members()

    # ── its input ──

    def write(self, data: bytes) -> None:
        """Give it all of this, in this order, as fast as it reads. Raises ChildBroken."""
        if self._is_closed:
            raise ChildBroken("it has ended")
        if self._unsent_bytes + len(data) > UNREAD_LIMIT:
            raise ChildBroken(f"it does not read what it is sent: {UNREAD_LIMIT} bytes wait")
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        if not self._wants_write:
            self._flush()

    def finish_input(self) -> None:
        """Nothing more comes: its input ends once it has read what it was given."""
        self._is_finishing = True
        if not self._unsent:
            self.close_input()

    def close_input(self) -> None:
        """Nothing more comes, which most take as the sign to leave. What it has not read yet is dropped."""
        if self._is_closed:
            return
        self._is_closed = True
        self._stop_writing()
        os.close(self._input)

    def _flush(self) -> None:
        try:
            while self._unsent:
                sent = os.write(self._input, self._unsent[0])
                self._unsent_bytes -= sent
                if sent == len(self._unsent[0]):
                    self._unsent.popleft()
                else:
                    self._unsent[0] = self._unsent[0][sent:]
        except BlockingIOError:
            if not self._wants_write:
                self._wants_write = True
                self._loop.add_writer(self._input, self._flush)
            return
        except OSError:  # nobody reads it any more: whoever reads its output learns that it has ended
            self._unsent.clear()
            self._unsent_bytes = 0
        if self._wants_write:
            self._loop.remove_writer(self._input)
            self._wants_write = False
        if self._is_finishing:
            self.close_input()

    def _stop_writing(self) -> None:
        if self._wants_write:
            self._loop.remove_writer(self._input)
            self._wants_write = False
        self._unsent.clear()

    # ── its output ──

    async def read(self) -> bytes:
        """The next piece of its output, at most 64 KiB; b"" once there is no more. One may read at a time."""
        while True:
            if self._ending:
                return b""
            try:
                return os.read(self._output, _PIECE)
            except BlockingIOError:
                await self._readable()

    async def _readable(self) -> None:
        self._reader = self._loop.create_future()
        self._loop.add_reader(self._output, self._wake)
        try:
            await self._reader
        finally:
            if not self._ending:  # else the descriptor may be another one's by now
                self._loop.remove_reader(self._output)

    def _wake(self) -> None:
        if self._reader and not self._reader.done():
            self._reader.set_result(None)

    def _read_errors(self) -> None:
        try:
            data = os.read(self._messages, _PIECE)
        except BlockingIOError:
            return
        self._errors += data
        if len(self._errors) > 4 * ERRORS_KEPT:  # not with each piece, so that each byte is moved only once
            del self._errors[:-ERRORS_KEPT]
        if not data:
            self._loop.remove_reader(self._messages)

    # ── its end ──

    async def end(self, farewell_s: float = FAREWELL_S) -> None:
        """End it with all its processes: by the end of its input, then by signals. May be called again.

        If whoever waits is cancelled, it is ended all the same.
        """
        if self._ending is None:
            self._ending = self._loop.create_task(self._end(farewell_s))
        await asyncio.shield(self._ending)

    async def _end(self, farewell_s: float) -> None:
        self.close_input()
        self._loop.remove_reader(self._output)
        self._wake()
        try:
            if farewell_s:
                await self._owned.exits_within(farewell_s)
        finally:
            await in_thread(self._owned.end, self._endings)
            with suppress(OSError):
                self._read_errors()
            self._loop.remove_reader(self._messages)
            os.close(self._output)
            os.close(self._messages)
            self._owned.stop_watching()
