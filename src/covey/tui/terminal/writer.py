"""Bytes to a terminal, without ever waiting for it in the event loop."""

from __future__ import annotations

import asyncio
import os
import select
import time
from collections.abc import Callable

MOST_WAITING = 1 << 20
"""Of what waits besides frames, such as a notification: a terminal that takes nothing gets no more than this later."""


class TtyWriter:
    """A descriptor that does not block. While it takes nothing, whoever paints looks at `is_busy` and paints later."""

    def __init__(self, fd: int, on_free: Callable[[], None], on_lost: Callable[[], None]) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._on_free = on_free
        self._on_lost = on_lost
        self._waiting = b""
        self._is_cut = False
        """The last thing was written only in part."""

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    def write(self, data: bytes) -> None:
        if self._waiting:
            if len(self._waiting) + len(data) <= MOST_WAITING:
                self._waiting += data
            return
        self._waiting = data
        self._go_on()
        if self._waiting:
            self._loop.add_writer(self._fd, self._go_on)

    def _go_on(self) -> None:
        try:
            written = os.write(self._fd, self._waiting) if self._waiting else 0
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # nobody is there any more
            self._waiting = b""
            self._loop.remove_writer(self._fd)
            self._on_lost()
            return
        self._is_cut = written < len(self._waiting)
        self._waiting = self._waiting[written:]
        if not self._waiting and self._loop.remove_writer(self._fd):
            self._on_free()

    def finish(self, last: bytes, broken: bytes, within_s: float) -> None:
        """Write this as the last thing, now, waiting a bounded time. What still waits is left out after `broken`."""
        self._loop.remove_writer(self._fd)
        data = broken + last if self._is_cut else self._waiting + last
        self._waiting, self._is_cut = b"", False
        deadline = time.monotonic() + within_s
        try:
            while data and (left_s := deadline - time.monotonic()) > 0:
                if select.select([], [self._fd], [], left_s)[1]:
                    data = data[os.write(self._fd, data) :]
        except OSError:
            return
