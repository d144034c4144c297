"""What is recorded of a turn that has no whole answer: whose it would have been, what stopped it, what it said."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from covey.config.schema import Config, ModelChoice, ModelSettings, ProviderSettings
from covey.engine.recorder import Batch
from covey.lifecycle.reply import ReasoningDelta
from covey.models.base import ModelFailed
from covey.protocol.messages import Message, Reasoning, ReasoningPart
from covey.protocol.requests import PostPrompt
from tests.engine.test_review_agents import Delegates, child_of, use
from tests.support.engine import Engine, Gate, call, config, running, within

pytestmark = pytest.mark.anyio


def two_models(large: str = "test/m") -> Config:
    provider = ProviderSettings(type="scripted", models=(ModelSettings(id="m"), ModelSettings(id="other")))
    return structs.replace(config(), providers={"test": provider}, models=ModelChoice(large=large))


async def cancelled_on_entry(engine: Engine, **options: Any) -> Message:
    """The answer that is recorded of such a run."""
    engine.disk.hold()
    request = PostPrompt(session_id=engine.session_id, prompt="hello", run_id="a", **options)
    posting = await engine.soon(engine.workspace.runs.post(request))
    cancelling = await engine.soon(engine.cancel())
    engine.disk.release()
    await within(posting)
    await within(cancelling)
    assert (await engine.ended("a")).state == "cancelled"
    return engine.messages()[-1]


def named(answer: Message) -> tuple[str, str]:
    return answer.provider, answer.model


async def test_a_run_that_was_cancelled_on_entry_names_the_model_that_would_have_answered(tmp_path: Path) -> None:
    async with running(tmp_path, settings=two_models()) as engine:
        answer = await cancelled_on_entry(engine)
        assert named(answer) == ("test", "m")
        assert answer.finish and answer.finish.message == "Stopped by the user"


async def test_it_names_the_model_that_the_run_asked_for(tmp_path: Path) -> None:
    async with running(tmp_path, settings=two_models()) as engine:
        assert named(await cancelled_on_entry(engine, model="test/other")) == ("test", "other")


async def test_it_names_the_model_of_the_session(tmp_path: Path) -> None:
    async with running(tmp_path, settings=two_models()) as engine:
        engine.workspace._parts.book.change(engine.session_id, model="test/other")
        assert named(await cancelled_on_entry(engine)) == ("test", "other")


async def test_a_model_that_nobody_knows_is_not_named_and_hinders_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, settings=two_models()) as engine:
        engine.workspace._parts.book.change(engine.session_id, model="nobody/knows")
        assert named(await cancelled_on_entry(engine)) == ("", "")


async def test_an_interrupted_run_without_an_answer_names_its_model_too(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.disk.keeps_copies = True
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("hello", "a")
        await gate.reached()
        before = next(disk for disk in engine.disk.copies if len(disk.messages("w", engine.session_id, "", 0)) == 1)
        await engine.cancel()
    async with running(tmp_path, store=before) as engine:
        assert (await engine.ended("a")).state == "interrupted"
        assert named(engine.messages()[-1]) == ("test", "m")


async def test_a_run_that_a_shutdown_stopped_says_so(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer("half ", gate)
        await engine.post("hello", "a")
        await gate.reached()
        await engine.close()
        finish = engine.messages()[-1].finish
        assert finish and (finish.reason, finish.message) == ("canceled", "Stopped by a shutdown")


@pytest.mark.parametrize("way", ["cancelled", "failed"])
async def test_the_terminal_event_has_the_text_so_far_as_the_run_has(tmp_path: Path, way: str) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer("half an ans", gate, ModelFailed("test: no"))
        await engine.post("hello", "a")
        await gate.reached()
        if way == "failed":
            gate.open()
        else:
            await engine.cancel()
        run = await engine.ended("a")
        assert (run.state, run.text) == (way, "half an ans")
        assert engine.terminals()["a"].text == run.text


async def test_a_folded_run_has_the_text_of_the_turn_that_was_cancelled(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gates = [Gate(), Gate()]
        engine.model.answer("I look", gates[0], *call())
        engine.model.answer("half an ans", gates[1])
        host = (await engine.post("hello")).run_id
        await gates[0].reached()
        folded = (await engine.post("and hello")).run_id
        gates[0].open()
        await gates[1].reached()
        await engine.cancel()
        texts = [(await engine.ended(run_id)).text for run_id in (host, folded)]
        assert texts == [engine.terminals()[run_id].text for run_id in (host, folded)] == ["half an ans"] * 2


async def test_half_the_answer_of_an_agent_that_was_cancelled_is_no_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Delegates())
        gate = Gate()
        engine.model.answer(*call("delegates", text="look"))
        engine.model.answer("It is in", gate)
        await engine.post("find it", "a")
        await gate.reached()
        (child,) = [run for run in engine.workspace._parts.lanes.open_runs() if run.session_id == child_of(engine).id]
        await within(engine.workspace.runs.cancel(child.run_id))
        assert (await engine.ended("a")).state == "completed"
        (result,) = [found for one in engine.messages() for found in one.tool_results]
        assert result.is_error and "it was cancelled" in result.content
        assert "It is in" not in result.content


# ── thoughts ──


def thoughts(message: Message) -> list[Reasoning]:
    return [part.data for part in message.parts if isinstance(part, ReasoningPart)]


async def test_a_stored_thought_knows_when_it_began_and_ended(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        seconds = itertools.count(1_000)
        engine.shared.world.now = lambda: float(next(seconds))
        engine.model.answer(ReasoningDelta("h"), ReasoningDelta("m"), "done")
        await engine.post("hello", "a")
        await engine.ended("a")
        answer = engine.messages()[-1]
        (thought,) = thoughts(answer)
        assert thought.started_at is not None and thought.finished_at is not None and answer.finish
        assert answer.created_at < thought.started_at < thought.finished_at <= answer.finish.time


async def test_a_crash_in_the_middle_of_a_thought_keeps_it_and_makes_up_no_times(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(ReasoningDelta("h"), *call()[:1], ReasoningDelta("so"), gate)
        await engine.post("hello", "a")
        await gate.reached()
        while not engine.disk._tails:  # until the second thought is saved as growth, which no event tells of
            await within(engine.workspace._parts.recorder.write(Batch()))
        disk = engine.disk.copy()
    async with running(tmp_path, store=disk) as engine:
        assert (await engine.ended("a")).state == "interrupted"
        first, second = thoughts(engine.messages()[1])
        assert (first.thinking, second.thinking) == ("h", "so")
        assert first.started_at and first.finished_at
        assert (second.started_at, second.finished_at) == (None, None)
