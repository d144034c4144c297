"""What the model sees after a summary, and around one: every provider must accept it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from covey.config.schema import Config, LimitSettings, ModelSettings
from covey.lifecycle import history
from covey.lifecycle.reply import UsageReported
from covey.models.base import ModelFailed
from covey.protocol.messages import (
    Attachment,
    BinaryPart,
    Message,
    Part,
    Role,
    Text,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from covey.protocol.requests import PostPrompt
from tests.support.engine import Gate, call, config, running, within

pytestmark = pytest.mark.anyio


def with_window(tokens: int) -> Config:
    base = config()
    model = ModelSettings(id="m", context_window=tokens)
    provider = msgspec.structs.replace(base.providers["test"], models=(model,))
    limits = LimitSettings(summarize_at=0.8)
    return msgspec.structs.replace(base, providers={"test": provider}, limits=limits)


def assert_accepted(messages: Sequence[Message]) -> None:
    """What all providers ask for: the user has the first word, and each result follows a call that asked for it."""
    assert messages[0].role == "user", f"{messages[0].role} has the first word"
    assert_whole(messages)


def assert_whole(messages: Sequence[Message]) -> None:
    open_calls: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert sorted(result.tool_call_id for result in message.tool_results) == sorted(open_calls)
            open_calls = []
            continue
        assert not open_calls, "a call has no result"
        if message.role == "assistant":
            open_calls = [tool_call.id for tool_call in message.tool_calls]
        else:
            assert not message.tool_calls, "a call that the user seems to have made: no format can say that"
    assert not open_calls, "a call has no result"


def message(number: int, role: Role, *parts: Part) -> Message:
    return Message(
        id=str(number), role=role, session_id="s", parts=parts, model="m", provider="p", created_at=1, updated_at=1
    )


def long_turn(steps: int) -> list[Message]:
    """One prompt, and many steps with a tool call each: what coding looks like."""
    messages = [message(0, "user", TextPart(data=Text(text="build it")))]
    for step in range(steps):
        tool_call = ToolCall(id=f"c{step}", name="view", input="{}", finished=True)
        result = ToolResult(tool_call_id=f"c{step}", name="view", content="word " * 80, metadata="", is_error=False)
        messages.append(message(2 * step + 1, "assistant", ToolCallPart(data=tool_call)))
        messages.append(message(2 * step + 2, "tool", ToolResultPart(data=result)))
    return messages


@pytest.mark.parametrize("tokens", range(0, 700, 50))
def test_a_conversation_is_never_cut_between_a_call_and_its_result(tokens: int) -> None:
    kept = history.shortened(long_turn(6), tokens)
    assert kept
    assert_whole(kept)


async def test_a_long_turn_that_is_cut_to_be_summarised_is_still_accepted(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(1000)) as engine:
        for number in range(8):
            engine.model.answer("word " * 90, *call(call_id=f"c{number}", subject=str(number)))
        await engine.post("build it", "a")
        await engine.ended("a")
        assert any(m.is_summary_message for m in engine.messages())
        for request in engine.model.requests:
            assert_accepted(request.messages)


async def test_a_summary_with_a_tool_call_leaves_a_conversation_that_every_provider_accepts(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(1000)) as engine:
        engine.model.answer("I look.", *call(), UsageReported(990, 10))
        engine.model.answer("They wanted a house. Let me look on.", *call(call_id="c2"))
        await engine.post("a house", "a")
        await engine.ended("a")
        await engine.post("and a door", "b")
        await engine.ended("b")
        for request in engine.model.requests:
            assert_accepted(request.messages)


async def test_a_summary_that_was_cut_short_is_not_seen_even_if_it_made_a_call(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(1000)) as engine:
        gate = Gate()
        engine.model.answer("I look.", *call(), UsageReported(990, 10))
        engine.model.answer("They wanted", *call(call_id="c2"), gate)
        await engine.post("a", "a")
        await gate.reached()
        await engine.cancel()
        await engine.ended("a")
        await engine.post("b", "b")
        await engine.ended("b")
        assert "They wanted" not in [seen.text for seen in engine.model.requests[-1].messages]


async def test_a_picture_in_the_prompt_is_still_seen_after_a_summary(tmp_path: Path) -> None:
    """It is what is being worked on: a summary cannot stand for it, and no tool can look at it again."""
    async with running(tmp_path, settings=with_window(1000)) as engine:
        engine.model.answer("done", UsageReported(990, 5))
        await engine.post("word " * 700, "before")
        await engine.ended("before")
        engine.model.answer("They said words.")
        picture = Attachment(file_path="", file_name="a.png", mime_type="image/png", content=b"\x89PNG\r\n\x1a\n")
        request = PostPrompt(session_id=engine.session_id, prompt="draw this", run_id="a", attachments=(picture,))
        await within(engine.workspace.runs.post(request))
        await engine.ended("a")
        assert any(m.is_summary_message for m in engine.messages())
        seen = engine.model.requests[-1].messages
        assert any(isinstance(part, BinaryPart) for m in seen for part in m.parts)


async def test_a_cancel_that_is_late_for_a_summary_does_not_call_it_cancelled(tmp_path: Path) -> None:
    """The session's summary is whole or it is none: a fork and an undo go by its finish reason."""
    async with running(tmp_path) as engine:
        await engine.post("one", "a")
        await engine.ended("a")
        gate = Gate()
        engine.model.answer("They said one.", gate)
        receipt = await engine.workspace.runs.summarize(engine.session_id)
        await gate.reached()
        gate.open()
        while not engine.workspace.sessions.get(engine.session_id).summary_message_id:
            await asyncio.sleep(0)
        covered = (await engine.cancel()).covered
        run = await engine.ended(receipt.run_id)
        assert (run.state, len(covered)) == ("cancelled", 1), "the cancel came too late to show anything"
        session = engine.workspace.sessions.get(engine.session_id)
        by_id = {m.id: m for m in engine.messages()}
        finish = by_id[session.summary_message_id].finish
        assert finish is not None and finish.reason == "end_turn"


async def test_an_overflow_in_the_middle_of_a_turn_is_summarised_from_what_is_accepted(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        for number in range(5):
            engine.model.answer("word " * 50, *call(call_id=f"c{number}", subject=str(number)))
        engine.model.answer(ModelFailed("test: too long", overflow=True))
        engine.model.answer("Five were made.")
        await engine.post("make five", "a")
        assert (await engine.ended("a")).state == "completed"
        for request in engine.model.requests:
            assert_accepted(request.messages)


async def test_results_that_come_out_of_order_stand_in_the_order_of_their_calls() -> None:
    calls = [ToolCallPart(data=ToolCall(id=f"c{n}", name="t", input="{}", finished=True)) for n in range(3)]
    results = [
        ToolResultPart(data=ToolResult(tool_call_id=f"c{n}", name="t", content=str(n), metadata="", is_error=False))
        for n in range(3)
    ]
    stored = [message(0, "user", TextPart(data=Text(text="go"))), message(1, "assistant", *calls)]
    stored += [message(2 + place, "tool", results[n]) for place, n in enumerate((2, 0, 1))]
    seen = history.for_model(stored)
    assert_accepted(seen)
    assert [result.content for result in seen[-1].tool_results] == ["0", "1", "2"]


async def test_a_summary_that_is_only_a_tool_call_leaves_no_call_open(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(1000)) as engine:
        engine.model.answer("I look.", *call(), UsageReported(990, 10))
        engine.model.answer(*call(call_id="c2"))
        engine.model.answer(*call(call_id="c3"))  # although there was no tool to call any more
        await engine.post("a house", "a")
        assert (await engine.ended("a")).state == "failed"
        await engine.post("and a door", "b")
        await engine.ended("b")
        for request in engine.model.requests:
            assert_accepted(request.messages)


async def test_a_summary_that_fails_after_a_tool_call_leaves_no_call_open(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(1000)) as engine:
        engine.model.answer("I look.", *call(), UsageReported(990, 10))
        engine.model.answer("They", *call(call_id="c2"), ModelFailed("test: broken"))
        await engine.post("a house", "a")
        assert (await engine.ended("a")).state == "failed"


async def test_what_the_model_sees_is_worked_out_once_for_each_message(tmp_path: Path) -> None:
    """Else it takes longer with every step, and nothing else happens in the server meanwhile."""
    with mock.patch.object(history, "for_model", wraps=history.for_model) as for_model:
        async with running(tmp_path, settings=with_window(1_000_000)) as engine:
            for number in range(9):
                engine.model.answer(*call(call_id=f"c{number}", subject=str(number)))
            await engine.post("a", "a")
            await engine.ended("a")
            assert len(engine.model.requests) == 10
    assert for_model.call_count == 10
    assert sum(len(done.args[0]) for done in for_model.call_args_list) == 1 + 9 * 2
