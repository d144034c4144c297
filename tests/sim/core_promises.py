"""What the records of one session may say, entry by entry: the promises about runs, stated without the rules.

The journal is handed entries; `written` judges each by those before it. It knows nothing of `Lane`, so a defect there
cannot hide here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from covey.lifecycle.decisions import (
    End,
    Fold,
    OpenRun,
    Outcome,
    Park,
    Phase,
    Places,
    Queue,
    RecordCancelled,
    Reorder,
    Start,
    Unpark,
)


class Violation(Exception):
    """A promise was broken; the text says which."""


def check(holds: bool, promise: str) -> None:
    if not holds:
        raise Violation(promise)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The prompt is recorded: once this is on disk, somebody may have been answered with 202."""

    run: OpenRun


@dataclass(frozen=True, slots=True)
class Covered:
    """A cancel is recorded: once this is on disk, somebody may know that these runs are cancelled."""

    run_ids: frozenset[str]


Entry = Accepted | Covered | Queue | Reorder | Park | Unpark | Start | Fold | RecordCancelled | End


class Records(NamedTuple):
    """What the entries so far say: the open runs and, of the past, only what later entries are judged by."""

    runs: tuple[OpenRun, ...] = ()
    ended: frozenset[str] = frozenset()
    last_seq: int = 0
    last_started: int = 0
    turn_ended: tuple[str, Outcome] | None = None
    """A turn has ended into which runs were folded that have not: their ends come next, and nothing else."""

    is_reordered: bool = False
    """Somebody has moved, parked or interrupted a run: then they do not start in the order of their seqs."""

    is_resting: bool = False
    """The workspace is about to be handed over: a run may be queued and wait for its next owner."""

    def find(self, run_id: str) -> OpenRun | None:
        return next((run for run in self.runs if run.run_id == run_id), None)

    def open(self, run_id: str) -> OpenRun:
        run = self.find(run_id)
        if run is None:
            raise Violation(f"{run_id} is not open: nothing is said of a run before it is accepted or after its end")
        return run

    @property
    def active(self) -> OpenRun | None:
        return next((run for run in self.runs if run.phase is Phase.ACTIVE), None)

    def changed(self, changed: OpenRun) -> Records:
        return self._replace(runs=tuple(changed if run.run_id == changed.run_id else run for run in self.runs))

    def placed(self, places: Places) -> Records:
        """The records with queued runs in another order: they trade their own places, and nobody else has one."""
        new = dict(places)
        check(all(self.open(run_id).phase is Phase.QUEUED for run_id in new), f"{places}: not all of them are queued")
        runs = [replace(run, place=new.get(run.run_id, run.place)) for run in self.runs]
        check(sorted(run.place for run in runs) == sorted(run.place for run in self.runs), f"{places} are not a trade")
        return self._replace(runs=tuple(sorted(runs, key=lambda run: run.place)), is_reordered=True)

    def without(self, gone: OpenRun) -> Records:
        runs = tuple(run for run in self.runs if run.run_id != gone.run_id)
        return self._replace(runs=runs, ended=self.ended | {gone.run_id})


@cache  # few records meet few entries, again and again
def written(records: Records, entry: Entry) -> Records:
    """The records with one entry more; a Violation if the promises do not allow it here."""
    if records.turn_ended:
        host, _ = records.turn_ended
        check(isinstance(entry, End) and entry.folded_into == host, f"{entry} between {host} and its folded runs")
    match entry:
        case Accepted(run):
            check(run.run_id not in records.ended and records.find(run.run_id) is None, f"{run.run_id} is there twice")
            check(run.seq > records.last_seq, f"{run.run_id} has a seq that was given out before")
            return records._replace(runs=(*records.runs, run), last_seq=run.seq)
        case Covered(run_ids):
            covered = (replace(run, cancelled=True) if run.run_id in run_ids else run for run in records.runs)
            return records._replace(runs=tuple(covered))
        case Queue(run_id, places):
            run = records.open(run_id)
            check(run.phase is Phase.ACCEPTED and not run.cancelled, f"{run} is queued")
            waits = records.active is not None or run.interrupts or records.is_resting
            check(waits, f"{run_id} is queued and waits for nothing")
            records = records.changed(replace(run, phase=Phase.QUEUED, entered=True))
            if run.interrupts:
                records = records.placed(places)
                first = next(other for other in records.runs if other.phase is Phase.QUEUED)
                check(first.run_id == run_id, f"{run} interrupts, and {first} stands before it")
            return records
        case Reorder(places):
            return records.placed(places)
        case Park(run_id) | Unpark(run_id):
            run = records.open(run_id)
            parked = isinstance(entry, Park)
            check(run.phase is Phase.QUEUED and run.parked is not parked, f"{run}: {entry}")
            return records.changed(replace(run, parked=parked))._replace(is_reordered=True)
        case Fold(run_id, into):
            run, host_run = records.open(run_id), records.open(into)
            check(run.phase is Phase.QUEUED and run.folds and not run.parked, f"{run} is folded")
            check(host_run.phase is Phase.ACTIVE and not host_run.cancelled, f"{run_id} is folded into {host_run}")
            check(host_run.hosts, f"{run_id} is folded into {host_run}, which has options of its own")
            return records.changed(replace(run, phase=Phase.FOLDED, host=into))
        case Start():
            return _started(records, entry)
        case RecordCancelled(run_id):
            run = records.open(run_id)
            check(run.phase is Phase.ACCEPTED and run.cancelled, f"{run} is cancelled on entry")
            check(records.active is None, f"{run_id} is recorded in the middle of another turn")
            return records.without(run)
        case End():
            return _ended(records, entry)


def _started(records: Records, start: Start) -> Records:
    run = records.open(start.run_id)
    check(run.phase in (Phase.ACCEPTED, Phase.QUEUED), f"{run} starts a second time")
    check(not run.cancelled, f"{run} starts although a cancel covers it")
    check(records.active is None, f"{run} starts beside {records.active}")
    check(not run.parked, f"{run} starts although it is parked")
    waiting = [other for other in records.runs if other.phase is Phase.QUEUED and not other.parked]
    passed_over = [other for other in waiting if other.place < run.place]
    in_order = run.seq > records.last_started or records.is_reordered
    check(in_order and not passed_over, f"{run} starts out of order")
    return records.changed(replace(run, phase=Phase.ACTIVE, entered=True))._replace(last_started=run.seq)


def _ended(records: Records, end: End) -> Records:
    run = records.open(end.run_id)
    check(end.found is run.phase and end.folded_into == run.host, f"{run} ends with {end}")
    check(not run.cancelled or end.outcome is Outcome.CANCELLED, f"{run} ends {end.outcome}: its cancel is lost")
    if run.phase is Phase.FOLDED:
        if records.turn_ended is None:
            raise Violation(f"{run} ends without its host")
        turn_ended = records.turn_ended
        # A crash may come between a host's end and this one: then all that is known is that it was interrupted.
        ends_alike = end.outcome in (turn_ended[1], Outcome.INTERRUPTED)
        check(run.cancelled or ends_alike, f"{run} ends {end.outcome}, unlike its host")
    else:
        turn_ended = (run.run_id, end.outcome)
        check(run.phase is not Phase.ACCEPTED, f"{run} ends without a record of its prompt")
        check(run.phase is Phase.ACTIVE or end.outcome is Outcome.CANCELLED, f"{run} ends {end.outcome}: it never ran")
        check(run.cancelled or end.outcome is not Outcome.CANCELLED, f"{run} ends cancelled: nobody cancelled it")
    left = records.without(run)
    more_to_end = any(other.host == turn_ended[0] for other in left.runs)
    return left._replace(turn_ended=turn_ended if more_to_end else None)
