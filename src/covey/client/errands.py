"""Tasks by name: of each name at most one is under way, and all of them end together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any


class Errands:
    """What a shell is waiting for. `on_failure` gets what a task raises: none of them is expected to."""

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        """Those that were cancelled and have not ended yet."""

    def __contains__(self, name: Hashable) -> bool:
        return (task := self._tasks.get(name)) is not None and not task.done()

    def __len__(self) -> int:
        return len(self._tasks) + len(self._leaving)

    def begin(self, name: Hashable, work: Coroutine[Any, Any, None]) -> None:
        """In place of the one with this name, if there is one."""
        self.cancel(name)
        task = self._tasks[name] = asyncio.create_task(work)
        task.add_done_callback(lambda done: self._ended(name, done))

    def cancel(self, name: Hashable) -> None:
        if task := self._tasks.pop(name, None):
            self._leaving.add(task)
            task.cancel()

    def cancel_all(self) -> None:
        for name in list(self._tasks):
            self.cancel(name)

    async def close(self) -> None:
        """Cancel all of them, and wait until they have ended."""
        self.cancel_all()
        others = self._leaving - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)

    def _ended(self, name: Hashable, task: asyncio.Task[None]) -> None:
        self._leaving.discard(task)
        if self._tasks.get(name) is task:
            del self._tasks[name]
        if not task.cancelled() and (error := task.exception()):
            self._on_failure(error)
