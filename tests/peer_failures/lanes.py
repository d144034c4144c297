"""A lane in which one run stands at a gate, and others wait behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from covey.protocol.events import PermissionRequest
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import CancelReceipt
from covey.tools.base import ToolOutput
from tests.support.engine import Engine, Gate, call, running, within


@asynccontextmanager
async def busy(directory: Path, *followers: str) -> AsyncIterator[tuple[Engine, Gate]]:
    """The run "a" has said "half " and stands at the gate; the followers are queued, each for a turn of its own."""
    async with running(directory) as engine:
        gate = Gate()
        engine.model.answer("half ", gate)
        await engine.post("a", "a")
        await gate.reached()
        for run_id in followers:
            await engine.post(run_id, run_id)
            await engine.told_state(run_id, "queued")
        yield engine, gate


async def in_a_tool(engine: Engine, gate: Gate, *, run_id: str = "a") -> None:
    """Post a prompt whose tool call stands at the gate."""
    engine.tool.act = standing_at(gate)
    engine.model.answer("I work. ", *call())
    await engine.post(run_id, run_id)
    await gate.reached()


async def asking(engine: Engine, prompt: str) -> PermissionRequest:
    """Post a prompt, as the run "a", whose tool call waits for somebody's permission."""
    engine.tool.harmless = False
    engine.model.answer(*call())
    await engine.post(prompt, "a")
    await engine.until(lambda: engine.workspace.asks.permissions())
    (request,) = engine.workspace.asks.permissions()
    return request


def standing_at(gate: Gate) -> Callable[[], Awaitable[ToolOutput]]:
    async def act() -> ToolOutput:
        await gate.pass_through()
        return ToolOutput("worked")

    return act


async def post_to(engine: Engine, session_id: str, run_id: str) -> None:
    await within(engine.workspace.runs.post(PostPrompt(session_id=session_id, prompt=run_id, run_id=run_id)))


def covered(receipt: CancelReceipt) -> dict[str, str]:
    """The runs that a cancel reached, and the state in which it found each."""
    return {run.run_id: run.state_found for run in receipt.covered}


async def states(engine: Engine, run_ids: str) -> list[str]:
    """How these runs, each named by a letter, have ended."""
    return [(await engine.ended(run_id)).state for run_id in run_ids]
