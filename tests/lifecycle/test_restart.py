"""What a lane makes of its records after a crash, also of records that the crash cut off in the middle of a ruling."""

from __future__ import annotations

from dataclasses import replace

import pytest

from covey.lifecycle.decisions import End, Outcome, Phase, Queue, RecordCancelled, Start
from tests.lifecycle.lanes import Told


def test_r15_the_run_that_was_active_is_interrupted_and_the_others_go_on_in_order() -> None:
    told = Told()
    told.post("a", "b")
    told.accept("c")
    assert told.crash() == (End("a", Outcome.INTERRUPTED, Phase.ACTIVE), Start("b"))
    assert told.enter("c") == (Queue("c"),)
    assert told.state == {"b": "active", "c": "queued"}


def test_r15_a_cancel_survives_the_crash() -> None:
    told = Told()
    told.post("a")
    told.accept("b")
    told.cancel()
    assert told.crash() == (End("a", Outcome.CANCELLED, Phase.ACTIVE),)
    assert told.enter("b") == (RecordCancelled("b"),)


def test_r15_folded_runs_are_interrupted_with_their_host() -> None:
    told = Told()
    told.post("host")
    told.post("a", folds=True)
    told.step("host")
    assert told.crash() == (
        End("host", Outcome.INTERRUPTED, Phase.ACTIVE),
        End("a", Outcome.INTERRUPTED, Phase.FOLDED, folded_into="host"),
    )


@pytest.mark.parametrize(("cancelled", "outcome"), [(False, Outcome.INTERRUPTED), (True, Outcome.CANCELLED)])
def test_r15_a_folded_run_whose_host_ended_just_before_the_crash_is_not_stranded(
    cancelled: bool, outcome: Outcome
) -> None:
    told = Told()
    told.post("host")
    told.post("a", folds=True)
    told.post("next")
    told.step("host")
    if cancelled:
        told.cancel(newest=2)
    told.lane = told.lane._without("host")
    assert told.crash() == (End("a", outcome, Phase.FOLDED, folded_into="host"), Start("next"))


def test_r15_a_queued_run_whose_cancel_was_written_and_whose_end_was_not_never_starts() -> None:
    told = Told()
    told.post("a", "b", "c")
    b = told.lane.queued[0]
    told.lane = told.lane._with(replace(b, cancelled=True))
    assert told.crash() == (
        End("a", Outcome.INTERRUPTED, Phase.ACTIVE),
        End("b", Outcome.CANCELLED, Phase.QUEUED),
        Start("c"),
    )


def test_r15_recovery_may_be_interrupted_and_repeated() -> None:
    told = Told()
    told.post("a", "b", "c")
    assert told.crash() == (End("a", Outcome.INTERRUPTED, Phase.ACTIVE), Start("b"))
    assert told.crash() == (End("b", Outcome.INTERRUPTED, Phase.ACTIVE), Start("c"))
    assert told.crash() == (End("c", Outcome.INTERRUPTED, Phase.ACTIVE),)
    assert told.crash() == ()


def test_r15_a_second_crash_in_the_middle_of_recovery_does_not_part_folded_runs_from_their_host() -> None:
    told = Told()
    told.post("host", "own")
    told.post("folded", folds=True)
    told.step("host")
    told.lane = told.lane._with(replace(told.lane.queued[0], cancelled=True))
    before = told.lane
    assert told.crash() == (
        End("host", Outcome.INTERRUPTED, Phase.ACTIVE),
        End("folded", Outcome.INTERRUPTED, Phase.FOLDED, folded_into="host"),
        End("own", Outcome.CANCELLED, Phase.QUEUED),
    )
    told.lane = before._without("host")
    assert told.crash() == (
        End("folded", Outcome.INTERRUPTED, Phase.FOLDED, folded_into="host"),
        End("own", Outcome.CANCELLED, Phase.QUEUED),
    )
