"""The life of an extension: every state that any order of facts leads to, and what must hold in each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest

from covey.lifecycle.extensions import RESTARTS, WINDOW_S, Decision, ExtensionLife
from covey.protocol.extensions import ExtensionState

STEP_S = WINDOW_S / 4
FACTS = ("want", "started", "failed", "login", "logged in", "approve", "unapprove", "idle", "off", "close", "wait")


def apply(life: ExtensionLife, fact: str, now: float) -> tuple[ExtensionLife, Decision]:
    match fact:
        case "want":
            return life.wanted(now)
        case "started":
            return life.started()
        case "failed":
            return life.failed("it ended")
        case "login":
            return life.needs_login("401")
        case "logged in":
            return life.logged_in()
        case "approve":
            return life.approved()
        case "unapprove":
            return life.unapproved("it changed")
        case "idle":
            return life.idle()
        case "off":
            return life.switched_off()
        case "close":
            return life.closed()
    return life, Decision.NOTHING


State = tuple[ExtensionLife, int, tuple[int, ...]]
"""The life, what hour it is, and when the shell started it after a failure."""


def successors(state: State) -> Iterator[tuple[str, State, Decision]]:
    life, tick, restarts = state
    for fact in FACTS:
        now = tick * STEP_S
        after, decision = apply(life, fact, now)
        restarted = decision is Decision.START and life.state == "failed"
        again = (*restarts, tick) if restarted else () if fact == "off" else restarts
        yield fact, (after, tick + (fact == "wait"), again), decision


def test_every_order_of_facts_keeps_the_promises() -> None:
    """One process at most, none without an approval or after the close, and no more than three restarts in a window."""
    start: State = (ExtensionLife(), 0, ())
    seen, frontier = {start}, [start]
    while frontier:
        found: list[State] = []
        for state in frontier:
            for fact, after, decision in successors(state):
                _check(state, fact, after, decision)
                if after not in seen and after[1] <= 5:
                    seen.add(after)
                    found.append(after)
        frontier = found
    assert {state[0].state for state in seen} == set(get_args(ExtensionState)) and len(seen) > 1_000


def _check(before: State, fact: str, after: State, decision: Decision) -> None:
    old, new = before[0], after[0]
    ran, runs = old.has_process, new.has_process
    if decision is Decision.START:
        assert fact == "want" and not ran and new.state == "starting"
        assert old.is_approved and not old.is_closed and old.state != "needs_login"
        recent = [tick for tick in after[2] if tick * STEP_S > after[1] * STEP_S - WINDOW_S]
        assert len(recent) <= RESTARTS
    else:
        assert runs <= ran, "a process appears only by a start"
    assert (decision is Decision.STOP) == (ran and not runs), "what runs is ended exactly when it is wanted no more"
    if fact == "want" and decision is Decision.NOTHING and not ran:
        assert old.refusal(before[1] * STEP_S), "whoever wanted it is told why not"
    if new.is_closed or not new.is_approved:
        assert not runs


def test_m15_what_crashes_is_started_again_three_times_in_ten_minutes_and_then_said_so() -> None:
    life, _ = ExtensionLife().approved()
    life, _ = life.wanted(0)
    for number in range(RESTARTS):
        life, _ = life.started()[0].failed("it crashed")
        life, decision = life.wanted(10.0 * number)
        assert decision is Decision.START
    life, decision = life.failed("it crashed")
    assert decision is Decision.STOP
    life, decision = life.wanted(60.0)
    assert decision is Decision.NOTHING and life.state == "failed"
    assert life.refusal(60.0) == "it crashed (it was started again 3 times; it is tried again in 540 s)"
    assert life.wanted(WINDOW_S + 1)[1] is Decision.START


@pytest.mark.parametrize("fact", ["started", "failed"])
def test_what_is_said_of_a_start_that_was_stopped_meanwhile_changes_nothing(fact: str) -> None:
    life = ExtensionLife().approved()[0].wanted(0)[0].closed()[0]
    assert apply(life, fact, 0) == (life, Decision.NOTHING)


def test_an_idle_one_rests_and_the_next_who_needs_it_starts_it() -> None:
    life = ExtensionLife().approved()[0].wanted(0)[0].started()[0]
    life, decision = life.idle()
    assert (life.state, decision) == ("resting", Decision.STOP)
    assert life.wanted(1)[1] is Decision.START
