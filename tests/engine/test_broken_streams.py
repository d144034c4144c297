"""An answer that breaks off is taken back and asked for once more: visibly, a bounded number of times."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.engine.turns import answer_writer
from covey.lifecycle.reply import ToolCallBegun, ToolInputDelta, UsageReported
from covey.models import retry
from covey.models.base import ModelFailed
from covey.protocol.events import AgentEvent
from covey.protocol.messages import Message
from tests.support.engine import Engine, call, running

pytestmark = pytest.mark.anyio

ATTEMPTS = 5
"""What a provider has, unless its settings say otherwise."""


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "BASE_DELAY_S", 0.001)


def broken(text: str = "test: the answer was cut off") -> ModelFailed:
    return ModelFailed(text, broken=True)


def silent() -> ModelFailed:
    return ModelFailed("test: was silent for 120 s", broken=True, silent=True)


def states(engine: Engine) -> list[str]:
    """The text of each whole answer that was published, in order."""
    return [m.text for m in engine.of_type(Message) if m.role == "assistant"]


def retries(engine: Engine) -> Iterator[AgentEvent]:
    return (event for event in engine.of_type(AgentEvent) if event.type == "retry")


async def test_r8_an_answer_that_breaks_off_is_asked_for_again(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer("half an ans", broken())
        engine.model.answer("all of it")
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.state, run.text) == ("completed", "all of it")
        (event,) = retries(engine)
        assert (event.run_id, event.attempt, event.reason) == ("a", 1, "test: the answer was cut off")
        assert states(engine) == ["", "", "all of it"], "the second one takes the half answer back"
        assert list(engine.terminals()) == ["a"]
        first, second = engine.model.requests
        assert first.messages == second.messages, "the half answer is no part of the conversation"


async def test_calls_of_a_broken_answer_are_taken_back_and_never_run(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        half = (
            ToolCallBegun(0, "c0", "work"),
            ToolInputDelta(0, '{"subject": "never"}'),
            ToolCallBegun(1, "c9", "work"),
        )
        engine.model.answer("I look. ", *half, broken())
        engine.model.answer(*call(subject="once"))
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"
        assert engine.tool.calls == ["once"]
        assert [[c.id for c in m.tool_calls] for m in engine.messages() if m.tool_calls] == [["c1"]]


async def test_it_is_tried_as_often_as_the_provider_may_be_and_then_what_was_said_stays(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        for number in range(ATTEMPTS):
            engine.model.answer(f"half {number}", broken())
        await engine.post("a", "a")
        run = await engine.ended("a")
        error = f"test: the answer was cut off (tried {ATTEMPTS} times)"
        assert (run.state, run.error, run.text) == ("failed", error, f"half {ATTEMPTS - 1}")
        assert len(engine.model.requests) == ATTEMPTS
        assert [event.attempt for event in retries(engine)] == [1, 2, 3, 4]


@pytest.mark.parametrize("said", ["", "half"], ids=["before a word", "after some"])
async def test_a_silent_model_is_asked_twice_whenever_it_fell_silent(tmp_path: Path, said: str) -> None:
    async with running(tmp_path) as engine:
        for _ in range(ATTEMPTS):
            engine.model.answer(*filter(None, [said]), silent())
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.state, run.error) == ("failed", "test: was silent for 120 s (tried 2 times)")
        assert (run.text or "") == said
        assert len(engine.model.requests) == 2
        assert [event.reason for event in retries(engine)] == ["test: was silent for 120 s"]


async def test_a_silence_after_breaks_of_other_kinds_is_still_asked_once_more(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer("half", broken())
        engine.model.answer("half", broken())
        engine.model.answer(silent())
        engine.model.answer("all of it")
        await engine.post("a", "a")
        assert (await engine.ended("a")).text == "all of it"


async def test_what_a_broken_answer_cost_is_paid(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer("half", UsageReported(10, 2), broken())
        engine.model.answer("whole", UsageReported(10, 3))
        await engine.post("a", "a")
        await engine.ended("a")
        usage = engine.terminals()["a"].usage
        assert usage and (usage.prompt_tokens, usage.completion_tokens) == (20, 5)


async def test_other_failures_are_not_repeated(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer("half", ModelFailed("test: the answer is refused"))
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "failed"
        assert len(engine.model.requests) == 1


async def in_the_pause(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose answer broke off, and that waits for ever before it goes on."""
    monkeypatch.setattr(retry, "BASE_DELAY_S", 1000.0)
    monkeypatch.setattr(retry, "MAX_DELAY_S", 1000.0)
    monkeypatch.setattr(answer_writer, "CHECKPOINT_S", 0.0)
    engine.model.answer("half", broken())
    await engine.post("a", "a")
    await engine.until(lambda: any(retries(engine)))


async def test_r5_a_cancel_in_the_pause_leaves_the_half_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as engine:
        await in_the_pause(engine, monkeypatch)
        assert (await engine.workspace.runs.get("a")).waiting_on == "retry"
        await engine.cancel()
        run = await engine.ended("a")
        assert (run.state, run.text, run.error) == ("cancelled", "half", None)
        assert list(engine.terminals()) == ["a"]
        assert len(engine.model.requests) == 1


async def test_growth_saved_before_the_break_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint of the half answer may come due when the next one has begun."""
    monkeypatch.setattr(answer_writer, "CHECKPOINT_S", 0.0)
    async with running(tmp_path) as engine:
        for _ in range(3):
            engine.model.answer("half an ", "answer", broken())
        engine.model.answer("all ", "of it")
        await engine.post("a", "a")
        assert (await engine.ended("a")).text == "all of it"
        await asyncio.sleep(0)
        assert engine.messages()[-1].text == "all of it"
        assert engine.disk._tails == {}
