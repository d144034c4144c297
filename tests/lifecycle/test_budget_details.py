"""What a run and a session may cost, and when a conversation is too long: at the bound, and on both sides of it."""

from __future__ import annotations

import pytest

from covey.lifecycle.budget import Bounds, is_too_long


@pytest.mark.parametrize(
    ("used", "window", "share", "expected"),
    [
        (80, 100, 0.8, False),
        (81, 100, 0.8, True),
        (81, 0, 0.8, False),  # nobody knows how much the model can read
        (81, 100, 0.0, False),  # summarising is switched off
        (0, 100, 0.8, False),
    ],
)
def test_a_conversation_is_too_long_above_its_share_of_the_window(
    used: int, window: int, share: float, expected: bool
) -> None:
    assert is_too_long(used, window, share) is expected


def test_without_bounds_nothing_is_too_dear() -> None:
    assert Bounds().exceeded(1000.0, 1000.0) == ""
    assert Bounds().exceeded(0.0, 0.0) == ""


@pytest.mark.parametrize(("cost", "reached"), [(0.0, False), (0.4999, False), (0.5, True), (0.75, True)])
def test_a_run_stops_when_its_bound_is_reached_whatever_the_session_has_cost(cost: float, reached: bool) -> None:
    driver = Bounds(run=0.5).exceeded(cost, 1000.0)
    assert bool(driver) is reached
    assert driver == "" or driver.startswith("stopped: this run has cost $")
    assert driver == "" or driver.endswith("and it may cost $0.5 (limits.cost_per_run)")


@pytest.mark.parametrize(
    ("run_cost", "session_cost", "total"),
    [(0.5, 1.25, ""), (0.5, 1.5, "2.0000"), (0.0, 2.0, "2.0000"), (2.0, 0.0, "2.0000"), (1.5, 1.5, "3.0000")],
)
def test_a_session_stops_when_this_run_and_those_before_it_reach_the_bound(
    run_cost: float, session_cost: float, total: str
) -> None:
    driver = Bounds(session=2.0).exceeded(run_cost, session_cost)
    expected = f"stopped: this session has cost ${total}, and it may cost $2 (limits.cost_per_session)"
    assert driver == (expected if total else "")


def test_the_bound_of_the_run_is_reported_first() -> None:
    assert "limits.cost_per_run" in Bounds(run=1.0, session=1.0).exceeded(1.0, 1.0)
    assert "(max_cost of this run)" in Bounds(1.0, 1.0, "max_cost of this run").exceeded(1.0, 1.0)
    assert "limits.cost_per_session" in Bounds(run=2.0, session=1.0).exceeded(1.0, 1.0)


@pytest.mark.parametrize(
    ("bounds", "left"),
    [
        (Bounds(), None),
        (Bounds(run=2.0), 1.5),
        (Bounds(session=2.0), 0.5),
        (Bounds(run=1.0, session=4.0), 0.5),
        (Bounds(run=4.0, session=2.0), 0.5),
        (Bounds(run=0.25), -0.25),
    ],
)
def test_what_may_still_be_spent_is_what_the_nearer_bound_leaves(bounds: Bounds, left: float | None) -> None:
    assert bounds.left(0.5, 1.0) == left
