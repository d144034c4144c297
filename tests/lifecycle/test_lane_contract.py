"""What the shell may not tell a lane: each is a bug of the shell, and raises instead of being believed."""

from __future__ import annotations

import pytest

from covey.lifecycle.decisions import OpenRun, Outcome, Phase
from covey.lifecycle.runs import Lane


def accepted(*run_ids: str) -> Lane:
    lane = Lane()
    for seq, run_id in enumerate(run_ids, 1):
        lane = lane.accept(OpenRun(run_id, seq, folds=False))
    return lane


def entered_but_cancelled() -> Lane:
    """`a` is active; `b` has entered and waits to be recorded as cancelled: it is still `accepted`."""
    lane = accepted("a").enter("a").lane.accept(OpenRun("b", 2, folds=False)).cancel_run("b").lane
    return lane.enter("b").lane


@pytest.mark.parametrize("word", ["enter", "retract"])
def test_a_run_that_has_entered_neither_enters_again_nor_is_retracted(word: str) -> None:
    active = accepted("a").enter("a").lane
    with pytest.raises(AssertionError):
        getattr(active, word)("a")
    with pytest.raises(AssertionError):
        getattr(entered_but_cancelled(), word)("b")


def test_a_queued_run_that_was_restored_without_having_entered_is_not_retracted() -> None:
    lane = accepted("a", "b").enter("a").lane.enter("b").lane
    with pytest.raises(AssertionError):
        lane.retract("b")


def test_nobody_overtakes_an_older_run_on_the_way_in() -> None:
    with pytest.raises(AssertionError, match="entered before"):
        accepted("a", "b").enter("b")


def test_only_the_active_run_makes_steps_and_finishes() -> None:
    lane = accepted("a", "b").enter("a").lane.enter("b").lane
    with pytest.raises(AssertionError):
        lane.begin_step("b")
    with pytest.raises(AssertionError):
        lane.finish("b", Outcome.COMPLETED)


def test_a_seq_is_given_out_once() -> None:
    with pytest.raises(AssertionError, match="seq 1 given out after 1"):
        accepted("a").accept(OpenRun("b", 1, folds=False))


def test_no_seq_is_given_out_that_a_cancel_has_covered() -> None:
    cancelled = accepted("a").retract("a").cancel(3).lane
    with pytest.raises(AssertionError, match="seq 3 given out after 3"):
        cancelled.accept(OpenRun("b", 3, folds=False))
    assert cancelled.accept(OpenRun("b", 4, folds=False)).find("b") == OpenRun("b", 4, folds=False, place=4)


@pytest.mark.parametrize(
    "run", [OpenRun("b", 2, folds=False, phase=Phase.QUEUED), OpenRun("b", 2, folds=False, entered=True)]
)
def test_only_a_run_that_is_new_is_accepted(run: OpenRun) -> None:
    with pytest.raises(AssertionError, match="accept of"):
        accepted("a").accept(run)
