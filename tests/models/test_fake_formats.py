"""The fake model says the same in every wire format, and understands what it is asked in each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from covey.protocol.messages import ToolCall, ToolCallPart, ToolResult, ToolResultPart
from tests.models.asking import answer, message, request
from tests.models.fixtures import FORMATS, Collected, Format, collected
from tests.support.fake_model import Call, FakeModel, Reply

pytestmark = pytest.mark.anyio


@pytest.fixture(params=FORMATS)
def wire(request: pytest.FixtureRequest) -> Format:
    return FORMATS[request.param]


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as model:
        yield model


async def said(wire: Format, model: FakeModel, asked: Any = "hello") -> Collected:
    client = wire.client(model.url.removesuffix("/v1"))
    try:
        return collected(await answer(client, asked))
    finally:
        await client.aclose()


async def test_words_thoughts_and_calls(wire: Format, model: FakeModel) -> None:
    tools = (Call(name="bash", input={"command": "ls"}, id="a", pieces=3), Call(name="ls", input={"path": "x"}, id="b"))
    model.on(lambda _: Reply(reasoning="hm", text="word {n} ", chunks=3, tools=tools, usage=(70, 30)))
    found = await said(wire, model)
    assert (found.text, found.reasoning, found.usage) == ("word 0 word 1 word 2 ", "hm", (70, 30, 0))
    calls = [(call_id, name, json.loads(text)) for call_id, name, text in found.calls]
    assert calls == [("a", "bash", {"command": "ls"}), ("b", "ls", {"path": "x"})]
    assert found.stop == "tool_use"


@pytest.mark.parametrize(("finish", "stop"), [("", "end_turn"), ("length", "max_tokens")])
async def test_reasons(wire: Format, model: FakeModel, finish: str, stop: str) -> None:
    model.on(lambda _: Reply(finish=finish))
    assert (await said(wire, model)).stop == stop


async def test_the_prompt_says_what_happens_at_each_step(wire: Format, model: FakeModel) -> None:
    prompt = 'Work. [[{"tools": [{"name": "ls"}, {"name": "ls"}]}, {"text": "done"}]]'
    first = await said(wire, model, prompt)
    assert len(first.calls) == 2
    calls = [ToolCall(id=call_id, name=name, input=text or "{}", finished=True) for call_id, name, text in first.calls]
    results = [
        ToolResult(tool_call_id=call.id, name=call.name, content="a.py", metadata="", is_error=False) for call in calls
    ]
    asked = request(
        message("user", "before"),
        message("assistant", "yes"),
        message("user", prompt),
        message("assistant", "I look.", *(ToolCallPart(data=call) for call in calls)),
        message("tool", *(ToolResultPart(data=result) for result in results)),
    )
    assert (await said(wire, model, replace(asked, model="fake"))).text == "done"
    assert [sent.call_number for sent in model.requests] == [0, 1]
    assert {sent.prompt for sent in model.requests} == {prompt}
