"""What Ollama is asked about itself, and what people are warned of."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from covey.config.schema import ModelSettings, ProviderSettings
from covey.lifecycle.reply import ReasoningDelta, Stopped, TextDelta, ToolCallBegun, ToolInputDelta, UsageReported
from covey.models.base import KnowsWindows, ModelFailed, ToolSpec
from covey.models.connect import open_client
from covey.models.ollama import Ollama
from covey.models.openai_compatible import OpenAICompatible
from covey.protocol.messages import Reasoning, ReasoningPart, ToolCall, ToolCallPart, ToolResult, ToolResultPart
from tests.models.asking import answer, client, message, request
from tests.support.fake_model import FakeModel

pytestmark = pytest.mark.anyio

LONG = "word " * 5000
LOOKED = ["/api/show", "/api/generate", "/api/ps"]


def pages(running: list[Any], parameters: str = "") -> dict[str, str]:
    shown = {"parameters": parameters, "model_info": {"general.architecture": "qwen", "qwen.context_length": 40_960}}
    return {
        "/api/show": json.dumps(shown),
        "/api/generate": json.dumps({"model": "big", "done": True, "done_reason": "load"}),
        "/api/ps": json.dumps({"models": running}),
    }


@pytest.mark.parametrize(
    ("name", "url", "expected"),
    [
        ("ollama", "http://127.0.0.1:9999/v1", Ollama),
        ("mine", "http://localhost:11434/v1", Ollama),
        ("ollama", "https://models.example.com/v1", OpenAICompatible),
        ("mine", "http://127.0.0.1:8080/v1", OpenAICompatible),
    ],
)
def test_it_is_known_by_its_name_or_its_port_on_this_machine_alone(name: str, url: str, expected: type[object]) -> None:
    assert type(open_client(name, ProviderSettings(type="openai-compatible", base_url=url))) is expected


async def test_a_window_that_is_too_small_is_warned_of_once(model: FakeModel) -> None:
    model.pages = pages([{"name": "small:latest"}, {"name": "big:latest", "context_length": 4096}])
    warnings: list[str] = []
    async with client(model.url, Ollama) as opened:
        for _ in range(2):
            assert (await answer(opened, request(LONG, on_warning=warnings.append)))[-1] == Stopped("end_turn")
        assert isinstance(opened, KnowsWindows) and opened.window_of("big") == 4096
    (warning,) = warnings
    assert "a window of 4,096 tokens" in warning and "some 6," in warning
    assert "OLLAMA_CONTEXT_LENGTH=40960" in warning, "no more than the model can have"
    assert model.pages_asked == LOOKED


@pytest.mark.parametrize(
    ("running", "parameters", "window"),
    [
        ([{"model": "big", "context_length": 32_768}], "num_ctx 8192", 32_768),
        ([], 'stop "x"\nnum_ctx                        8192\ntop_p 1', 8192),
        ([{"name": "other", "context_length": 4096}], "", 0),
    ],
)
async def test_the_window_is_that_of_the_loaded_model(
    model: FakeModel, running: list[Any], parameters: str, window: int
) -> None:
    model.pages = pages(running, parameters)
    warnings: list[str] = []
    async with client(model.url, Ollama) as opened:
        await answer(opened, request(LONG, on_warning=warnings.append))
        assert isinstance(opened, KnowsWindows) and opened.window_of("big") == window
    assert warnings == []


@pytest.mark.parametrize("found", [{}, {"/api/show": "no JSON"}, {"/api/show": "[" * 10_000}])
async def test_whatever_else_listens_there_is_asked_as_usual(model: FakeModel, found: dict[str, str]) -> None:
    model.pages = found
    async with client(model.url, Ollama) as opened:
        assert (await answer(opened, LONG))[-1] == Stopped("end_turn")
    assert model.pages_asked == list(found)


# ── its own chat, which takes num_ctx ──

LINES = [
    {"message": {"role": "assistant", "content": "", "thinking": "hm"}, "done": False},
    {"message": {"role": "assistant", "content": "I "}, "done": False},
    {"message": {"role": "assistant", "content": "look."}, "done": False},
    {"message": {"content": "", "tool_calls": [{"function": {"name": "view", "arguments": {"file_path": "a"}}}]}},
    {"message": {"content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 3},
]
WISHED = (ModelSettings(id="big", context_window=32_768),)


def ndjson(*lines: object) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


async def test_9_a_window_that_is_set_is_asked_for_with_every_request(model: FakeModel) -> None:
    model.pages = {"/api/chat": ndjson(*LINES)}
    call = ToolCallPart(data=ToolCall(id="c1", name="view", input='{"file_path": "a"}', finished=True))
    came = ToolResultPart(data=ToolResult(tool_call_id="c1", name="view", content="text", metadata="", is_error=False))
    tool = ToolSpec("view", "Look.", {"type": "object", "properties": {}})
    thought = ReasoningPart(data=Reasoning(thinking="hm", signature=""))
    asked = request("hello", message("assistant", thought, "I look.", call), message("tool", came), system="Be brief.")
    asked = replace(asked, tools=[tool], max_tokens=100)
    async with client(model.url, Ollama, models=WISHED) as opened:
        assert isinstance(opened, KnowsWindows) and opened.window_of("big") == 32_768
        facts = await answer(opened, asked)
    assert model.pages_asked == ["/api/chat"], "nothing has to be looked up"
    assert [type(fact) for fact in facts] == [
        *(ReasoningDelta, TextDelta, ToolCallBegun, ToolInputDelta, UsageReported, Stopped)
    ]
    assert facts[1] == TextDelta("I look.") and facts[3] == ToolInputDelta(0, '{"file_path":"a"}')
    assert facts[4:] == [UsageReported(7, 3), Stopped("tool_use")]
    body = json.loads(model.page_bodies[0])
    assert body["options"] == {"num_ctx": 32_768, "num_predict": 100}
    assert [tool["function"]["name"] for tool in body["tools"]] == ["view"]
    calls = [{"function": {"name": "view", "arguments": {"file_path": "a"}}}]
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "I look.", "thinking": "hm", "tool_calls": calls},
        {"role": "tool", "content": "text", "tool_name": "view"},
    ]


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (ndjson({"error": "model requires more system memory"}), "more system memory"),
        (ndjson(LINES[0]), "cut off"),
        ("<html>", "web page"),
        ("[" * 10_000, "nothing that looks like"),
        (ndjson({"message": 7}), "nothing that looks like"),
        ("{" * 100_000, "garbage"),
    ],
)
async def test_9_what_is_no_answer_of_its_own_chat_is_said(model: FakeModel, page: str, told: str) -> None:
    model.pages = {"/api/chat": page}
    async with client(model.url, Ollama, models=WISHED, max_attempts=1) as opened:
        with pytest.raises(ModelFailed, match=told):
            await answer(opened)
