"""Long random lives of a lane, checked against a model that a child could follow: what should become of each run.

The exploration in tests/sim is complete but small; this is neither: many runs, many facts, found by chance and shrunk.
"""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from covey.lifecycle.decisions import (
    Decisions,
    End,
    Fold,
    OpenRun,
    Outcome,
    Phase,
    Queue,
    RecordCancelled,
    Start,
    StopTurn,
)
from covey.lifecycle.runs import CancelRuling, Lane


class Lives(RuleBasedStateMachine):
    """`expected` is the whole model: what each accepted run is, by our own account of what was decided."""

    def __init__(self) -> None:
        super().__init__()
        self.lane = Lane()
        self.newest_seq = 0
        self.expected: dict[str, str] = {}
        self.folds: dict[str, bool] = {}
        self.cancelled: set[str] = set()
        self.host: dict[str, str] = {}
        self.started: list[str] = []

    def having(self, *states: str) -> list[str]:
        return [run_id for run_id, state in self.expected.items() if state in states]

    @property
    def active(self) -> str:
        return next(iter(self.having("active")), "")

    # ── facts ──

    @rule(folds=st.booleans(), overtaken=st.booleans())
    def accept(self, folds: bool, overtaken: bool) -> None:
        if self.lane.closing:
            return
        run_id = f"r{len(self.expected) + 1}"
        self.newest_seq += 2
        self.lane = self.lane.accept(OpenRun(run_id, self.newest_seq, folds, cancelled=overtaken))
        self.expected[run_id] = "accepted"
        self.folds[run_id] = folds
        if overtaken:
            self.cancelled.add(run_id)

    @precondition(lambda self: self.having("accepted"))
    @rule()
    def enter(self) -> None:
        run_id = self.having("accepted")[0]
        busy = self.active
        ruling = self.lane.enter(run_id)
        self.expected[run_id] = "recording" if run_id in self.cancelled else "queued" if busy else "entered"
        expected: Decisions = (Queue(run_id),) if self.expected[run_id] == "queued" else ()
        self.take(ruling.lane, ruling.decisions, expected or self.what_follows())

    @precondition(lambda self: self.having("accepted"))
    @rule()
    def retract(self) -> None:
        run_id = self.having("accepted")[-1]
        self.lane = self.lane.retract(run_id)
        self.expected[run_id] = "retracted"

    @precondition(lambda self: self.active)
    @rule()
    def step(self) -> None:
        host = self.active
        joining = [] if host in self.cancelled else [run for run in self.having("queued") if self.folds[run]]
        ruling = self.lane.begin_step(host)
        self.take(ruling.lane, ruling.decisions, tuple(Fold(run_id, host) for run_id in joining))

    @precondition(lambda self: self.active)
    @rule(outcome=st.sampled_from([Outcome.COMPLETED, Outcome.FAILED]))
    def finish(self, outcome: Outcome) -> None:
        ruling = self.lane.finish(self.active, outcome)
        ends = self.ends_of_turn(Outcome.CANCELLED if self.active in self.cancelled else outcome)
        self.take(ruling.lane, ruling.decisions, ends + self.what_follows())

    @rule()
    def cancel(self) -> None:
        self.cancels(
            self.lane.cancel(self.newest_seq), self.having("accepted", "recording", "queued", "active", "folded")
        )

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def cancel_run(self, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(sorted(self.expected)))
        is_open = self.expected[run_id] in ("accepted", "recording", "queued", "active")
        self.cancels(self.lane.cancel_run(run_id), [run_id] if is_open else [])

    @rule()
    def clear_queue(self) -> None:
        self.cancels(self.lane.clear_queue(), self.having("queued"))

    @rule()
    def close_and_reopen(self) -> None:
        """A workspace that closed is opened anew when somebody comes back to it."""
        if not self.lane.closing:
            self.cancels(
                self.lane.close(self.newest_seq), self.having("accepted", "recording", "queued", "active", "folded")
            )
        elif not self.lane.runs:
            self.lane = Lane()

    @rule()
    def crash(self) -> None:
        runs = tuple(replace(run, entered=run.phase is not Phase.ACCEPTED) for run in self.lane.runs)
        ruling = Lane.of(runs).recover()
        for run_id in self.having("recording"):
            self.expected[run_id] = "accepted"
        ends: Decisions = ()
        if self.active:
            ends = self.ends_of_turn(Outcome.CANCELLED if self.active in self.cancelled else Outcome.INTERRUPTED)
        self.take(ruling.lane, ruling.decisions, ends + self.what_follows())

    # ── what should be decided ──

    def ends_of_turn(self, outcome: Outcome) -> Decisions:
        host = self.active
        folded = [run_id for run_id in self.having("folded") if self.host[run_id] == host]
        for run_id in (host, *folded):
            self.expected[run_id] = "ending"
        return (
            End(host, outcome, Phase.ACTIVE),
            *(End(run_id, outcome, Phase.FOLDED, folded_into=host) for run_id in folded),
        )

    def what_follows(self) -> Decisions:
        """With no turn active: first the records of those cancelled on entry, then the oldest that waits."""
        if self.active:
            return ()
        records = tuple(RecordCancelled(run_id) for run_id in self.having("recording"))
        return (*records, *(Start(run_id) for run_id in self.having("queued", "entered")[:1]))

    def cancels(self, ruling: CancelRuling, expected: list[str]) -> None:
        assert [run.run_id for run in ruling.covered] == expected
        decisions: Decisions = ()
        for run_id in expected:
            self.cancelled.add(run_id)
            if self.expected[run_id] == "active":
                decisions += (StopTurn(run_id),)
            elif self.expected[run_id] == "queued":
                self.expected[run_id] = "ending"
                decisions += (End(run_id, Outcome.CANCELLED, Phase.QUEUED),)
        self.take(ruling.lane, ruling.decisions, decisions)

    def take(self, lane: Lane, decisions: Decisions, expected: Decisions) -> None:
        assert decisions == expected
        self.lane = lane
        for decision in decisions:
            match decision:
                case Start(run_id):
                    self.expected[run_id] = "active"
                    self.started.append(run_id)
                case Fold(run_id, into):
                    self.expected[run_id] = "folded"
                    self.host[run_id] = into
                case End(run_id) | RecordCancelled(run_id):
                    assert self.expected[run_id] in ("ending", "recording"), f"{run_id} ends a second time"
                    self.expected[run_id] = "ended"

    # ── always ──

    @invariant()
    def the_lane_holds_what_is_open(self) -> None:
        phases = {"recording": "accepted"}
        is_open = {run_id: state for run_id, state in self.expected.items() if state not in ("ended", "retracted")}
        assert {run.run_id: run.phase.value for run in self.lane.runs} == {
            run_id: phases.get(state, state) for run_id, state in is_open.items()
        }
        assert all(run.cancelled == (run.run_id in self.cancelled) for run in self.lane.runs)

    @invariant()
    def runs_start_in_the_order_in_which_they_were_accepted(self) -> None:
        assert self.started == [run_id for run_id in self.expected if run_id in set(self.started)]

    def teardown(self) -> None:
        """Whatever happened: if nobody disturbs the lane any more, it comes to rest."""
        while self.lane.runs:
            if self.having("accepted"):
                self.enter()
            else:
                self.finish(Outcome.COMPLETED)


TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=150,
    stateful_step_count=60,
    derandomize=True,  # a test that fails today must fail tomorrow; chance is for the exploration by hand
    deadline=None,
    database=None,
)
