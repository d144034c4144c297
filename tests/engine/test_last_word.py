"""At a bound the model has one last word, in which no tool is run; then the run ends as failed, with the reason."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from covey.config.schema import Config, LimitSettings, ModelSettings
from covey.lifecycle.budget import LOOP_REPEATS, SUMMARIES_IN_A_ROW
from covey.lifecycle.fitting import tokens_of
from covey.lifecycle.reply import UsageReported
from covey.models.base import ModelFailed
from covey.protocol.endings import CallEnd, call_end
from covey.tools.base import ToolOutput
from tests.support.engine import Engine, Gate, call, config, running

pytestmark = pytest.mark.anyio


def steps(engine: Engine, count: int) -> None:
    for number in range(count):
        engine.model.answer(*call(call_id=f"c{number}", subject=str(number)))


async def test_the_last_word_at_a_bound_is_the_text_of_the_run(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(steps=2)) as engine:
        steps(engine, 2)
        engine.model.answer("Half of it is done.")
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.state, run.text, run.at_bound) == ("failed", "Half of it is done.", True)
        assert [terminal.at_bound for terminal in engine.terminals().values()] == [True]
        assert "after 2 steps" in (run.error or "")
        asked = engine.model.requests[-1].messages[-1]
        assert asked.role == "user" and "stopped after 2 steps" in asked.text
        assert [message.text for message in engine.messages() if message.role == "user"] == ["a"], "it is not stored"


async def test_a_tool_call_beside_the_words_of_the_last_one_is_closed_and_not_run(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(steps=1)) as engine:
        steps(engine, 1)
        engine.model.answer("Half of it is done.", *call(call_id="c1", subject="1"))
        await engine.post("a", "a")
        assert (await engine.ended("a")).text == "Half of it is done."
        assert len(engine.tool.calls) == 1
        results = [result for message in engine.messages() for result in message.tool_results]
        assert [call_end(result) for result in results] == [CallEnd.ANSWERED, CallEnd.NOT_BEGUN]
        assert [request.may_call for request in engine.model.requests] == [True, False]
        assert engine.model.requests[0].tools == engine.model.requests[1].tools, "the conversation has calls of them"


async def test_a_last_word_of_calls_alone_is_asked_for_again_without_tools(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(steps=1)) as engine:
        steps(engine, 2)
        engine.model.answer("Half of it is done.")
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.state, run.text, len(engine.tool.calls)) == ("failed", "Half of it is done.", 1)
        assert [bool(request.tools) for request in engine.model.requests] == [True, True, False]
        results = [result for message in engine.messages() for result in message.tool_results]
        assert [call_end(result) for result in results] == [CallEnd.ANSWERED], "the calls were taken back"


async def test_calls_that_come_without_any_tools_are_closed_and_not_run(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(steps=1)) as engine:
        steps(engine, 3)
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.text, len(engine.tool.calls), len(engine.model.requests)) == (None, 1, 3)
        results = [result for message in engine.messages() for result in message.tool_results]
        assert [call_end(result) for result in results] == [CallEnd.ANSWERED, CallEnd.NOT_BEGUN]


async def test_a_last_word_that_fails_changes_nothing_of_the_reason(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(steps=1)) as engine:
        steps(engine, 1)
        engine.model.answer("half ", ModelFailed("gone"))
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.state, run.text) == ("failed", "half ")
        assert "after 1 step" in (run.error or "")


async def test_a_cancel_during_the_last_word_is_a_cancel(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(steps=1)) as engine:
        steps(engine, 1)
        gate = Gate()
        engine.model.answer("half ", gate)
        await engine.post("a", "a")
        await gate.reached()
        await engine.cancel()
        run = await engine.ended("a")
        assert (run.state, run.error, run.at_bound) == ("cancelled", None, False)


async def test_a_turn_that_summarises_after_each_step_is_stopped_with_advice(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(1_000)) as engine:
        for number in range(SUMMARIES_IN_A_ROW + 1):
            engine.model.answer(*call(call_id=f"c{number}", subject=str(number)), UsageReported(900, 50))
            engine.model.answer(f"summary {number}")
        engine.model.answer("Half of it is done.")
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.state, run.text, run.at_bound) == ("failed", "Half of it is done.", True)
        assert "summarised after each single step" in engine.model.requests[-1].messages[-1].text
        assert "summarised after each single step" in (run.error or "") and "1000 tokens" in (run.error or "")
        summaries = [message for message in engine.messages() if message.is_summary_message]
        assert len(summaries) == SUMMARIES_IN_A_ROW + 1


async def test_a_last_word_about_a_long_conversation_is_asked_for_with_what_fits(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(40_000, summarize_at=0)) as engine:

        async def act() -> ToolOutput:
            return ToolOutput("line\n" * 5_400)

        engine.tool.act = act
        for number in range(LOOP_REPEATS + 1):
            engine.model.answer(*call(call_id=f"c{number}"))
        engine.model.answer("I went round in circles.")
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.text, run.at_bound) == ("I went round in circles.", True)
        assert tokens_of(engine.model.requests[-1].messages) < tokens_of(engine.model.requests[-2].messages)


async def test_a_last_word_that_is_refused_as_too_long_is_asked_for_with_half(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(steps=2)) as engine:
        steps(engine, 2)
        engine.model.answer(ModelFailed("test: too long", overflow=True))
        engine.model.answer("Half of it is done.")
        await engine.post("word " * 3_000, "a")
        assert (await engine.ended("a")).text == "Half of it is done."


async def test_nothing_was_done_so_there_is_no_last_word(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(config(), limits=LimitSettings(cost_per_session=0.1))
    async with running(tmp_path, settings=settings) as engine:
        engine.model.answer("a", UsageReported(1, 1, cost=0.2))
        await engine.post("a", "a")
        await engine.ended("a")
        await engine.post("b", "b")
        assert (await engine.ended("b")).at_bound and len(engine.model.requests) == 1


def with_window(tokens: int, summarize_at: float = 0.8) -> Config:
    base = config()
    provider = msgspec.structs.replace(base.providers["test"], models=(ModelSettings(id="m", context_window=tokens),))
    return msgspec.structs.replace(base, providers={"test": provider}, limits=LimitSettings(summarize_at=summarize_at))
