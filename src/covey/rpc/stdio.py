"""stdin and stdout of this process as lines, for a program that started us to talk to it.

Each has a thread, so that any kind of file will do and a reader that has stopped reading blocks nobody else. The
threads are daemons: whatever they wait for, the process can end.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from covey.rpc.lines import LineSplitter, TooLong

CHUNK_BYTES = 256 * 1024
UNWRITTEN_BYTES = 1024 * 1024
"""Above this, whoever writes more waits until it was taken."""
READ_AHEAD = 8
"""Chunks that were read and not taken yet."""


class StdioLines:
    """Takes stdout for itself: whatever else is printed by this process goes to stderr from then on."""

    def __init__(self, limit: int) -> None:
        self._splitter = LineSplitter(limit)
        self._loop = asyncio.get_running_loop()
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue(READ_AHEAD)
        self._to_write: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._unwritten = 0
        self._was_written = asyncio.Event()
        self._is_broken = False
        self._stdout = os.dup(1)
        os.set_inheritable(self._stdout, False)
        os.dup2(2, 1)

    def __enter__(self) -> Self:
        for work in (self._read_all, self._write_all):
            threading.Thread(target=work, daemon=True, name=f"covey-{work.__name__}").start()
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to wait for: `flush` has been called by who cares."""

    async def read(self) -> list[bytes | TooLong]:
        """The next lines, at least one. None at all: stdin has ended, or nobody reads stdout any more."""
        lines: list[bytes | TooLong] = []
        while not lines and not self._is_broken:
            chunk = await self._chunks.get()
            if not chunk:
                break
            lines = self._splitter.feed(chunk)
        return lines

    def write(self, line: bytes) -> None:
        if not self._is_broken:
            self._unwritten += len(line)
            self._to_write.put(line)

    async def drain(self, down_to: int = UNWRITTEN_BYTES) -> None:
        """Wait until the reader has taken enough of what was written, or has gone."""
        while self._unwritten > down_to and not self._is_broken:
            self._was_written.clear()
            await self._was_written.wait()

    # ── in the threads ──

    def _read_all(self) -> None:
        chunk = b"-"
        while chunk:
            try:
                chunk = os.read(0, CHUNK_BYTES)
            except OSError:
                chunk = b""
            with suppress(RuntimeError):  # the loop has ended
                asyncio.run_coroutine_threadsafe(self._chunks.put(chunk), self._loop).result()

    def _write_all(self) -> None:
        while True:
            line = self._to_write.get()
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(self._stdout, rest) :]
            except OSError:
                self._in_loop(self._break)
                return
            self._in_loop(self._written, len(line))

    def _in_loop(self, call: Callable[..., None], *args: int) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(call, *args)

    # ── in the loop ──

    def _written(self, length: int) -> None:
        self._unwritten -= length
        self._was_written.set()

    def _break(self) -> None:
        """Nobody reads stdout any more: that is the end of stdin too."""
        self._is_broken = True
        self._was_written.set()
        if self._chunks.full():
            self._chunks.get_nowait()
        self._chunks.put_nowait(b"")
