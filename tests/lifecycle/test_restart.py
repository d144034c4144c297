"""What a lane makes of its records after a crash, also of records that the crash cut off in the middle of a ruling."""

from __future__ import annotations

from dataclasses import replace

import pytest

from covey.lifecycle.decisions import End, Outcome, Phase, Queue, RecordCancelled, Start
from tests.lifecycle.lanes import LaneDriver


def test_r15_the_run_that_was_active_is_interrupted_and_the_others_go_on_in_order() -> None:
    driver = LaneDriver()
    driver.post("a", "b")
    driver.accept("c")
    assert driver.crash() == (End("a", Outcome.INTERRUPTED, Phase.ACTIVE), Start("b"))
    assert driver.enter("c") == (Queue("c"),)
    assert driver.state == {"b": "active", "c": "queued"}


def test_r15_a_cancel_survives_the_crash() -> None:
    driver = LaneDriver()
    driver.post("a")
    driver.accept("b")
    driver.cancel()
    assert driver.crash() == (End("a", Outcome.CANCELLED, Phase.ACTIVE),)
    assert driver.enter("b") == (RecordCancelled("b"),)


def test_r15_folded_runs_are_interrupted_with_their_host() -> None:
    driver = LaneDriver()
    driver.post("host")
    driver.post("a", folds=True)
    driver.step("host")
    assert driver.crash() == (
        End("host", Outcome.INTERRUPTED, Phase.ACTIVE),
        End("a", Outcome.INTERRUPTED, Phase.FOLDED, folded_into="host"),
    )


@pytest.mark.parametrize(("cancelled", "outcome"), [(False, Outcome.INTERRUPTED), (True, Outcome.CANCELLED)])
def test_r15_a_folded_run_whose_host_ended_just_before_the_crash_is_not_stranded(
    cancelled: bool, outcome: Outcome
) -> None:
    driver = LaneDriver()
    driver.post("host")
    driver.post("a", folds=True)
    driver.post("next")
    driver.step("host")
    if cancelled:
        driver.cancel(newest=2)
    driver.lane = driver.lane._without("host")
    assert driver.crash() == (End("a", outcome, Phase.FOLDED, folded_into="host"), Start("next"))


def test_r15_a_queued_run_whose_cancel_was_written_and_whose_end_was_not_never_starts() -> None:
    driver = LaneDriver()
    driver.post("a", "b", "c")
    b = driver.lane.queued[0]
    driver.lane = driver.lane._with(replace(b, cancelled=True))
    assert driver.crash() == (
        End("a", Outcome.INTERRUPTED, Phase.ACTIVE),
        End("b", Outcome.CANCELLED, Phase.QUEUED),
        Start("c"),
    )


def test_r15_recovery_may_be_interrupted_and_repeated() -> None:
    driver = LaneDriver()
    driver.post("a", "b", "c")
    assert driver.crash() == (End("a", Outcome.INTERRUPTED, Phase.ACTIVE), Start("b"))
    assert driver.crash() == (End("b", Outcome.INTERRUPTED, Phase.ACTIVE), Start("c"))
    assert driver.crash() == (End("c", Outcome.INTERRUPTED, Phase.ACTIVE),)
    assert driver.crash() == ()


def test_r15_a_second_crash_in_the_middle_of_recovery_does_not_part_folded_runs_from_their_host() -> None:
    driver = LaneDriver()
    driver.post("host", "own")
    driver.post("folded", folds=True)
    driver.step("host")
    driver.lane = driver.lane._with(replace(driver.lane.queued[0], cancelled=True))
    before = driver.lane
    assert driver.crash() == (
        End("host", Outcome.INTERRUPTED, Phase.ACTIVE),
        End("folded", Outcome.INTERRUPTED, Phase.FOLDED, folded_into="host"),
        End("own", Outcome.CANCELLED, Phase.QUEUED),
    )
    driver.lane = before._without("host")
    assert driver.crash() == (
        End("folded", Outcome.INTERRUPTED, Phase.FOLDED, folded_into="host"),
        End("own", Outcome.CANCELLED, Phase.QUEUED),
    )
