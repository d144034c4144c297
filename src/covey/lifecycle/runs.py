"""Every rule about the life of a run, for one session. Nothing outside this file changes the state of a run.

A `Lane` is a value. Each fact ("accepted", "entered", "cancel asked", "step begins", "turn ended", "closing",
"restarted") gives the next lane and a list of decisions, which the shell carries out in order. The shell may be
late, but it may not decide.

    accept ──► ACCEPTED ──enter──┬─ a cancel covers it ──► RecordCancelled, once no turn is active
                                 ├─ a run is active ─────► QUEUED ──┬─ fold ──► FOLDED, ends with its host
                                 │                                  ├─ cancel, clear, remove ──► End(cancelled)
                                 │                                  ├─ park ──► passed over, until unpark
                                 │                                  └─ the active run ended ──► Start
                                 └─ otherwise ───────────► ACTIVE ──finish──► End, then whatever is next

A run that interrupts is queued first and cancels the active one, as one ruling.

Why each promise holds:
- one end per run: a run is in `Lane.open` exactly once, and each way out of it is one `End` or `RecordCancelled`;
- no run is stranded: unless it is parked, a run is queued only while one is active, and each `finish` and `unpark`
  starts the next one;
- a cancel covers what was accepted and nothing later: two integers are compared, and the mark only rises, so it
  never has to be cleared and cannot be cleared too early;
- order: runs enter in the order of their seq, and `finish` takes the first in the queue: its order is that of the
  seqs until somebody moves a run, which changes the places of queued runs among themselves and nothing else.

What a prompt costs does not depend on how many wait: a run is found by its id, and others by their traits
(`RunTree`). Only what concerns all of them looks at all of them: a cancel, a move.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from covey.lifecycle.decisions import (
    Decision,
    Decisions,
    DuplicateRun,
    End,
    Fold,
    LaneBusy,
    LaneClosing,
    LaneFull,
    LaneHeld,
    NotQueued,
    OpenRun,
    Outcome,
    Park,
    Phase,
    Places,
    Queue,
    QueueChange,
    RecordCancelled,
    Reorder,
    Start,
    StopTurn,
    TooLate,
    Unpark,
)
from covey.lifecycle.run_tree import EMPTY, RunTree, Trait


class Ruling(NamedTuple):
    """The next state, and what the shell must now do, in this order."""

    lane: Lane
    decisions: Decisions


class CancelRuling(NamedTuple):
    """A ruling on a cancel, with the runs it covered and the phase in which it found each."""

    lane: Lane
    decisions: Decisions
    covered: tuple[OpenRun, ...]


@dataclass(frozen=True, slots=True)
class Lane:
    """The open runs of one session in the order of their places, and the cancel mark. Seqs are given out elsewhere."""

    open: RunTree = EMPTY
    mark: int = 0
    closing: bool = False
    held: bool = False
    """Something other than a run changes the conversation. Runs and this exclude each other."""
    resting: bool = False
    """The workspace is about to be handed over: what waits is started by its next owner."""

    @classmethod
    def of(cls, runs: Iterable[OpenRun], mark: int = 0) -> Lane:
        return cls(EMPTY.put(*runs), mark)

    @property
    def runs(self) -> tuple[OpenRun, ...]:
        """All open runs."""
        return tuple(self.open)

    @property
    def active(self) -> OpenRun | None:
        return self.open.first(Trait.ACTIVE)

    @property
    def queued(self) -> tuple[OpenRun, ...]:
        return tuple(self.open.select(Trait.QUEUED))

    @property
    def is_empty(self) -> bool:
        """Nothing goes on in the session, and nothing waits."""
        return not self.open and not self.held

    @property
    def is_busy(self) -> bool:
        """A run is under way, or about to be: not if all that is left is parked."""
        return self.open.first(Trait.NOT_PARKED) is not None

    @property
    def waiting(self) -> tuple[OpenRun, ...]:
        """Those that wait for their turn: what a bound on the queue counts."""
        return tuple(self.open.select(Trait.WAITING))

    def find(self, run_id: str) -> OpenRun | None:
        return self.open.find(run_id)

    # ── accepting ──

    def accept(self, run: OpenRun, limit: int | None = None) -> Lane:
        """A prompt arrived, which a cancel may have overtaken; it enters once it is recorded. At most `limit` wait."""
        assert run.phase is Phase.ACCEPTED and not run.entered, f"accept of {run}"
        if self.closing:
            raise LaneClosing(run.run_id)
        if self.find(run.run_id):
            raise DuplicateRun(run.run_id)
        if self.held:
            raise LaneHeld(run.run_id)
        if limit is not None and self.open.waiting >= limit:
            raise LaneFull(run.run_id)
        before = max(self.mark, self.open.newest_seq)
        assert run.seq > before, f"seq {run.seq} given out after {before}"
        return self._with(replace(run, place=run.seq))

    def retract(self, run_id: str) -> Lane:
        """The run could not be recorded, so nobody was promised anything: it was never here."""
        assert not self._open(run_id).entered, f"retract of {run_id}"
        return self._without(run_id)

    def enter(self, run_id: str) -> CancelRuling:
        """The run is recorded and reaches the lane (R3). Runs enter in the order in which they were accepted.

        It covers the active run if it interrupts it.
        """
        run = self._open(run_id)
        assert not run.entered, f"enter of {run}"
        first = next(self.open.select(Trait.NOT_ENTERED)).run_id  # they have the places of their seqs
        assert first == run_id, f"{run_id} entered before {first}"
        lane = self._with(replace(run, entered=True))
        if run.cancelled:
            recorded = lane._record_cancelled() if self.active is None else Ruling(lane, ())
            return CancelRuling(*recorded, ())
        if self.active is None and lane._may_begin(run):
            return CancelRuling(*lane._next(), ())
        lane, queued = lane._queue(run_id)
        if not run.interrupts or self.active is None:
            return CancelRuling(lane, queued, ())
        lane, stopped, covered = lane.cancel_run(self.active.run_id)
        return CancelRuling(lane, queued + stopped, covered)

    # ── the queue ──

    def change_queue(self, run_id: str, change: QueueChange) -> Ruling:
        """All of a change, or none of it. It is unparked last: then it may start, with all that was changed."""
        self.check_editable(run_id)
        lane, moved = self.move(run_id, before=change.before, after=change.after) if change.is_moved else (self, ())
        parked: Decisions = ()
        if change.parked_by is not None:
            lane, parked = lane.park(run_id, change.parked_by) if change.parked_by else lane.unpark(run_id)
        return Ruling(lane, moved + parked)

    def move(self, run_id: str, *, before: str = "", after: str = "") -> Ruling:
        """Put a queued run before or after another one, or first. Marks still go by seq (R7)."""
        run = self._queued_run(run_id)
        others = [other for other in self.queued if other.run_id != run_id]
        beside = before or after
        if beside not in ("", *(other.run_id for other in others)):
            raise NotQueued(beside)
        at = next((index for index, other in enumerate(others) if other.run_id == beside), 0)
        at += bool(after)
        lane, places = self._reordered([*others[:at], run, *others[at:]])
        return Ruling(lane, (Reorder(places),) if places else ())

    def park(self, run_id: str, by: str) -> Ruling:
        """Somebody edits a queued run: pass it over until it is unparked (R7)."""
        run = self._queued_run(run_id)
        return Ruling(self, ()) if run.parked else Ruling(self._with(replace(run, parked=True)), (Park(run_id, by),))

    def unpark(self, run_id: str) -> Ruling:
        """The run waits like any other again; in an idle lane it starts."""
        run = self._queued_run(run_id)
        if not run.parked:
            return Ruling(self, ())
        lane = self._with(replace(run, parked=False))
        started = lane._next() if self.active is None else Ruling(lane, ())
        return Ruling(started.lane, (Unpark(run_id), *started.decisions))

    # ── the turn ──

    def begin_step(self, run_id: str) -> Ruling:
        """A step of the active turn begins: fold what may be folded (R7). Nothing joins a turn that is stopping."""
        host = self._open(run_id)
        assert host.phase is Phase.ACTIVE, f"step of {host}"
        if host.cancelled or not host.hosts:
            return Ruling(self, ())
        joining = tuple(self.open.select(Trait.JOINS))
        lane = self._with(*(replace(run, phase=Phase.FOLDED, host=run_id) for run in joining))
        return Ruling(lane, tuple(Fold(run.run_id, run_id) for run in joining))

    def finish(self, run_id: str, outcome: Outcome) -> Ruling:
        """The turn ended by itself, by an error or because it was stopped. A cancel that covers it wins (R5)."""
        run = self._open(run_id)
        assert run.phase is Phase.ACTIVE, f"finish of {run}"
        lane, decisions = self._end(run, Outcome.CANCELLED if run.cancelled else outcome)
        lane, recorded = lane._record_cancelled()
        lane, started = lane._next()
        return Ruling(lane, decisions + recorded + started)

    # ── cancelling ──

    def cancel(self, newest: int) -> CancelRuling:
        """Cancel the session's open runs up to `newest`, the newest seq that was given out until now (R4).

        What was folded into a turn can only end with it. Its host may be younger, if somebody has moved one of them.
        """
        lane = replace(self, mark=max(self.mark, newest))
        covered = {run.run_id for run in self.open if run.seq <= newest}
        hosts = {"", *covered}
        return lane._cancel(run for run in self.open if run.run_id in covered and run.host in hosts)

    def cancel_run(self, run_id: str) -> CancelRuling:
        """Cancel one run, not its neighbours. What was folded into a turn can only end with it."""
        run = self.find(run_id)
        return self._cancel([run] if run and run.phase is not Phase.FOLDED else ())

    def clear_queue(self) -> CancelRuling:
        """Drop what waits in the queue; the active run goes on."""
        return self._cancel(self.queued)

    def remove(self, run_id: str) -> CancelRuling:
        """Drop one queued run."""
        self.check_editable(run_id)
        return self.cancel_run(run_id)

    def check_editable(self, run_id: str) -> None:
        """Raise TooLate unless the run still waits in the queue, so that its text may change."""
        run = self.find(run_id)
        if run is None or run.cancelled or run.phase not in (Phase.ACCEPTED, Phase.QUEUED):
            raise TooLate(run_id)

    def close(self, newest: int) -> CancelRuling:
        """The workspace is closing: refuse new runs and cancel every open one (R13)."""
        return replace(self, closing=True).cancel(newest)

    # ── what is not a run ──

    def hold(self) -> Lane:
        """Something is about to change the conversation: no run may be open, and none is accepted until `release`."""
        if self.closing:
            raise LaneClosing
        if self.held:
            raise LaneHeld
        if self.open:
            raise LaneBusy
        return replace(self, held=True)

    def release(self) -> Lane:
        assert self.held, "release of a lane that nobody holds"
        return replace(self, held=False)

    # ── handing over ──

    def rest(self) -> Lane:
        """Begin no more turns but those that one under way waits for (N10). Prompts are accepted as ever."""
        return replace(self, resting=True)

    def _may_begin(self, run: OpenRun) -> bool:
        return run.delegate or not self.resting

    # ── restarting ──

    def recover(self) -> CancelRuling:
        """The server was killed, and this lane is what its records say (R15). May itself be interrupted and repeated.

        The run that was active cannot go on: its tools have had effects. It ends as interrupted, or as cancelled if
        that was asked. The crash may also have parted a cancel from the ends of the queued runs it covers, or the end
        of a turn from those of the runs folded into it: these ends are made up for. Runs that were queued wait again,
        in their order, and none is parked any more; accepted ones enter again, by `enter`, as on their first day. Not
        so those that work for another run: nobody waits for them any more, so this cancels them. And one that was to
        interrupt the active run only has to be the next: what it interrupted has ended.
        """
        abandoned = tuple(run for run in self.waiting if run.delegate and not run.cancelled)
        lane = self._with(*(replace(run, cancelled=True) for run in abandoned))
        orphans = [run for run in lane.open.select(Trait.FOLDED) if lane.find(run.host) is None]
        active = lane.open.select(Trait.ACTIVE)
        dropped = [run for run in lane.queued if run.cancelled]
        decisions: list[Decision] = []
        for run in (*orphans, *active, *dropped):  # nothing may come between a host's end and those of its folded runs
            lane, ended = lane._end(run, Outcome.CANCELLED if run.cancelled else Outcome.INTERRUPTED)
            decisions += ended
        lane, unparked = lane._unpark_all()
        lane, queued = lane._queue_interrupting()
        lane, started = lane._next()
        return CancelRuling(lane, (*decisions, *unparked, *queued, *started), abandoned)

    # ── inside ──

    def _cancel(self, runs: Iterable[OpenRun]) -> CancelRuling:
        covered = tuple(runs)
        marked, dropped, decisions = list[OpenRun](), list[str](), list[Decision]()
        for run in covered:
            if run.phase is Phase.QUEUED:
                dropped.append(run.run_id)
                decisions.append(End(run.run_id, Outcome.CANCELLED, found=run.phase))
            else:
                marked.append(replace(run, cancelled=True))
                if run.phase is Phase.ACTIVE:
                    decisions.append(StopTurn(run.run_id))
        return CancelRuling(self._with(*marked)._without(*dropped), tuple(decisions), covered)

    def _end(self, run: OpenRun, outcome: Outcome) -> Ruling:
        """End a run and, right after it, those that were folded into its turn (R8)."""
        folded = self.open.select(Trait.FOLDED) if run.phase is Phase.ACTIVE else ()
        ended = (run, *(other for other in folded if other.host == run.run_id))
        ends = (End(one.run_id, outcome, found=one.phase, folded_into=one.host) for one in ended)
        return Ruling(self._without(*(one.run_id for one in ended)), tuple(ends))

    def _record_cancelled(self) -> Ruling:
        """Record the runs cancelled on entry. Called when no turn is active: turns never overlap (R9)."""
        assert self.active is None
        cancelled = tuple(run.run_id for run in self.open.select(Trait.CANCELLED))
        return Ruling(self._without(*cancelled), tuple(map(RecordCancelled, cancelled)))

    def _queue(self, run_id: str) -> Ruling:
        """Put a run that has entered into the queue: last, or first if it interrupts."""
        run = self._open(run_id)
        lane = self._with(replace(run, entered=True, phase=Phase.QUEUED))
        if not run.interrupts:
            return Ruling(lane, (Queue(run_id),))
        lane, places = lane._reordered([lane._open(run_id), *self.queued])
        return Ruling(lane, (Queue(run_id, places),))

    def _reordered(self, queue: Sequence[OpenRun]) -> tuple[Lane, Places]:
        """Give the queued runs their own places in another order; and the places that have changed."""
        places = sorted(run.place for run in queue)
        moved = [replace(run, place=places[at]) for at, run in enumerate(queue) if run.place != places[at]]
        return self._with(*moved), tuple((run.run_id, run.place) for run in moved)

    def _queued_run(self, run_id: str) -> OpenRun:
        run = self.find(run_id)
        if run is None or run.phase is not Phase.QUEUED:
            raise TooLate(run_id)
        return run

    def _unpark_all(self) -> Ruling:
        parked = tuple(self.open.select(Trait.PARKED))
        lane = self._with(*(replace(run, parked=False) for run in parked))
        return Ruling(lane, tuple(Unpark(run.run_id) for run in parked))

    def _queue_interrupting(self) -> Ruling:
        """Queue the runs that were to interrupt one which a crash has ended, in the order in which they would enter."""
        lane = self
        decisions: Decisions = ()
        for run in self.open.select(Trait.NOT_ENTERED):
            if run.interrupts and not run.cancelled:
                lane, queued = lane._queue(run.run_id)
                decisions += queued
        return Ruling(lane, decisions)

    def _next(self) -> Ruling:
        """Start the first run that has entered and is not parked, if any (R10)."""
        assert self.active is None
        run = self.open.first(Trait.NEXT)
        if run is None or not self._may_begin(run):
            return Ruling(self, ())
        return Ruling(self._with(replace(run, phase=Phase.ACTIVE)), (Start(run.run_id),))

    def _open(self, run_id: str) -> OpenRun:
        run = self.find(run_id)
        assert run is not None, f"{run_id} is not open"
        return run

    def _with(self, *changed: OpenRun) -> Lane:
        return replace(self, open=self.open.put(*changed))

    def _without(self, *run_ids: str) -> Lane:
        return replace(self, open=self.open.drop(*run_ids))
