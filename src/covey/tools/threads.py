"""Blocking work off the event loop, without ever leaving it behind: a cancel waits until the thread is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T], executor: Executor | None = None) -> T:
    """Run `work` in a thread. The work must be bounded.

    A thread cannot be cancelled. If whoever waits is cancelled (once, or again), this waits for the work to end all
    the same and only then lets the cancel go on: nothing touches the machine after a tool call has returned.
    """
    return await to_the_end(asyncio.get_running_loop().run_in_executor(executor, work))


async def to_the_end(work: Awaitable[T]) -> T:
    """The same for any bounded work: a cancel of whoever waits is let go on once it is done."""
    future = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return future.result()
    future.exception()  # looked at, so that asyncio does not complain about it later
    raise cancelled
