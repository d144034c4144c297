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
)
from covey.lifecycle.runs import waits_as
from covey.protocol.runs import Mode
from tests.lifecycle.lanes import Told


def test_r7_nobody_joins_a_turn_that_has_options_of_its_own() -> None:
    told = Told()
    told.post("host", hosts=False)
    told.post("a", folds=True)
    assert told.step("host") == ()
    assert told.state == {"host": "active", "a": "queued"}
    assert told.finish("host")[-1] == Start("a")


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
    told = Told()
    told.post("a")
    told.accept("b", "c", limit=2)
    with pytest.raises(LaneFull):
        told.accept("d", limit=2)
    told.enter("b")
    with pytest.raises(LaneFull):
        told.accept("d", limit=2)
    told.finish("a")
    told.accept("d", limit=2)


def test_r15_what_worked_for_another_run_is_cancelled_by_a_crash() -> None:
    told = Told()
    told.post("a")
    told.post("queued", delegate=True)
    told.post("own")
    told.accept("accepted", delegate=True)
    decisions = told.crash()
    assert told.covered == {"queued": "queued", "accepted": "accepted"}
    assert decisions == (
        End("a", Outcome.INTERRUPTED, Phase.ACTIVE),
        End("queued", Outcome.CANCELLED, Phase.QUEUED),
        Start("own"),
    )
    assert told.enter("accepted") == ()
    assert told.finish("own") == (End("own", Outcome.COMPLETED, Phase.ACTIVE), RecordCancelled("accepted"))


def test_r15_an_active_run_that_worked_for_another_is_interrupted_like_any_other() -> None:
    told = Told()
    told.post("a", delegate=True)
    assert told.crash() == (End("a", Outcome.INTERRUPTED, Phase.ACTIVE),)
    assert told.covered == {}


def test_r15_a_cancel_of_before_the_crash_is_not_told_again() -> None:
    told = Told()
    told.accept("a", delegate=True, cancelled=True)
    assert told.crash() == ()
    assert told.covered == {}


def test_a_conversation_that_is_held_takes_no_run_and_one_with_runs_is_not_held() -> None:
    told = Told()
    assert told.lane.is_empty
    told.lane = told.lane.hold()
    assert not told.lane.is_empty
    with pytest.raises(LaneHeld):
        told.accept("a")
    with pytest.raises(LaneHeld):
        told.lane.hold()
    told.lane = told.lane.release()
    told.post("a")
    assert not told.lane.is_empty
    with pytest.raises(LaneBusy):
        told.lane.hold()
    with pytest.raises(AssertionError):
        told.lane.release()
    told.close()
    told.finish("a")
    with pytest.raises(LaneClosing):
        told.lane.hold()
