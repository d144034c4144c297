"""Who waits for the end of a run. Ends are reported by the feed, so nobody hears of one that is not written."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from covey.protocol.runs import Run, RunComplete


class RunWaiters:
    """Those of one workspace."""

    def __init__(self, look_up: Callable[[str], Awaitable[Run]]) -> None:
        self._look_up = look_up
        self._waiters: dict[str, asyncio.Future[None]] = {}
        self._wanted: dict[str, asyncio.Future[RunComplete]] = {}

    async def run(self, run_id: str, wait_s: float) -> Run:
        """A run; with `wait_s`, as soon as it has ended, or as it is then."""
        run = await self._look_up(run_id)
        if wait_s > 0 and not run.ended:
            waiter = self._waiters.setdefault(run_id, asyncio.get_running_loop().create_future())
            run = await self._look_up(run_id)  # its end may have been written while we looked
            if run.ended:
                self._wake(run_id)
            else:
                await asyncio.wait({waiter}, timeout=wait_s)
                run = await self._look_up(run_id)
        return run

    def terminal(self, run_id: str) -> asyncio.Future[RunComplete]:
        """The terminal event of a run that is yet to be posted. Whoever asks for it must `forget` it."""
        return self._wanted.setdefault(run_id, asyncio.get_running_loop().create_future())

    def forget(self, run_id: str) -> None:
        self._wanted.pop(run_id, None)

    def ended(self, terminal: RunComplete) -> None:
        """The run has ended: whoever waits for that goes on."""
        self._wake(terminal.run_id)
        wanted = self._wanted.get(terminal.run_id)
        if wanted and not wanted.done():
            wanted.set_result(terminal)

    def _wake(self, run_id: str) -> None:
        waiter = self._waiters.pop(run_id, None)
        if waiter and not waiter.done():
            waiter.set_result(None)

    def wake_all(self) -> None:
        """Nobody will hear of an end here any more: they look, and are told so."""
        for run_id in list(self._waiters):
            self._wake(run_id)
