"""What tokens cost, and when a turn goes round in circles."""

from __future__ import annotations

from covey.lifecycle.budget import LOOP_REPEATS, LOOP_WINDOW, LoopGuard, Price
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
