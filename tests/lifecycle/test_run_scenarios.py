"""The numbered scenarios of the life of a run, as far as the lane alone tells them.

What clients see of them (messages, events, status codes) is told again from outside, over HTTP, with the same numbers.
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
from tests.lifecycle.lanes import Told

COMPLETED, FAILED, CANCELLED, INTERRUPTED = Outcome
ACTIVE, QUEUED, FOLDED = Phase.ACTIVE, Phase.QUEUED, Phase.FOLDED


def test_scenario_01_cancel_of_an_active_run_ends_it_cancelled() -> None:
    told = Told()
    assert told.post("a") == (Start("a"),)
    assert told.cancel() == (StopTurn("a"),)
    assert told.covered == {"a": "active"}
    assert told.finish("a", FAILED) == (End("a", CANCELLED, ACTIVE),), "what the model's library raised is no failure"
    assert told.state == {}


def test_scenario_02_cancel_before_the_run_enters_never_starts_it() -> None:
    told = Told()
    told.accept("a")
    assert told.cancel() == ()
    assert told.covered == {"a": "accepted"}
    assert told.enter("a") == (RecordCancelled("a"),)
    assert told.state == {}


def test_scenario_03_cancel_while_idle_then_prompt() -> None:
    told = Told()
    told.post("before")
    told.finish("before")
    assert told.cancel() == ()
    assert told.covered == {}
    assert told.post("a") == (Start("a"),)
    assert told.step("a") == ()
    assert not told.is_cancelled("a")
    assert told.finish("a") == (End("a", COMPLETED, ACTIVE),)


def test_scenario_04_cancel_after_active_before_the_first_step() -> None:
    told = Told()
    told.post("a")
    told.cancel()
    assert told.is_cancelled("a"), "the turn asks before its first step"
    assert told.finish("a") == (End("a", CANCELLED, ACTIVE),)


def test_scenario_05_one_cancel_covers_two_that_have_not_entered() -> None:
    told = Told()
    told.accept("a", "b")
    told.cancel()
    assert told.enter("a") == (RecordCancelled("a"),)
    assert told.enter("b") == (RecordCancelled("b"),)
    assert told.state == {}


def test_scenario_06_a_third_accepted_after_the_cancel_runs_normally() -> None:
    told = Told()
    told.accept("one", "two")
    told.cancel()
    told.accept("three")
    assert told.covered == {"one": "accepted", "two": "accepted"}
    assert told.enter("one") == (RecordCancelled("one"),)
    assert told.enter("two") == (RecordCancelled("two"),)
    assert told.enter("three") == (Start("three"),)
    assert told.finish("three") == (End("three", COMPLETED, ACTIVE),)


def test_scenario_07_cancel_of_an_active_run_and_a_follow_up_that_has_not_entered() -> None:
    told = Told()
    told.post("a")
    told.accept("follow-up")
    assert told.cancel() == (StopTurn("a"),)
    assert told.enter("follow-up") == (), "never queued"
    assert told.state == {"a": "active cancelled", "follow-up": "accepted cancelled"}
    assert told.finish("a") == (End("a", CANCELLED, ACTIVE), RecordCancelled("follow-up"))
    assert told.state == {}


def test_scenario_08_a_follow_up_with_an_own_turn_gets_one() -> None:
    told = Told()
    assert told.post("a", "b") == (Start("a"), Queue("b"))
    assert told.step("a") == ()
    assert told.finish("a") == (End("a", COMPLETED, ACTIVE), Start("b"))
    assert told.finish("b") == (End("b", COMPLETED, ACTIVE),)


def test_scenario_09_follow_ups_without_an_own_turn_are_folded_at_the_next_step() -> None:
    told = Told()
    told.post("a")
    told.step("a")
    assert told.post("b", "c", folds=True) == (Queue("b"), Queue("c"))
    assert told.step("a") == (Fold("b", "a"), Fold("c", "a"))
    assert told.finish("a") == (
        End("a", COMPLETED, ACTIVE),
        End("b", COMPLETED, FOLDED, folded_into="a"),
        End("c", COMPLETED, FOLDED, folded_into="a"),
    )


def test_scenario_09_a_follow_up_that_comes_after_the_last_step_gets_a_turn_of_its_own() -> None:
    told = Told()
    told.post("a")
    told.step("a")
    told.post("b", folds=True)
    assert told.finish("a") == (End("a", COMPLETED, ACTIVE), Start("b"))


def test_scenario_10_a_cancel_covers_the_queue_up_to_its_mark() -> None:
    told = Told()
    told.post("active")
    told.post("one", "two")
    told.post("three")
    assert told.cancel(newest=3) == (
        StopTurn("active"),
        End("one", CANCELLED, QUEUED),
        End("two", CANCELLED, QUEUED),
    )
    assert told.finish("active") == (End("active", CANCELLED, ACTIVE), Start("three"))
    assert told.finish("three") == (End("three", COMPLETED, ACTIVE),)


def test_scenario_11_a_queued_run_that_is_cancelled_ends_once_and_the_queue_is_empty() -> None:
    told = Told()
    told.post("a", "queued")
    assert told.cancel() == (StopTurn("a"), End("queued", CANCELLED, QUEUED))
    assert told.lane.queued == ()
    assert told.finish("a") == (End("a", CANCELLED, ACTIVE),)
    assert told.state == {}


def test_scenario_12_clearing_the_queue_leaves_the_active_run_alone() -> None:
    told = Told()
    told.post("a", "b", "c")
    told.accept("accepted")
    assert told.clear_queue() == (End("b", CANCELLED, QUEUED), End("c", CANCELLED, QUEUED))
    assert told.covered == {"b": "queued", "c": "queued"}
    assert told.state == {"a": "active", "accepted": "accepted"}
    assert told.finish("a") == (End("a", COMPLETED, ACTIVE),)
    assert told.enter("accepted") == (Start("accepted"),)


def test_scenario_15_a_turn_that_fails_before_its_first_step_ends_once() -> None:
    told = Told()
    told.post("a")
    assert told.finish("a", FAILED) == (End("a", FAILED, ACTIVE),)
    assert told.state == {}


def test_scenario_16_a_failure_after_the_end_was_decided_changes_nothing() -> None:
    told = Told()
    told.post("a", "b")
    told.finish("a")
    lane = told.lane
    with pytest.raises(AssertionError, match="a is not open"):
        told.finish("a", FAILED)
    assert told.lane == lane


def test_scenario_17_a_closing_workspace_refuses_prompts_and_ends_its_runs() -> None:
    told = Told()
    told.post("a")
    assert told.close() == (StopTurn("a"),)
    with pytest.raises(LaneClosing):
        told.accept("late")
    assert told.finish("a") == (End("a", CANCELLED, ACTIVE),)
    assert told.state == {}


def test_scenario_18_a_failure_hands_over_to_the_queue() -> None:
    told = Told()
    told.post("a", "b")
    assert told.finish("a", FAILED) == (End("a", FAILED, ACTIVE), Start("b"))


def test_scenario_20_after_a_crash_one_is_interrupted_and_three_complete() -> None:
    told = Told()
    told.post("active", "queued 1", "queued 2")
    told.accept("accepted")
    assert told.crash() == (End("active", INTERRUPTED, ACTIVE), Start("queued 1"))
    assert told.enter("accepted") == (Queue("accepted"),)
    assert told.finish("queued 1") == (End("queued 1", COMPLETED, ACTIVE), Start("queued 2"))
    assert told.finish("queued 2") == (End("queued 2", COMPLETED, ACTIVE), Start("accepted"))
    assert told.finish("accepted") == (End("accepted", COMPLETED, ACTIVE),)
    assert told.state == {}


def test_scenario_21_the_same_run_id_ten_times_is_one_run() -> None:
    told = Told()
    told.accept("a")
    for _ in range(9):
        with pytest.raises(DuplicateRun):
            told.accept("a")
    assert told.enter("a") == (Start("a"),)
    assert told.finish("a") == (End("a", COMPLETED, ACTIVE),)


def test_scenario_24_shutdown_between_accept_and_enter() -> None:
    told = Told()
    told.accept("a")
    assert told.close() == ()
    assert told.covered == {"a": "accepted"}
    assert told.enter("a") == (RecordCancelled("a"),)
    assert told.state == {}
