"""What is explored: small groups of clients whose commands may meet in any order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from covey.protocol.errors import ApiError, Conflict
from tests.sim.loop import Scenario
from tests.sim.shell import Shell


async def _all(*clients: Awaitable[Any]) -> None:
    """All clients at once; a refusal because the workspace is closing, or is elsewhere by now, is a fair answer."""
    for result in await asyncio.gather(*clients, return_exceptions=True):
        is_moved = isinstance(result, ApiError) and result.code == "workspace_moved"
        if isinstance(result, BaseException) and not isinstance(result, Conflict) and not is_moved:
            raise result


async def prompt_and_cancel(shell: Shell) -> None:
    """A prompt and a session cancel, wherever it hits."""
    await shell.open()
    session = await shell.session()
    await _all(shell.post(session, "tool"), shell.cancel(session))
    await shell.settle()


async def two_prompts_and_cancel(shell: Shell) -> None:
    """Two prompts with run ids and a cancel between, before or behind them; then one that must run."""
    await shell.open()
    session = await shell.session()
    await _all(shell.post(session, "a", run_id="a"), shell.post(session, "b", run_id="b"), shell.cancel(session))
    last = await shell.post(session, "last", run_id="last")
    await shell.settle()
    run = await shell.workspace.runs.get(last.run_id)
    assert run.state == "completed", f"a later prompt was poisoned: {run}"


async def fold_and_cancel_run(shell: Shell) -> None:
    """Prompts that may be folded into a turn with a tool call, while the host is cancelled by id."""
    await shell.open()
    session = await shell.session()
    await _all(
        shell.post(session, "tool", run_id="host"),
        shell.post(session, "more"),
        shell.post(session, "even more"),
        shell.cancel_run("host"),
    )
    await shell.settle()


async def failing_turn_hands_over(shell: Shell) -> None:
    """A turn that fails while others wait, one of which is dropped."""
    await shell.open()
    session = await shell.session()
    await _all(
        shell.post(session, "fail", run_id="f"),
        shell.post(session, "next", run_id="n"),
        shell.cancel_run("n"),
    )
    await shell.settle()


async def same_id_twice(shell: Shell) -> None:
    """The same run id from two clients at once, and a cancel by id that may overtake both."""
    await shell.open()
    session = await shell.session()
    await _all(
        shell.post(session, "same", run_id="x"),
        shell.post(session, "same", run_id="x"),
        shell.cancel_run("x"),
    )
    await shell.settle()


async def closing(shell: Shell) -> None:
    """The workspace closes while prompts come in and a turn is under way."""
    await shell.open()
    session = await shell.session()
    await _all(shell.post(session, "tool"), shell.post(session, "b", run_id="b"), shell.workspace.close(5.0))
    shell.check()


async def handing_over(shell: Shell) -> None:
    """The workspace goes to another node while prompts come in and a turn is under way: nothing is cut off (N10)."""
    await shell.open()
    session = await shell.session()
    await _all(shell.post(session, "tool", run_id="a"), shell.post(session, "b", run_id="b"), shell.hand_over())
    await shell.settle()
    for receipt in shell.accepted:
        run = await shell.workspace.runs.get(receipt.run_id)
        assert run.state in ("completed", "folded"), f"a hand-over did this: {run}"


async def losing(shell: Shell) -> None:
    """Another node takes the workspace, wherever that hits: each run ends once, and by that node (N2, N4)."""
    await shell.open()
    session = await shell.session()
    await _all(
        shell.post(session, "tool", run_id="a"),
        shell.post(session, "b", run_id="b"),
        shell.cancel_run("b"),
        shell.take_over(),
    )
    await shell.settle()
    await asyncio.gather(*shell.given_up.values())


SCENARIOS: dict[str, Callable[[Shell], Coroutine[Any, Any, None]]] = {
    scenario.__name__: scenario
    for scenario in (
        prompt_and_cancel,
        two_prompts_and_cancel,
        fold_and_cancel_run,
        failing_turn_hands_over,
        same_id_twice,
        closing,
        handing_over,
        losing,
    )
}


def fresh(name: str) -> Scenario:
    """The scenario in a world of its own."""
    return lambda: SCENARIOS[name](Shell())


async def after_crash(shell: Shell) -> None:
    """The next life: everything that was accepted, and everything that is in the store, must come to its end."""
    shell.begin_next_life()
    await shell.open()
    await shell.settle()
