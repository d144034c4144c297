"""Schedules of the real shell, explored. A failing one is printed as a list, which `tests.sim.replay` replays."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.sim.loop import History, explore, run_schedule, run_seed, run_to_crash, shorten
from tests.sim.shell import Shell
from tests.sim.shell_scenarios import SCENARIOS, after_crash, fresh

SEEDS = 60
"""Random schedules of each scenario in every test run; `make explore` runs them for as long as it is told."""


def explain(name: str, history: History) -> str:
    schedule = shorten(fresh(name), history.schedule)
    numbers = ",".join(map(str, schedule))
    return f"{history.failure!r}\nreplay with: python -m tests.sim.replay {name} {numbers or 0}"


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_schedule_with_one_delay_keeps_every_promise(name: str) -> None:
    count = 0
    for history in explore(fresh(name), delays=1):
        count += 1
        assert history.failure is None, explain(name, history)
    assert count > 20, "nothing was explored"


@pytest.mark.parametrize("name", SCENARIOS)
def test_random_schedules_keep_every_promise(name: str) -> None:
    for seed in range(SEEDS):
        history = run_seed(fresh(name), seed)
        assert history.failure is None, explain(name, history)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_crash_after_any_step_is_healed_by_the_next_start(name: str) -> None:
    step = 0
    while True:
        step += 1
        shell = Shell()
        if not run_to_crash(partial(SCENARIOS[name], shell), (), step):
            break
        history = run_schedule(partial(after_crash, shell), ())
        assert history.failure is None, f"killed after step {step}: {history.failure!r}"
    assert step > 10, "nothing was explored"


def test_a_replayed_schedule_is_the_same_to_the_last_step() -> None:
    name = "fold_and_cancel_run"
    first = run_schedule(fresh(name), (0, 1, 0, 2))
    second = run_schedule(fresh(name), (0, 1, 0, 2))
    assert first.offered == second.offered


def test_a_dead_loop_is_a_failure() -> None:
    async def wait_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    assert "Deadlock" in repr(run_schedule(wait_for_ever, ()).failure)
