"""Turns that do not stop when told to, and the tools they use: nothing happens after the end of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from covey.engine.recorder import Batch
from covey.lifecycle.reply import Stopped, ToolCallBegun, ToolInputDelta
from covey.models.base import ModelFailed
from covey.tools.base import ToolFailed, ToolOutput
from tests.support.engine import Gate, Stubborn, call, config, running, within

pytestmark = pytest.mark.anyio


# ── bodies that do not stop ──


@pytest.mark.parametrize("then", [("text",), call(), (ModelFailed("late"),), (KeyError("late"),), ()])
async def test_a_body_that_ignores_the_cancel_is_abandoned(tmp_path: Path, then: tuple[object, ...]) -> None:
    async with running(tmp_path, settings=config(grace_s=0.01)) as engine:
        gate = Stubborn()
        engine.model.answer("half ", gate, *then)  # type: ignore[arg-type]
        await engine.post("a", "a")
        await gate.reached()
        await engine.cancel()
        assert (await engine.ended("a")).state == "cancelled"
        await engine.post("b", "b")
        assert (await engine.ended("b")).state == "completed"
        told, stored = len(engine.events), engine.transcript()
        gate.open()
        while engine.model.open_streams:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        await within(engine.workspace._parts.recorder.write(Batch()))
        assert len(engine.events) == told, "an abandoned turn spoke after its run had ended"
        assert engine.transcript() == stored
        assert engine.tool.calls == [], "an abandoned turn went on to work"


async def test_a_stream_that_swallows_the_cancel_and_then_ends_does_not_go_on_to_its_tools(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(grace_s=0.01)) as engine:
        gate = Stubborn()
        engine.model.answer(*call(), Stopped("tool_use"), gate)
        await engine.post("a", "a")
        await gate.reached()
        await engine.cancel()
        await engine.ended("a")
        told = len(engine.events)
        gate.open()
        while engine.model.open_streams:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        await within(engine.workspace._parts.recorder.write(Batch()))
        assert len(engine.events) == told
        assert engine.tool.calls == []


async def test_a_tool_that_ignores_the_cancel_is_abandoned_and_its_call_is_closed(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(grace_s=0.01)) as engine:
        gate = Stubborn()

        async def act() -> ToolOutput:
            await gate.pass_through()
            return ToolOutput("too late")

        engine.tool.act = act
        engine.model.answer(*call(call_id="c1"), *call(call_id="c2", index=1))
        await engine.post("a", "a")
        await gate.reached()
        await engine.cancel()
        await engine.ended("a")
        results = [result for message in engine.messages() for result in message.tool_results]
        assert [(result.tool_call_id, result.is_error) for result in results] == [("c1", True), ("c2", True)]
        gate.open()
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(engine.tool.calls) == 1
        assert "too late" not in [result.content for message in engine.messages() for result in message.tool_results]


@pytest.mark.parametrize("how", ["cancel", "failure"])
async def test_a_tool_call_that_was_still_being_written_is_closed_with_a_result(tmp_path: Path, how: str) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        begun, half = ToolCallBegun(0, "c1", "work"), ToolInputDelta(0, '{"subj')
        engine.model.answer("I look. ", begun, half, gate, ModelFailed("cut off"))
        await engine.post("a", "a")
        await gate.reached()
        if how == "cancel":
            await engine.cancel()
        gate.open()
        await engine.ended("a")
        *_, answer, result = engine.messages()
        assert [(call.id, call.finished) for call in answer.tool_calls] == [("c1", True)]
        assert [(r.tool_call_id, r.is_error) for r in result.tool_results] == [("c1", True)]
        assert engine.tool.calls == []


# ── tools ──


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ToolFailed("There is no such file."), "There is no such file."),
        (RuntimeError("odd"), "The tool failed: RuntimeError: odd"),
    ],
)
async def test_a_tool_that_fails_is_an_answer_for_the_model(tmp_path: Path, error: Exception, expected: str) -> None:
    async with running(tmp_path) as engine:

        async def act() -> ToolOutput:
            raise error

        engine.tool.act = act
        engine.model.answer(*call())
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"
        (result,) = [result for message in engine.messages() for result in message.tool_results]
        assert (result.content, result.is_error) == (expected, True)
        assert [m.role for m in engine.model.requests[-1].messages] == ["user", "assistant", "tool"]


async def test_a_tool_that_is_not_there_or_gets_nonsense_is_an_answer_for_the_model(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer(*call("fly"), *call(call_id="c2", index=1, subject=3))
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"
        missing, invalid = [result for message in engine.messages() for result in message.tool_results]
        assert "There is no tool 'fly'. There are: work." in missing.content
        assert "is not valid" in invalid.content


async def test_whoever_calls_a_tool_that_is_not_there_is_told_of_those_that_were_offered(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    async with running(tmp_path, project=tmp_path / "project") as engine:
        engine.model.answer(*call("fly"))
        await engine.post("a", "a")
        await engine.ended("a")
        (missing,) = [result for message in engine.messages() for result in message.tool_results]
        offered = [tool.name for tool in engine.model.requests[0].tools]
        assert missing.content == f"There is no tool 'fly'. There are: {', '.join(offered)}."
        assert "apply_patch" not in offered and "skill" not in offered


async def test_text_that_no_file_can_hold_does_not_fail_the_run(tmp_path: Path) -> None:
    """A file name that is not UTF-8 reaches Python as lone surrogates; JSON has no place for them."""
    async with running(tmp_path) as engine:

        async def act() -> ToolOutput:
            return ToolOutput("a file named \udcff")

        engine.tool.act = act
        engine.model.answer(*call())
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"


async def test_a_model_that_goes_round_in_circles_is_stopped(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        for number in range(20):
            engine.model.answer(*call(call_id=f"c{number}"))
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.state, run.error) == (
            "failed",
            "stopped: work was called again and again with the same input and result",
        )


async def test_a_turn_has_a_bounded_number_of_steps(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(steps=3)) as engine:
        for number in range(5):
            engine.model.answer("I look. ", *call(call_id=f"c{number}", subject=str(number)))
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.state, len(engine.model.requests)) == ("failed", 4), "three steps, and a last word"
        assert len(engine.tool.calls) == 3, "the last word runs no tool"
        assert "limits.steps_per_run" in (run.error or "")
