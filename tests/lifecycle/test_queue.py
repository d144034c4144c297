"""The queue of a lane: its order, what is parked, and what interrupts (R7)."""

from __future__ import annotations

import pytest

from covey.lifecycle.decisions import (
    Decisions,
    End,
    Fold,
    LaneBusy,
    NotQueued,
    Outcome,
    Park,
    Phase,
    Queue,
    QueueChange,
    RecordCancelled,
    Reorder,
    Start,
    StopTurn,
    TooLate,
    Unpark,
)
from tests.lifecycle.lanes import LaneDriver


def busy(*queued: str, folds: bool = False) -> LaneDriver:
    """A lane in which `active` runs and the others wait."""
    lane = LaneDriver()
    lane.post("active")
    lane.post(*queued, folds=folds)
    return lane


# ── places ──


@pytest.mark.parametrize(
    ("run_id", "beside", "order"),
    [
        ("c", {}, ["c", "a", "b"]),
        ("a", {}, ["a", "b", "c"]),
        ("c", {"before": "b"}, ["a", "c", "b"]),
        ("a", {"before": "c"}, ["b", "a", "c"]),
        ("a", {"after": "c"}, ["b", "c", "a"]),
        ("c", {"after": "a"}, ["a", "c", "b"]),
        ("b", {"after": "a"}, ["a", "b", "c"]),
    ],
    ids=str,
)
def test_r7_a_queued_run_may_be_moved(run_id: str, beside: dict[str, str], order: list[str]) -> None:
    lane = busy("a", "b", "c")
    lane.move(run_id, **beside)
    assert lane.queue == order
    assert lane.finish("active")[-1] == Start(order[0])


def test_r7_a_move_is_a_trade_of_places_and_names_each_run_that_has_a_new_one() -> None:
    lane = busy("a", "b", "c")
    assert lane.move("c", before="b") == (Reorder((("c", 3), ("b", 4))),)
    assert sorted(run.place for run in lane.lane.runs) == [1, 2, 3, 4]
    assert lane.move("c", before="b") == ()


def test_r7_what_comes_later_stands_last_whatever_was_moved() -> None:
    lane = busy("a", "b")
    lane.move("b")
    lane.post("c")
    assert lane.queue == ["b", "a", "c"]


@pytest.mark.parametrize("beside", ["active", "nobody", "a"])
def test_r7_a_run_can_only_be_moved_beside_another_queued_one(beside: str) -> None:
    lane = busy("a", "b")
    with pytest.raises(NotQueued):
        lane.move("a", before=beside)
    assert lane.queue == ["a", "b"]


@pytest.mark.parametrize("change", ["move", "park", "unpark"])
def test_r7_only_a_queued_run_is_moved_or_parked(change: str) -> None:
    lane = busy("a")
    lane.accept("accepted")
    for run_id in ("active", "accepted", "nobody"):
        with pytest.raises(TooLate):
            getattr(lane, change)(run_id)


def test_r4_a_cancel_mark_goes_by_seq_and_not_by_place() -> None:
    lane = busy("a", "b")
    lane.move("b")
    lane.cancel(2)
    assert lane.covered == {"active": "active", "a": "queued"}
    assert lane.queue == ["b"]


def test_r4_a_cancel_leaves_what_was_folded_into_a_younger_turn_that_it_does_not_cover() -> None:
    lane = busy("a", "b", folds=True)
    lane.move("b")
    lane.finish("active")
    assert lane.step("b") == (Fold("a", "b"),)
    assert lane.cancel(2) == ()
    assert lane.covered == {}
    lane.cancel()
    assert lane.covered == {"a": "folded", "b": "active"}


def test_r15_the_order_of_the_queue_survives_a_crash() -> None:
    lane = busy("a", "b")
    lane.move("b")
    assert lane.crash() == (End("active", Outcome.INTERRUPTED, Phase.ACTIVE), Start("b"))


def change(lane: LaneDriver, run_id: str, change: QueueChange) -> Decisions:
    return lane._ruled(lane.lane.change_queue(run_id, change))


def test_r7_a_change_of_place_and_of_parking_is_one_ruling() -> None:
    lane = busy("a", "b")
    assert change(lane, "b", QueueChange(is_moved=True, parked_by="kim")) == (
        Reorder((("b", 2), ("a", 3))),
        Park("b", "kim"),
    )
    assert change(lane, "b", QueueChange(is_moved=True, after="a", parked_by="")) == (
        Reorder((("a", 2), ("b", 3))),
        Unpark("b"),
    )
    assert change(lane, "b", QueueChange("only the text")) == ()


def test_r7_a_change_of_the_text_alone_leaves_a_parked_run_parked() -> None:
    lane = busy("a")
    lane.park("a")
    assert change(lane, "a", QueueChange("only the text")) == ()
    assert [run.parked for run in lane.lane.queued] == [True]


def test_r7_a_change_that_cannot_be_made_is_not_made_in_part() -> None:
    lane = busy("a", "b")
    with pytest.raises(NotQueued):
        change(lane, "b", QueueChange(is_moved=True, before="nobody", parked_by="kim"))
    with pytest.raises(TooLate):
        change(lane, "active", QueueChange("too late"))
    assert lane.queue == ["a", "b"]
    assert not any(run.parked for run in lane.lane.runs)


# ── parking ──


def test_r7_a_parked_run_is_passed_over_and_never_folded() -> None:
    lane = busy("a", "b", folds=True)
    assert lane.park("a") == (Park("a", "kim"),)
    assert lane.park("a") == ()
    assert lane.step("active") == (Fold("b", "active"),)
    assert lane.finish("active")[-1] == End("b", Outcome.COMPLETED, Phase.FOLDED, folded_into="active")
    assert lane.state == {"a": "queued"}


def test_r7_a_lane_with_nothing_but_parked_runs_is_idle_and_blocks_nobody() -> None:
    lane = busy("a")
    lane.park("a")
    assert lane.lane.is_busy
    lane.finish("active")
    assert not lane.lane.is_busy
    assert not lane.lane.is_empty
    assert lane.post("b") == (Start("b"),)
    assert lane.finish("b") == (End("b", Outcome.COMPLETED, Phase.ACTIVE),)


def test_r7_an_unparked_run_starts_in_an_idle_lane_and_waits_in_a_busy_one() -> None:
    lane = busy("a", "b")
    lane.park("a")
    lane.park("b")
    assert lane.unpark("b") == (Unpark("b"),)
    assert lane.unpark("b") == ()
    assert lane.finish("active")[-1] == Start("b")
    lane.finish("b")
    assert lane.unpark("a") == (Unpark("a"), Start("a"))


def test_r4_a_cancel_drops_what_is_parked_like_any_other() -> None:
    lane = busy("a")
    lane.park("a")
    lane.finish("active")
    assert lane.cancel() == (End("a", Outcome.CANCELLED, Phase.QUEUED),)
    assert lane.state == {}


def test_an_undo_does_not_begin_while_a_run_is_parked() -> None:
    lane = busy("a")
    lane.park("a")
    lane.finish("active")
    with pytest.raises(LaneBusy):
        lane.lane.hold()


def test_r7_parking_ends_in_a_crash() -> None:
    lane = busy("a", "b")
    lane.park("a")
    assert lane.crash() == (End("active", Outcome.INTERRUPTED, Phase.ACTIVE), Unpark("a"), Start("a"))


# ── interrupting ──


def test_r7_an_interrupt_cancels_the_active_run_and_stands_first_as_one_ruling() -> None:
    lane = busy("a", "b")
    assert lane.post("now", interrupts=True) == (Queue("now", (("now", 2), ("a", 3), ("b", 4))), StopTurn("active"))
    assert lane.covered == {"active": "active"}
    assert lane.queue == ["now", "a", "b"]
    assert lane.finish("active") == (End("active", Outcome.CANCELLED, Phase.ACTIVE), Start("now"))


def test_r7_an_interrupt_in_an_idle_lane_just_starts() -> None:
    lane = LaneDriver()
    assert lane.post("now", interrupts=True) == (Start("now"),)
    assert lane.covered == {}


def test_r7_an_interrupting_run_is_never_folded() -> None:
    lane = busy()
    lane.post("now", interrupts=True)
    lane.lane = lane.lane._with(lane.lane._open("active"))
    assert lane.step("active") == ()


def test_r4_an_interrupt_that_is_cancelled_before_it_enters_interrupts_nobody() -> None:
    lane = busy()
    lane.accept("now", interrupts=True)
    lane.cancel_run("now")
    assert lane.enter("now") == ()
    assert lane.state == {"active": "active", "now": "accepted cancelled"}
    assert lane.finish("active") == (End("active", Outcome.COMPLETED, Phase.ACTIVE), RecordCancelled("now"))


def test_r15_of_what_was_to_interrupt_only_what_had_not_entered_is_put_first() -> None:
    lane = busy("a")
    lane.post("queued", interrupts=True)
    lane.move("a")
    lane.accept("cancelled", interrupts=True)
    lane.cancel_run("cancelled")
    assert lane.crash() == (End("active", Outcome.CANCELLED, Phase.ACTIVE), Start("a"))
    assert lane.state == {"a": "active", "queued": "queued", "cancelled": "accepted cancelled"}


def test_r15_an_interrupt_cut_off_by_a_crash_is_the_next_and_cancels_nobody_else() -> None:
    lane = busy("a")
    lane.accept("now", interrupts=True)
    assert lane.crash() == (
        End("active", Outcome.INTERRUPTED, Phase.ACTIVE),
        Queue("now", (("now", 2), ("a", 3))),
        Start("now"),
    )
    assert lane.state == {"now": "active", "a": "queued"}
