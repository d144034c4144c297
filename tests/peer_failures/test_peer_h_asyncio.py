"""H: what Python's own machinery may do to a cancel, a thread or a task."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path

import pytest

from covey.tools.base import ToolOutput
from covey.tools.threads import in_thread
from tests.peer_failures.lanes import busy, states
from tests.support.engine import Gate, call, running

pytestmark = pytest.mark.anyio


async def test_h1_a_turn_whose_wake_up_was_swallowed_stops_all_the_same(tmp_path: Path) -> None:
    """`wait_for` of Python 3.11 swallows a cancel that comes as its future completes; so may any library."""
    async with running(tmp_path) as engine:
        gate = Gate()

        async def act() -> ToolOutput:
            with pytest.raises(asyncio.CancelledError):
                await gate.pass_through()
            return ToolOutput("finished in the same moment")

        engine.tool.act = act
        engine.model.answer(*call(call_id="c1"), *call(call_id="c2", index=1))
        await engine.post("a", "a")
        await gate.reached()
        await engine.cancel()
        assert (await engine.ended("a")).state == "cancelled"
        assert (len(engine.tool.calls), len(engine.model.requests)) == (1, 1)
        results = [result for message in engine.messages() for result in message.tool_results]
        assert [result.is_error for result in results] == [False, True]


async def test_h2_who_waits_for_something_that_cannot_be_cancelled_is_cancelled_afterwards() -> None:
    done = threading.Event()
    waiting = asyncio.create_task(in_thread(done.wait))
    for _ in range(3):
        await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    done.set()
    await asyncio.wait({waiting}, timeout=30)
    assert waiting.cancelled()


async def test_h3_no_run_starts_in_a_session_while_a_thread_of_the_last_one_works(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        began, done = threading.Event(), threading.Event()

        def work() -> ToolOutput:
            began.set()
            assert done.wait(30)
            return ToolOutput("worked")

        engine.tool.act = lambda: in_thread(work)
        engine.model.answer(*call())
        await engine.post("a", "a")
        await asyncio.to_thread(began.wait, 30)
        await engine.workspace.runs.cancel("a")
        assert (await engine.post("b", "b")).state == "queued"
        assert len(engine.model.requests) == 1
        done.set()
        assert await states(engine, "ab") == ["cancelled", "completed"]


async def test_h4_a_run_that_nobody_holds_is_kept_alive_and_its_failure_is_told(tmp_path: Path) -> None:
    async with busy(tmp_path) as (engine, gate):
        engine.model.answer(ValueError("broken"))
        await engine.post("b", "b")
        gc.collect()
        gate.open()
        assert await states(engine, "ab") == ["completed", "failed"]
        assert engine.terminals()["b"].error == "internal error: ValueError: broken"
