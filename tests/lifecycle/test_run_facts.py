"""What else a run or its session may be: options of its own, work for another run, a full queue, an undo under way."""

from __future__ import annotations

import pytest

from covey.lifecycle.decisions import (
    End,
    LaneBusy,
    LaneClosing,
    LaneFull,
    LaneHeld,
    Outcome,
    Phase,
    RecordCancelled,
    Start,
    waits_as,
)
from covey.protocol.runs import Mode
from tests.lifecycle.lanes import LaneDriver


def test_r7_nobody_joins_a_turn_that_has_options_of_its_own() -> None:
    driver = LaneDriver()
    driver.post("host", hosts=False)
    driver.post("a", folds=True)
    assert driver.step("host") == ()
    assert driver.state == {"host": "active", "a": "queued"}
    assert driver.finish("host")[-1] == Start("a")


@pytest.mark.parametrize(
    ("asked", "is_named", "has_options", "mode"),
    [
        (None, False, False, "fold"),
        (None, True, False, "own_turn"),
        ("fold", True, False, "fold"),
        ("own_turn", False, False, "own_turn"),
        (None, False, True, "own_turn"),
        ("fold", False, True, "own_turn"),
        ("interrupt", False, False, "interrupt"),
        ("interrupt", True, True, "interrupt"),
    ],
)
def test_r7_how_a_prompt_waits(asked: Mode | None, is_named: bool, has_options: bool, mode: Mode) -> None:
    assert waits_as(asked, is_named=is_named, has_options=has_options) == mode


def test_a_full_queue_takes_no_more_and_the_active_run_does_not_count() -> None:
    driver = LaneDriver()
    driver.post("a")
    driver.accept("b", "c", limit=2)
    with pytest.raises(LaneFull):
        driver.accept("d", limit=2)
    driver.enter("b")
    with pytest.raises(LaneFull):
        driver.accept("d", limit=2)
    driver.finish("a")
    driver.accept("d", limit=2)


def test_r15_what_worked_for_another_run_is_cancelled_by_a_crash() -> None:
    driver = LaneDriver()
    driver.post("a")
    driver.post("queued", delegate=True)
    driver.post("own")
    driver.accept("accepted", delegate=True)
    decisions = driver.crash()
    assert driver.covered == {"queued": "queued", "accepted": "accepted"}
    assert decisions == (
        End("a", Outcome.INTERRUPTED, Phase.ACTIVE),
        End("queued", Outcome.CANCELLED, Phase.QUEUED),
        Start("own"),
    )
    assert driver.enter("accepted") == ()
    assert driver.finish("own") == (End("own", Outcome.COMPLETED, Phase.ACTIVE), RecordCancelled("accepted"))


def test_r15_an_active_run_that_worked_for_another_is_interrupted_like_any_other() -> None:
    driver = LaneDriver()
    driver.post("a", delegate=True)
    assert driver.crash() == (End("a", Outcome.INTERRUPTED, Phase.ACTIVE),)
    assert driver.covered == {}


def test_r15_a_cancel_of_before_the_crash_is_not_reported_again() -> None:
    driver = LaneDriver()
    driver.accept("a", delegate=True, cancelled=True)
    assert driver.crash() == ()
    assert driver.covered == {}


def test_a_conversation_that_is_held_takes_no_run_and_one_with_runs_is_not_held() -> None:
    driver = LaneDriver()
    assert driver.lane.is_empty
    driver.lane = driver.lane.hold()
    assert not driver.lane.is_empty
    with pytest.raises(LaneHeld):
        driver.accept("a")
    with pytest.raises(LaneHeld):
        driver.lane.hold()
    driver.lane = driver.lane.release()
    driver.post("a")
    assert not driver.lane.is_empty
    with pytest.raises(LaneBusy):
        driver.lane.hold()
    with pytest.raises(AssertionError):
        driver.lane.release()
    driver.close()
    driver.finish("a")
    with pytest.raises(LaneClosing):
        driver.lane.hold()
