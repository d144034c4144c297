"""What tokens cost, and when a turn goes round in circles."""

from __future__ import annotations

import pytest

from covey.lifecycle.budget import (
    CYCLE_LENGTH,
    LOOP_REPEATS,
    LOOP_WINDOW,
    SUMMARIES_IN_A_ROW,
    Bounds,
    LoopGuard,
    Price,
    Purse,
    SummaryGuard,
)
from covey.lifecycle.reply import UsageReported
from covey.protocol.runs import Usage


def test_the_price_is_per_million_tokens() -> None:
    usage = Price(prompt=2.0, completion=16.0).usage(UsageReported(250_000, 62_500))
    assert usage == Usage(prompt_tokens=250_000, completion_tokens=62_500, cost=1.5)
    assert Price().usage(UsageReported(5, 7)) == Usage(prompt_tokens=5, completion_tokens=7, cost=0.0)


def test_what_comes_out_of_a_cache_or_goes_into_it_has_its_own_price() -> None:
    report = UsageReported(1_000_000, 0, cached_tokens=600_000, cache_write_tokens=100_000)
    assert Price(prompt=10.0, cached=1.0, cache_write=12.5).usage(report).cost == 3.0 + 0.6 + 1.25
    assert Price(prompt=10.0).usage(report).cost == 10.0
    assert Price(prompt=10.0, cached=0.0).usage(report).cached_tokens == 600_000


def test_usage_of_several_steps_adds_up() -> None:
    step = Usage(prompt_tokens=1, completion_tokens=2, cost=0.25)
    assert step + step == Usage(prompt_tokens=2, completion_tokens=4, cost=0.5)


def test_the_same_call_with_the_same_result_is_a_loop_after_some_time() -> None:
    guard = LoopGuard()
    assert [guard.saw("bash", "ls", "a") for _ in range(LOOP_REPEATS + 1)] == [False] * LOOP_REPEATS + [True]


def test_a_changing_result_is_progress() -> None:
    guard = LoopGuard()
    assert not any(guard.saw("bash", "tail log", f"line {number}") for number in range(50))


def test_a_loop_with_a_few_other_calls_in_between_is_still_a_loop() -> None:
    guard = LoopGuard()
    seen = [guard.saw("bash", "ls" if number % 2 else "pwd", "same") for number in range(LOOP_WINDOW)]
    assert not any(seen), "two calls in turn fill the window without either being in the majority"
    assert not guard.saw("view", "a", "b")
    assert not any(guard.saw("bash", "make", "failed") for _ in range(LOOP_REPEATS))
    assert not guard.saw("view", "c", "d")
    assert guard.saw("bash", "make", "failed")


def test_what_is_long_ago_is_forgotten() -> None:
    guard = LoopGuard()
    for _ in range(LOOP_REPEATS):
        guard.saw("bash", "ls", "a")
    for number in range(LOOP_WINDOW):
        guard.saw("view", str(number), "")
    assert not guard.saw("bash", "ls", "a")


@pytest.mark.parametrize("length", [2, 3, 9, CYCLE_LENGTH])
def test_a_cycle_of_calls_that_comes_again_and_again_is_a_loop(length: int) -> None:
    guard = LoopGuard()
    seen = [guard.saw("bash", str(number % length), "same") for number in range(length * (LOOP_REPEATS + 1))]
    assert seen == [False] * (len(seen) - 1) + [True]


def test_a_cycle_with_one_new_result_is_progress() -> None:
    guard = LoopGuard()
    for turn in range(20):
        for number in range(3):
            assert not guard.saw("bash", str(number), f"{turn}" if number == 0 else "same")


def test_summaries_that_each_follow_a_single_step_are_in_vain() -> None:
    guard = SummaryGuard()
    found = []
    for _ in range(SUMMARIES_IN_A_ROW + 1):
        found.append(guard.summarised())
        guard.stepped()
    assert found == [False] * SUMMARIES_IN_A_ROW + [True]


def test_summaries_with_work_between_them_are_not() -> None:
    guard = SummaryGuard()
    for _ in range(50):
        assert not guard.summarised()
        guard.stepped()
        guard.stepped()


# ── one purse for a run and all that work for it ──


def purse(run: float = 0.0, session: float = 0.0, before: float = 0.0, owner: Purse | None = None) -> Purse:
    return Purse(lambda: (Bounds(run, session), before), owner)


def test_what_an_agent_spends_is_spent_by_all_that_it_works_for() -> None:
    root = purse(run=1.0)
    agent = purse(owner=root)
    agents_agent = purse(owner=agent)
    agents_agent.spend(0.25)
    agent.spend(0.5)
    assert (root.spent, agent.spent, agents_agent.spent) == (0.75, 0.75, 0.25)
    assert not root.is_empty and agents_agent.refusal() == ""
    root.spend(0.25)
    assert root.is_empty and agent.is_empty and agents_agent.is_empty
    assert "this run has cost $1.0000" in root.refusal()
    assert agent.refusal() == agents_agent.refusal() == "stopped: the run that it works for has spent what it may"


def test_an_agent_that_has_spent_its_own_leaves_its_owner_the_rest() -> None:
    root = purse(run=2.0)
    agent = purse(run=1.0, owner=root)
    agent.spend(1.0)
    assert agent.is_empty and not root.is_empty
    assert "this run has cost" in agent.refusal()
    assert root.refusal() == ""


def test_what_the_session_had_cost_before_counts() -> None:
    assert not purse(session=1.0, before=0.9).is_empty
    assert purse(session=1.0, before=1.0).is_empty
    assert not purse().is_empty, "no bound"
