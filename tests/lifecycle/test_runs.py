"""The rules about runs, one by one, as far as they are decided by the lane alone."""

from __future__ import annotations

from typing import get_args

import pytest

from covey.lifecycle.decisions import (
    DuplicateRun,
    End,
    Fold,
    LaneClosing,
    OpenRun,
    Outcome,
    Phase,
    Queue,
    RecordCancelled,
    Start,
    StopTurn,
    TooLate,
)
from covey.lifecycle.early_cancels import EarlyCancels
from covey.lifecycle.runs import Lane
from covey.protocol.runs import RunState
from tests.lifecycle.lanes import LaneDriver


def test_r1_accept_gives_out_rising_seqs_and_starts_nothing() -> None:
    driver = LaneDriver()
    driver.lane = driver.lane.accept(OpenRun("a", 1, folds=False)).accept(OpenRun("b", 2, folds=True))
    assert driver.lane.runs == (OpenRun("a", 1, folds=False, place=1), OpenRun("b", 2, folds=True, place=2))
    assert driver.state == {"a": "accepted", "b": "accepted"}
    assert [run.seq for run in driver.lane.runs] == [1, 2]
    assert (len(driver.lane.waiting), driver.lane.active) == (2, None)


def test_r1_a_seq_is_never_given_out_twice() -> None:
    driver = LaneDriver()
    driver.accept("a")
    with pytest.raises(AssertionError, match="seq 1 given out after 1"):
        driver.lane.accept(OpenRun("b", 1, folds=False))


def test_r1_what_cannot_be_recorded_was_never_there() -> None:
    driver = LaneDriver()
    driver.accept("a", "b")
    driver.lane = driver.lane.retract("a")
    assert driver.state == {"b": "accepted"}
    assert driver.enter("b") == (Start("b"),)
    assert driver.cancel_run("a") == ()
    assert driver.covered == {}


def test_r1_only_what_has_not_entered_can_be_retracted() -> None:
    driver = LaneDriver()
    driver.post("a", "b")
    for run_id in ("a", "b"):
        with pytest.raises(AssertionError, match="retract of"):
            driver.lane.retract(run_id)


def test_r3_a_run_that_enters_an_idle_lane_is_active() -> None:
    driver = LaneDriver()
    driver.accept("a")
    assert driver.enter("a") == (Start("a"),)
    assert driver.state == {"a": "active"}
    assert driver.lane.active is driver.lane.find("a")


def test_r3_a_run_that_enters_a_busy_lane_is_queued() -> None:
    driver = LaneDriver()
    assert driver.post("a", "b") == (Start("a"), Queue("b"))
    assert driver.state == {"a": "active", "b": "queued"}
    assert [run.run_id for run in driver.lane.queued] == ["b"]
    assert [run.run_id for run in driver.lane.waiting] == ["b"]


def test_r3_a_run_that_a_cancel_covers_is_cancelled_on_entry() -> None:
    driver = LaneDriver()
    driver.accept("a")
    driver.cancel()
    assert driver.enter("a") == (RecordCancelled("a"),)
    assert driver.state == {}


def test_r3_runs_enter_in_accept_order_and_only_once() -> None:
    driver = LaneDriver()
    driver.accept("a", "b")
    with pytest.raises(AssertionError, match=r"b entered before a"):
        driver.enter("b")
    driver.enter("a")
    with pytest.raises(AssertionError, match="enter of"):
        driver.enter("a")


def test_r3_a_cancel_reaches_a_run_from_the_moment_it_is_active() -> None:
    driver = LaneDriver()
    driver.post("a")
    assert not driver.is_cancelled("a")
    assert driver.cancel() == (StopTurn("a"),)
    assert driver.is_cancelled("a")


def test_r4_cancel_covers_exactly_what_is_open_at_or_below_the_newest_seq() -> None:
    driver = LaneDriver()
    driver.post("active", "queued")
    driver.accept("accepted")
    assert driver.cancel() == (StopTurn("active"), End("queued", Outcome.CANCELLED, Phase.QUEUED))
    assert driver.covered == {"active": "active", "queued": "queued", "accepted": "accepted"}
    assert driver.state == {"active": "active cancelled", "accepted": "accepted cancelled"}
    assert driver.lane.mark == 3


def test_r4_a_prompt_accepted_after_the_cancel_is_never_touched_and_takes_nothing_away() -> None:
    driver = LaneDriver()
    driver.accept("a", "b")
    driver.cancel()
    driver.accept("later")
    assert driver.state == {"a": "accepted cancelled", "b": "accepted cancelled", "later": "accepted"}
    assert driver.enter("a") == (RecordCancelled("a"),)
    assert driver.enter("b") == (RecordCancelled("b"),)
    assert driver.enter("later") == (Start("later"),)
    assert driver.finish("later") == (End("later", Outcome.COMPLETED, Phase.ACTIVE),)


def test_r4_a_cancel_up_to_a_mark_leaves_what_is_above_it() -> None:
    driver = LaneDriver()
    driver.post("a", "b", "c")
    assert driver.cancel(newest=2) == (StopTurn("a"), End("b", Outcome.CANCELLED, Phase.QUEUED))
    assert driver.covered == {"a": "active", "b": "queued"}
    assert driver.state == {"a": "active cancelled", "c": "queued"}


def test_r4_the_mark_only_rises() -> None:
    driver = LaneDriver()
    driver.post("a", "b")
    driver.cancel()
    driver.cancel(newest=1)
    assert driver.lane.mark == 2


def test_r4_a_cancel_on_an_idle_session_does_nothing() -> None:
    driver = LaneDriver()
    assert driver.cancel() == ()
    assert driver.covered == {}
    assert driver.post("a") == (Start("a"),)
    assert not driver.is_cancelled("a")


def test_r4_cancelling_twice_is_harmless() -> None:
    driver = LaneDriver()
    driver.post("a", "b")
    driver.accept("c")
    driver.cancel()
    state = driver.state
    assert driver.cancel() == (StopTurn("a"),)
    assert driver.state == state
    assert driver.finish("a") == (End("a", Outcome.CANCELLED, Phase.ACTIVE),)
    assert driver.enter("c") == (RecordCancelled("c"),)


def test_r4_a_single_run_is_cancelled_without_its_neighbours() -> None:
    driver = LaneDriver()
    driver.post("a", "b", "c")
    assert driver.cancel_run("b") == (End("b", Outcome.CANCELLED, Phase.QUEUED),)
    assert driver.covered == {"b": "queued"}
    assert driver.state == {"a": "active", "c": "queued"}
    assert driver.lane.mark == 0
    assert driver.cancel_run("b") == ()
    assert driver.covered == {}


def test_r4_a_cancel_of_one_run_may_overtake_its_prompt() -> None:
    early = EarlyCancels().remember("a", now=100.0, keep_s=60.0)
    assert early.covers("a", now=159.9)
    assert not early.covers("a", now=160.0)
    assert not early.covers("b", now=100.0)
    driver = LaneDriver()
    driver.accept("a", cancelled=early.covers("a", now=101.0))
    driver.accept("b", cancelled=early.covers("b", now=101.0))
    assert driver.enter("a") == (RecordCancelled("a"),)
    assert driver.enter("b") == (Start("b"),)


def test_r4_early_cancels_are_bounded_and_renewed() -> None:
    early = EarlyCancels(limit=3)
    for now, run_id in enumerate(("a", "b", "a")):
        early = early.remember(run_id, now=float(now), keep_s=60.0)
    assert early.until == (("b", 61.0), ("a", 62.0)), "each is there once, as last renewed"
    later = early.remember("c", now=61.0, keep_s=60.0)
    assert later.until == (("a", 62.0), ("c", 121.0)), "what is over is forgotten"
    for now, run_id in enumerate(("c", "d"), 3):
        early = early.remember(run_id, now=float(now), keep_s=60.0)
    assert early.until == (("a", 62.0), ("c", 63.0), ("d", 64.0)), "of too many the oldest has to go"
    assert EarlyCancels().limit == 1000


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.FAILED])
def test_r5_a_cancelled_turn_ends_cancelled_whatever_it_says_itself(outcome: Outcome) -> None:
    driver = LaneDriver()
    driver.post("a")
    driver.cancel()
    assert driver.finish("a", outcome) == (End("a", Outcome.CANCELLED, Phase.ACTIVE),)


def test_r6_cancelled_on_entry_is_recorded_and_dropped_from_the_queue_is_not() -> None:
    driver = LaneDriver()
    driver.post("active", "queued")
    driver.accept("accepted")
    assert driver.cancel()[1:] == (End("queued", Outcome.CANCELLED, found=Phase.QUEUED),)
    assert driver.enter("accepted") == (), "its record waits: turns never overlap"
    assert driver.finish("active") == (
        End("active", Outcome.CANCELLED, found=Phase.ACTIVE),
        RecordCancelled("accepted"),
    )
    assert driver.state == {}


def test_r6_several_cancelled_on_entry_are_recorded_in_order_once_the_turn_has_ended() -> None:
    driver = LaneDriver()
    driver.post("active")
    driver.accept("a", "b")
    driver.cancel()
    assert driver.enter("a") == driver.enter("b") == ()
    assert driver.finish("active")[1:] == (RecordCancelled("a"), RecordCancelled("b"))


def test_r7_queued_prompts_without_an_own_turn_are_folded_in_order() -> None:
    driver = LaneDriver()
    driver.post("host")
    driver.post("a", folds=True)
    driver.post("own")
    driver.post("b", folds=True)
    assert driver.step("host") == (Fold("a", "host"), Fold("b", "host"))
    assert driver.state == {"host": "active", "a": "folded", "own": "queued", "b": "folded"}
    assert driver.step("host") == (), "each is folded once"


def test_r7_only_what_waits_in_the_queue_is_folded() -> None:
    driver = LaneDriver()
    driver.post("host")
    driver.accept("accepted", folds=True)
    assert driver.step("host") == ()
    assert driver.enter("accepted") == (Queue("accepted"),)
    assert driver.step("host") == (Fold("accepted", "host"),)


def test_r7_nothing_joins_a_turn_that_is_stopping() -> None:
    driver = LaneDriver()
    driver.post("host")
    driver.cancel()
    driver.post("later", folds=True)
    assert driver.step("host") == ()
    assert driver.finish("host") == (End("host", Outcome.CANCELLED, Phase.ACTIVE), Start("later"))


def test_r7_a_step_is_one_of_the_active_turn() -> None:
    driver = LaneDriver()
    driver.post("a", "b")
    with pytest.raises(AssertionError, match="step of"):
        driver.step("b")


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.FAILED])
def test_r8_folded_runs_end_right_after_their_host_and_like_it(outcome: Outcome) -> None:
    driver = LaneDriver()
    driver.post("host")
    driver.post("a", "b", folds=True)
    driver.post("next")
    driver.step("host")
    assert driver.finish("host", outcome) == (
        End("host", outcome, Phase.ACTIVE),
        End("a", outcome, Phase.FOLDED, folded_into="host"),
        End("b", outcome, Phase.FOLDED, folded_into="host"),
        Start("next"),
    )
    assert driver.state == {"next": "active"}


def test_r8_a_folded_run_cannot_be_cancelled_alone_but_ends_with_its_host() -> None:
    driver = LaneDriver()
    driver.post("host")
    driver.post("a", folds=True)
    driver.step("host")
    assert driver.cancel_run("a") == ()
    assert driver.covered == {}
    assert driver.cancel() == (StopTurn("host"),)
    assert driver.covered == {"host": "active", "a": "folded"}
    assert driver.finish("host") == (
        End("host", Outcome.CANCELLED, Phase.ACTIVE),
        End("a", Outcome.CANCELLED, Phase.FOLDED, folded_into="host"),
    )


def test_r8_a_run_that_ended_cannot_end_again() -> None:
    driver = LaneDriver()
    driver.post("a")
    driver.finish("a")
    with pytest.raises(AssertionError, match="a is not open"):
        driver.finish("a")
    assert driver.lane.find("a") is None, "whatever still runs for it must stop"


def test_r8_only_an_active_run_can_finish() -> None:
    driver = LaneDriver()
    driver.post("a", "b")
    with pytest.raises(AssertionError, match="finish of"):
        driver.finish("b")


def test_r9_the_end_of_a_turn_is_decided_before_anything_of_the_next() -> None:
    driver = LaneDriver()
    driver.post("a", "b")
    driver.accept("c")
    driver.cancel_run("c")
    driver.enter("c")
    assert driver.finish("a") == (End("a", Outcome.COMPLETED, Phase.ACTIVE), RecordCancelled("c"), Start("b"))


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.FAILED])
def test_r10_the_oldest_waiting_run_goes_on_whatever_ended_the_one_before(outcome: Outcome) -> None:
    driver = LaneDriver()
    driver.post("a", "b", "c")
    assert driver.finish("a", outcome) == (End("a", outcome, Phase.ACTIVE), Start("b"))
    assert driver.state == {"b": "active", "c": "queued"}
    assert driver.cancel() == (StopTurn("b"), End("c", Outcome.CANCELLED, Phase.QUEUED)), (
        "no moment without an active run"
    )


def test_r13_a_closing_lane_refuses_prompts_and_cancels_every_open_run() -> None:
    driver = LaneDriver()
    driver.post("active", "queued")
    driver.accept("accepted")
    assert driver.close() == (StopTurn("active"), End("queued", Outcome.CANCELLED, Phase.QUEUED))
    with pytest.raises(LaneClosing, match="late"):
        driver.accept("late")
    assert driver.enter("accepted") == ()
    assert driver.finish("active") == (End("active", Outcome.CANCELLED, Phase.ACTIVE), RecordCancelled("accepted"))
    assert driver.lane == Lane(mark=3, closing=True)


def test_r14_an_open_run_id_is_not_accepted_again() -> None:
    driver = LaneDriver()
    driver.accept("a")
    lane = driver.lane
    with pytest.raises(DuplicateRun, match="a"):
        driver.accept("a")
    assert driver.lane == lane


def test_phases_and_outcomes_are_the_states_that_clients_see() -> None:
    assert {*Phase, *Outcome} == set(get_args(RunState))


def test_a_queued_prompt_can_be_edited_and_removed_until_it_is_too_late() -> None:
    driver = LaneDriver()
    driver.post("active")
    driver.post("folded", folds=True)
    driver.step("active")
    driver.post("queued")
    driver.accept("accepted")
    for run_id in ("active", "folded", "unknown"):
        with pytest.raises(TooLate, match=run_id):
            driver.lane.check_editable(run_id)
        with pytest.raises(TooLate, match=run_id):
            driver.remove(run_id)
    driver.lane.check_editable("queued")
    driver.lane.check_editable("accepted")
    assert driver.remove("queued") == (End("queued", Outcome.CANCELLED, Phase.QUEUED),)
    assert driver.remove("accepted") == ()
    assert driver.covered == {"accepted": "accepted"}
    with pytest.raises(TooLate, match="accepted"):
        driver.lane.check_editable("accepted")
