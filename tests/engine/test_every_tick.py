"""A cancel, or a client that goes away, at each single step of a turn: on the deterministic loop of the simulation."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from covey.lifecycle.decisions import QueueChange
from tests.sim.loop import run_schedule
from tests.sim.shell import Shell

PROMPTS = ("plain", "tool", "fail")


async def steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def explore(scenario: Callable[[Shell, int], Awaitable[bool]]) -> int:
    """Run the scenario with 0, 1, 2 ... steps until it says that there was nothing left to meet; gives how many."""
    for count in range(1000):
        met: list[bool] = []

        async def run(count: int = count, met: list[bool] = met) -> None:
            met.append(await scenario(Shell(), count))

        failure = run_schedule(run, ()).failure
        assert failure is None, f"after {count} steps: {failure!r}"
        if not met[0]:
            return count
    raise AssertionError("it never came to an end")


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_cancel_at_each_step_of_a_turn(prompt: str) -> None:
    async def scenario(shell: Shell, count: int) -> bool:
        await shell.open()
        session = await shell.session()
        await shell.post(session, prompt, run_id="a")
        await shell.post(session, "next", run_id="b", mode="own_turn")
        await steps(count)
        await shell.cancel_run("a")
        await shell.settle()
        assert (await shell.workspace.runs.get("b")).state == "completed"
        return "a" in shell.cancelled

    assert explore(scenario) > 3


def test_a_cancel_of_the_session_at_each_step_of_a_turn_with_followers() -> None:
    async def scenario(shell: Shell, count: int) -> bool:
        await shell.open()
        session = await shell.session()
        await shell.post(session, "tool", run_id="a")
        await shell.post(session, "folds in")
        await shell.post(session, "waits", run_id="c")
        await steps(count)
        await shell.cancel(session)
        await shell.post(session, "later", run_id="d")
        await shell.settle()
        assert (await shell.workspace.runs.get("d")).state == "completed"
        return bool(shell.cancelled)

    assert explore(scenario) > 10


def test_closing_at_each_step_of_a_turn() -> None:
    async def scenario(shell: Shell, count: int) -> bool:
        await shell.open()
        session = await shell.session()
        posting = asyncio.ensure_future(shell.post(session, "tool", run_id="a"))
        await steps(count)
        done = not shell.workspace.is_busy and count > 0
        await shell.workspace.close(5.0)
        with contextlib.suppress(Exception):
            await posting
        shell.check()
        return not done

    assert explore(scenario) > 3


# ── clients that go away ──


async def leave_after(request: Awaitable[object], count: int) -> bool:
    """Make a request and go away after so many steps; False if it had been answered by then."""
    task = asyncio.ensure_future(request)
    await steps(count)
    left = task.cancel()
    await asyncio.wait({task})
    return left


def test_who_posted_a_prompt_may_leave_at_any_step() -> None:
    async def scenario(shell: Shell, count: int) -> bool:
        await shell.open()
        session = await shell.session()
        left = await leave_after(shell.post(session, "tool", run_id="a"), count)
        await shell.post(session, "next", run_id="b", mode="own_turn")
        await shell.settle()
        ran = [run.run_id for run in shell.store.runs("w", "", "completed", 10)]
        assert "b" in ran
        assert "a" in ran or (left and count == 0), f"a prompt that was taken in is gone: {ran}"
        return left

    assert explore(scenario) > 1


@pytest.mark.parametrize("what", ["cancel", "cancel_run", "clear", "edit", "remove"])
def test_who_asked_for_something_else_may_leave_at_any_step(what: str) -> None:
    async def scenario(shell: Shell, count: int) -> bool:
        workspace = await shell.open()
        session = await shell.session()
        await shell.post(session, "tool", run_id="a")
        await shell.post(session, "waits", run_id="b")
        lane = workspace._parts.lanes.open(session)
        requests: dict[str, Callable[[], Awaitable[object]]] = {
            "cancel": lane.cancel,
            "cancel_run": partial(workspace.runs.cancel, "a"),
            "clear": lane.clear_queue,
            "edit": partial(lane.edit, "b", QueueChange("better")),
            "remove": partial(lane.remove, "b"),
        }
        left = await leave_after(requests[what](), count)
        await shell.post(session, "next", run_id="c", mode="own_turn")
        await shell.settle()
        assert (await workspace.runs.get("c")).state == "completed"
        return left

    assert explore(scenario) > 0
