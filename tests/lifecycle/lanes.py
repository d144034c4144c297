"""Drives a lane: each call feeds it one fact, keeps the lane that results, and returns its decisions."""

from __future__ import annotations

from dataclasses import replace

from covey.lifecycle.decisions import Decisions, OpenRun, Outcome, Phase
from covey.lifecycle.runs import CancelRuling, Lane, Ruling


class LaneDriver:
    """One session's lane and what was last decided about it. Seqs are given out as 1, 2, 3."""

    def __init__(self) -> None:
        self.lane = Lane()
        self.newest_seq = 0
        self.covered: dict[str, str] = {}
        """What the last cancel covered, and in which phase it found it."""

    @property
    def state(self) -> dict[str, str]:
        """Each open run, in order: its phase, and whether a cancel covers it."""
        return {run.run_id: run.phase + (" cancelled" if run.cancelled else "") for run in self.lane.runs}

    def accept(
        self,
        *run_ids: str,
        folds: bool = False,
        cancelled: bool = False,
        hosts: bool = True,
        delegate: bool = False,
        interrupts: bool = False,
        limit: int | None = None,
    ) -> None:
        for run_id in run_ids:
            seq = self.newest_seq + 1
            run = OpenRun(
                run_id, seq, folds, cancelled=cancelled, hosts=hosts, delegate=delegate, interrupts=interrupts
            )
            self.lane = self.lane.accept(run, limit)
            self.newest_seq = run.seq

    def enter(self, run_id: str) -> Decisions:
        return self._cancelled(self.lane.enter(run_id))

    def move(self, run_id: str, *, before: str = "", after: str = "") -> Decisions:
        return self._ruled(self.lane.move(run_id, before=before, after=after))

    def park(self, run_id: str) -> Decisions:
        return self._ruled(self.lane.park(run_id, "kim"))

    def unpark(self, run_id: str) -> Decisions:
        return self._ruled(self.lane.unpark(run_id))

    @property
    def queue(self) -> list[str]:
        """The queued runs, the next one first."""
        return [run.run_id for run in self.lane.queued]

    def is_cancelled(self, run_id: str) -> bool:
        """Whether a cancel covers this open run."""
        return self.lane.find(run_id) in [run for run in self.lane.runs if run.cancelled]

    def post(
        self,
        *run_ids: str,
        folds: bool = False,
        hosts: bool = True,
        delegate: bool = False,
        interrupts: bool = False,
    ) -> Decisions:
        """Accept and enter at once, one after the other."""
        decisions: Decisions = ()
        for run_id in run_ids:
            self.accept(run_id, folds=folds, hosts=hosts, delegate=delegate, interrupts=interrupts)
            decisions += self.enter(run_id)
        return decisions

    def step(self, run_id: str) -> Decisions:
        return self._ruled(self.lane.begin_step(run_id))

    def finish(self, run_id: str, outcome: Outcome = Outcome.COMPLETED) -> Decisions:
        return self._ruled(self.lane.finish(run_id, outcome))

    def cancel(self, newest: int | None = None) -> Decisions:
        return self._cancelled(self.lane.cancel(self.newest_seq if newest is None else newest))

    def cancel_run(self, run_id: str) -> Decisions:
        return self._cancelled(self.lane.cancel_run(run_id))

    def clear_queue(self) -> Decisions:
        return self._cancelled(self.lane.clear_queue())

    def remove(self, run_id: str) -> Decisions:
        return self._cancelled(self.lane.remove(run_id))

    def close(self) -> Decisions:
        return self._cancelled(self.lane.close(self.newest_seq))

    def crash(self) -> Decisions:
        """Everything was on disk; memory is gone. That an accepted run had entered is not recorded."""
        runs = tuple(replace(run, entered=run.phase is not Phase.ACCEPTED) for run in self.lane.runs)
        return self._cancelled(Lane.of(runs, self.lane.mark).recover())

    def _ruled(self, ruling: Ruling) -> Decisions:
        self.lane = ruling.lane
        return ruling.decisions

    def _cancelled(self, ruling: CancelRuling) -> Decisions:
        self.lane = ruling.lane
        self.covered = {run.run_id: run.phase.value for run in ruling.covered}
        return ruling.decisions
