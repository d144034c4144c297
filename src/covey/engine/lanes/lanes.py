"""The dispatchers of one workspace: one for each session in which something is open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from covey.engine.lanes.dispatcher import Dispatcher
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
        """The cancel marks of sessions that are idle: all that is left of their lanes."""

    def recover(self, newest_seq: int, marks: Mapping[str, int]) -> None:
        """Go on after what the store knows. A cancel may have noted a newer seq, whose prompt was refused."""
        self._newest_seq = max([newest_seq, *marks.values()])
        self._marks = dict(marks)

    def next_seq(self) -> int:
        """The seq of a prompt that is accepted now, or refused at once: higher than all before it (R1)."""
        self._newest_seq += 1
        return self._newest_seq

    @property
    def is_busy(self) -> bool:
        """Any run is open: parked ones too, for they are promised an end."""
        return any(dispatcher.lane.open for dispatcher in self._busy.values())

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
        return Dispatcher(session_id, self._parts, lambda: self._quiet(session_id), mark, lambda: self._newest_seq)

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

    def close(self, by: CancelledBy, session_id: str = "") -> list[Awaitable[None]]:
        """Refuse and cancel, everywhere or in one session; gives what to wait for."""
        closing = [d for name, d in self._busy.items() if session_id in ("", name)]
        for dispatcher in closing:
            dispatcher.close(by)
        return [dispatcher.drained() for dispatcher in closing]
