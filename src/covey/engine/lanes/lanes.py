"""The dispatchers of one workspace: one for each session in which something is open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from covey.engine.lanes.dispatcher import Dispatcher
from covey.engine.lanes.open_runs import is_shown_waiting
from covey.engine.turns.parts import TurnParts
from covey.engine.turns.turn import Turn
from covey.protocol.runs import CancelledBy, Run


class Lanes:
    """Knows which sessions are busy, and which of them has a run. Gives out the seqs of the workspace."""

    def __init__(self, parts: TurnParts, on_quiet: Callable[[], None]) -> None:
        self._parts = parts
        self._on_quiet = on_quiet
        self._newest_seq = 0
        self._busy: dict[str, Dispatcher] = {}
        self._marks: dict[str, int] = {}
        """The cancel marks of known sessions that are idle: all that is left of their lanes."""
        self._resting = False

    def recover(self, newest_seq: int, newest_mark: int) -> None:
        """Go on after what the store knows. A cancel may have noted a newer seq, whose prompt was refused."""
        self._newest_seq = max(newest_seq, newest_mark)

    def know(self, session_id: str, mark: int) -> None:
        """The session was read from the store, with its mark. If its lane is known already, that mark is as new."""
        self._marks.setdefault(session_id, mark)

    def next_seq(self) -> int:
        """The seq of a prompt that is accepted now, or refused at once: higher than all before it (R1)."""
        self._newest_seq += 1
        return self._newest_seq

    @property
    def is_busy(self) -> bool:
        """Any run is open: parked ones too, for they are promised an end."""
        return any(dispatcher.lane.open for dispatcher in self._busy.values())

    @property
    def turns_under_way(self) -> int:
        return sum(dispatcher.lane.active is not None for dispatcher in self._busy.values())

    def is_busy_in(self, session_id: str) -> bool:
        return session_id in self._busy and self._busy[session_id].is_busy

    def look(self, session_id: str) -> Dispatcher:
        """The lane of a session, to ask: of an idle one it is empty, and not kept."""
        return self._busy.get(session_id) or self._new(session_id)

    def open(self, session_id: str) -> Dispatcher:
        """The lane of a session, for a run to enter or a cancel to be noted at once: kept until that is written."""
        dispatcher = self._busy[session_id] = self.look(session_id)
        return dispatcher

    def _new(self, session_id: str) -> Dispatcher:
        mark = self._marks.get(session_id, 0)
        made = Dispatcher(session_id, self._parts, lambda: self._quiet(session_id), mark, lambda: self._newest_seq)
        if self._resting:
            made.rest()
        return made

    def _quiet(self, session_id: str) -> None:
        dispatcher = self._busy.get(session_id)
        if dispatcher and dispatcher.is_idle:
            self._marks[session_id] = self._busy.pop(session_id).lane.mark
            self._on_quiet()

    def hold(self, session_id: str) -> Dispatcher:
        """Keep runs out of a session until its lane is released. Raises Conflict if that is busy."""
        dispatcher = self.look(session_id)
        dispatcher.hold()
        self._busy[session_id] = dispatcher
        return dispatcher

    def forget(self, session_id: str) -> None:
        """The session is gone."""
        self._marks.pop(session_id, None)

    def of_run(self, run_id: str) -> Dispatcher | None:
        """Where a run is open."""
        return next((dispatcher for dispatcher in self._busy.values() if dispatcher.lane.find(run_id)), None)

    def turn_of(self, run_id: str) -> Turn | None:
        """The turn of an active run."""
        dispatcher = self.of_run(run_id)
        return dispatcher.turn_of(run_id) if dispatcher else None

    def open_runs(self) -> list[Run]:
        return [run for dispatcher in self._busy.values() for run in dispatcher.open_runs()]

    def waiting_runs(self) -> list[Run]:
        """Active runs that are known to wait on something: no event of the log says so."""
        return [run for run in self.open_runs() if is_shown_waiting(run)]

    def close(self, by: CancelledBy, session_id: str = "") -> list[Awaitable[None]]:
        """Refuse and cancel, everywhere or in one session; gives what to wait for."""
        closing = [d for name, d in self._busy.items() if session_id in ("", name)]
        for dispatcher in closing:
            dispatcher.close(by)
        return [dispatcher.drained() for dispatcher in closing]

    # ── other nodes ──

    async def come_to_rest(self, drain_s: float) -> None:
        """Begin no more turns, and wait until none is under way (N10); after `drain_s` they are cancelled."""
        self._resting = True
        for dispatcher in self._busy.values():
            dispatcher.rest()
        try:
            await asyncio.wait_for(self._at_rest(), drain_s)
        except TimeoutError:
            for dispatcher in list(self._busy.values()):
                dispatcher.stop()
            await self._at_rest()

    async def _at_rest(self) -> None:
        while busy := [dispatcher for dispatcher in self._busy.values() if dispatcher.lane.active]:
            await asyncio.gather(*(dispatcher.drained() for dispatcher in busy))

    def abandon(self) -> set[asyncio.Task[None]]:
        """End all turns without last words; gives what to wait for."""
        return {driver for dispatcher in self._busy.values() for driver in dispatcher.abandon()}
