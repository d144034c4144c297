"""The numbered scenarios of the life of a run, as far as the lane alone tells them.

What clients see of them (messages, events, status codes) is checked over HTTP too, with the same numbers.
"""

from __future__ import annotations

import pytest

from covey.lifecycle.decisions import (
    DuplicateRun,
    End,
    Fold,
    LaneClosing,
    Outcome,
    Phase,
    Queue,
    RecordCancelled,
    Start,
    StopTurn,
)
from tests.lifecycle.lanes import LaneDriver

COMPLETED, FAILED, CANCELLED, INTERRUPTED = Outcome
ACTIVE, QUEUED, FOLDED = Phase.ACTIVE, Phase.QUEUED, Phase.FOLDED


def test_scenario_01_cancel_of_an_active_run_ends_it_cancelled() -> None:
    driver = LaneDriver()
    assert driver.post("a") == (Start("a"),)
    assert driver.cancel() == (StopTurn("a"),)
    assert driver.covered == {"a": "active"}
    assert driver.finish("a", FAILED) == (End("a", CANCELLED, ACTIVE),), "what the model's library raised is no failure"
    assert driver.state == {}


def test_scenario_02_cancel_before_the_run_enters_never_starts_it() -> None:
    driver = LaneDriver()
    driver.accept("a")
    assert driver.cancel() == ()
    assert driver.covered == {"a": "accepted"}
    assert driver.enter("a") == (RecordCancelled("a"),)
    assert driver.state == {}


def test_scenario_03_cancel_while_idle_then_prompt() -> None:
    driver = LaneDriver()
    driver.post("before")
    driver.finish("before")
    assert driver.cancel() == ()
    assert driver.covered == {}
    assert driver.post("a") == (Start("a"),)
    assert driver.step("a") == ()
    assert not driver.is_cancelled("a")
    assert driver.finish("a") == (End("a", COMPLETED, ACTIVE),)


def test_scenario_04_cancel_after_active_before_the_first_step() -> None:
    driver = LaneDriver()
    driver.post("a")
    driver.cancel()
    assert driver.is_cancelled("a"), "the turn asks before its first step"
    assert driver.finish("a") == (End("a", CANCELLED, ACTIVE),)


def test_scenario_05_one_cancel_covers_two_that_have_not_entered() -> None:
    driver = LaneDriver()
    driver.accept("a", "b")
    driver.cancel()
    assert driver.enter("a") == (RecordCancelled("a"),)
    assert driver.enter("b") == (RecordCancelled("b"),)
    assert driver.state == {}


def test_scenario_06_a_third_accepted_after_the_cancel_runs_normally() -> None:
    driver = LaneDriver()
    driver.accept("one", "two")
    driver.cancel()
    driver.accept("three")
    assert driver.covered == {"one": "accepted", "two": "accepted"}
    assert driver.enter("one") == (RecordCancelled("one"),)
    assert driver.enter("two") == (RecordCancelled("two"),)
    assert driver.enter("three") == (Start("three"),)
    assert driver.finish("three") == (End("three", COMPLETED, ACTIVE),)


def test_scenario_07_cancel_of_an_active_run_and_a_follow_up_that_has_not_entered() -> None:
    driver = LaneDriver()
    driver.post("a")
    driver.accept("follow-up")
    assert driver.cancel() == (StopTurn("a"),)
    assert driver.enter("follow-up") == (), "never queued"
    assert driver.state == {"a": "active cancelled", "follow-up": "accepted cancelled"}
    assert driver.finish("a") == (End("a", CANCELLED, ACTIVE), RecordCancelled("follow-up"))
    assert driver.state == {}


def test_scenario_08_a_follow_up_with_an_own_turn_gets_one() -> None:
    driver = LaneDriver()
    assert driver.post("a", "b") == (Start("a"), Queue("b"))
    assert driver.step("a") == ()
    assert driver.finish("a") == (End("a", COMPLETED, ACTIVE), Start("b"))
    assert driver.finish("b") == (End("b", COMPLETED, ACTIVE),)


def test_scenario_09_follow_ups_without_an_own_turn_are_folded_at_the_next_step() -> None:
    driver = LaneDriver()
    driver.post("a")
    driver.step("a")
    assert driver.post("b", "c", folds=True) == (Queue("b"), Queue("c"))
    assert driver.step("a") == (Fold("b", "a"), Fold("c", "a"))
    assert driver.finish("a") == (
        End("a", COMPLETED, ACTIVE),
        End("b", COMPLETED, FOLDED, folded_into="a"),
        End("c", COMPLETED, FOLDED, folded_into="a"),
    )


def test_scenario_09_a_follow_up_that_comes_after_the_last_step_gets_a_turn_of_its_own() -> None:
    driver = LaneDriver()
    driver.post("a")
    driver.step("a")
    driver.post("b", folds=True)
    assert driver.finish("a") == (End("a", COMPLETED, ACTIVE), Start("b"))


def test_scenario_10_a_cancel_covers_the_queue_up_to_its_mark() -> None:
    driver = LaneDriver()
    driver.post("active")
    driver.post("one", "two")
    driver.post("three")
    assert driver.cancel(newest=3) == (
        StopTurn("active"),
        End("one", CANCELLED, QUEUED),
        End("two", CANCELLED, QUEUED),
    )
    assert driver.finish("active") == (End("active", CANCELLED, ACTIVE), Start("three"))
    assert driver.finish("three") == (End("three", COMPLETED, ACTIVE),)


def test_scenario_11_a_queued_run_that_is_cancelled_ends_once_and_the_queue_is_empty() -> None:
    driver = LaneDriver()
    driver.post("a", "queued")
    assert driver.cancel() == (StopTurn("a"), End("queued", CANCELLED, QUEUED))
    assert driver.lane.queued == ()
    assert driver.finish("a") == (End("a", CANCELLED, ACTIVE),)
    assert driver.state == {}


def test_scenario_12_clearing_the_queue_leaves_the_active_run_alone() -> None:
    driver = LaneDriver()
    driver.post("a", "b", "c")
    driver.accept("accepted")
    assert driver.clear_queue() == (End("b", CANCELLED, QUEUED), End("c", CANCELLED, QUEUED))
    assert driver.covered == {"b": "queued", "c": "queued"}
    assert driver.state == {"a": "active", "accepted": "accepted"}
    assert driver.finish("a") == (End("a", COMPLETED, ACTIVE),)
    assert driver.enter("accepted") == (Start("accepted"),)


def test_scenario_15_a_turn_that_fails_before_its_first_step_ends_once() -> None:
    driver = LaneDriver()
    driver.post("a")
    assert driver.finish("a", FAILED) == (End("a", FAILED, ACTIVE),)
    assert driver.state == {}


def test_scenario_16_a_failure_after_the_end_was_decided_changes_nothing() -> None:
    driver = LaneDriver()
    driver.post("a", "b")
    driver.finish("a")
    lane = driver.lane
    with pytest.raises(AssertionError, match="a is not open"):
        driver.finish("a", FAILED)
    assert driver.lane == lane


def test_scenario_17_a_closing_workspace_refuses_prompts_and_ends_its_runs() -> None:
    driver = LaneDriver()
    driver.post("a")
    assert driver.close() == (StopTurn("a"),)
    with pytest.raises(LaneClosing):
        driver.accept("late")
    assert driver.finish("a") == (End("a", CANCELLED, ACTIVE),)
    assert driver.state == {}


def test_scenario_18_a_failure_hands_over_to_the_queue() -> None:
    driver = LaneDriver()
    driver.post("a", "b")
    assert driver.finish("a", FAILED) == (End("a", FAILED, ACTIVE), Start("b"))


def test_scenario_20_after_a_crash_one_is_interrupted_and_three_complete() -> None:
    driver = LaneDriver()
    driver.post("active", "queued 1", "queued 2")
    driver.accept("accepted")
    assert driver.crash() == (End("active", INTERRUPTED, ACTIVE), Start("queued 1"))
    assert driver.enter("accepted") == (Queue("accepted"),)
    assert driver.finish("queued 1") == (End("queued 1", COMPLETED, ACTIVE), Start("queued 2"))
    assert driver.finish("queued 2") == (End("queued 2", COMPLETED, ACTIVE), Start("accepted"))
    assert driver.finish("accepted") == (End("accepted", COMPLETED, ACTIVE),)
    assert driver.state == {}


def test_scenario_21_the_same_run_id_ten_times_is_one_run() -> None:
    driver = LaneDriver()
    driver.accept("a")
    for _ in range(9):
        with pytest.raises(DuplicateRun):
            driver.accept("a")
    assert driver.enter("a") == (Start("a"),)
    assert driver.finish("a") == (End("a", COMPLETED, ACTIVE),)


def test_scenario_24_shutdown_between_accept_and_enter() -> None:
    driver = LaneDriver()
    driver.accept("a")
    assert driver.close() == ()
    assert driver.covered == {"a": "accepted"}
    assert driver.enter("a") == (RecordCancelled("a"),)
    assert driver.state == {}
