"""Statements about races: shown at every step of a turn, and in every order of steps with one delay."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from tests.sim.loop import explore, run_schedule, run_to_crash
from tests.sim.shell import Shell
from tests.sim.shell_scenarios import after_crash
from tests.support.effort import bound

T = TypeVar("T")
Scenario = Callable[[Shell], Coroutine[Any, Any, None]]
ScenarioAt = Callable[[Shell, int], Coroutine[Any, Any, None]]

STEPS = 80
"""More than any turn of these scenarios takes: the last ones happen when everything is over."""


def in_order(scenario: Scenario) -> None:
    """Run the scenario once, first come, first served. What the shell checks is checked."""
    failure = run_schedule(partial(scenario, Shell()), ()).failure
    if failure:
        raise failure


def in_every_order(scenario: Scenario) -> None:
    """Run the scenario in every schedule with at most one delay, usually every third: a test that is `larger`."""
    count = 0
    for history in explore(lambda: scenario(Shell()), delays=1, stride=bound(3, 1)):
        count += 1
        assert history.failure is None, f"{history.failure!r} in the schedule {history.schedule}"
    assert count > 20, "there was nothing to put into another order"


def at_every_step(scenario: ScenarioAt) -> None:
    """Run the scenario with 0, 1, 2 ... steps: it lets so many pass before it does what is tested."""
    for step in range(STEPS):
        failure = run_schedule(partial(scenario, Shell(), step), ()).failure
        assert failure is None, f"after {step} steps: {failure!r}"


def with_a_crash_at_every_step(scenario: Scenario, *, then: Scenario = after_crash) -> None:
    """Kill the shell after each step of the scenario; `then` is its next life."""
    step = 1
    shell = Shell()
    while run_to_crash(partial(scenario, shell), (), step):
        failure = run_schedule(partial(then, shell), ()).failure
        assert failure is None, f"killed after step {step}: {failure!r}"
        step, shell = step + 1, Shell()
    assert step > 10, "the scenario hardly moved"


async def later(steps: int, awaitable: Awaitable[T]) -> T:
    """Let so many steps pass first."""
    for _ in range(steps):
        await asyncio.sleep(0)
    return await awaitable


async def opened(shell: Shell) -> str:
    """A new session in an open workspace."""
    await shell.open()
    return await shell.session()


async def state_of(shell: Shell, run_id: str) -> str:
    return (await shell.workspace.runs.get(run_id)).state
