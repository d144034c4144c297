"""Whatever has happened in a session, Anthropic and Google accept its history: checked by the rules that they state."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.lifecycle.history import for_model
from covey.models import anthropic_request, google_request
from covey.models.base import ModelRequest, ToolSpec
from covey.protocol.messages import (
    Message,
    Part,
    Reasoning,
    ReasoningPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from tests.models.asking import message, request

IDS = st.sampled_from(["a", "b", "c.1|x", "call_0123456789abcdef", ""])
WORDS = st.sampled_from(["", " \n", "yes", "no, wait"])
SIGNATURES = st.sampled_from(["", "t:S\n", "r:D\nt:S\n", "c:S\n", "p3:S\n", "p0:S\nc:S\n", "something else"])
MODELS = st.sampled_from(["claude-sonnet-5-5", "claude-haiku-4-5", "gemini-3.8-flash", "gemini-2.5-pro", "other"])

THOUGHTS = st.builds(lambda t, s: ReasoningPart(data=Reasoning(thinking=t, signature=s)), WORDS, SIGNATURES)
CALLS = st.builds(
    lambda i, text: ToolCallPart(data=ToolCall(id=i, name="ls", input=text, finished=True)),
    IDS,
    st.sampled_from(["", "{}", '{"a": 1}', "{broken", "[]"]),
)
RESULTS = st.builds(
    lambda i, text, bad: ToolResultPart(
        data=ToolResult(tool_call_id=i, name="ls", content=text, metadata="", is_error=bad)
    ),
    IDS,
    WORDS,
    st.booleans(),
)


def said(parts: list[Part | str], model: str) -> Message:
    return msgspec.structs.replace(message("assistant", *parts), model=model)


MESSAGES = st.one_of(
    st.builds(lambda text: message("user", text), WORDS),
    st.builds(said, st.lists(st.one_of(WORDS, THOUGHTS, CALLS), max_size=5), MODELS),
    st.builds(lambda parts: message("tool", *parts), st.lists(RESULTS, max_size=3)),
)
ASKED = st.builds(
    lambda messages, model, effort: replace(
        request(*for_model(messages), effort=effort, system="s", tools=[ToolSpec("ls", "d", {"type": "object"})]),
        model=model,
    ),
    st.lists(MESSAGES, max_size=8),
    MODELS,
    st.sampled_from(["", "low", "high"]),
)


@settings(max_examples=300, deadline=None)
@given(ASKED)
def test_anthropic_accepts_every_history(asked: ModelRequest) -> None:
    body = json.loads(anthropic_request.encode_request(asked, "local"))
    turns = body["messages"]
    assert [turn["role"] for turn in turns] == (["user", "assistant"] * len(turns))[: len(turns)] and len(turns) % 2
    blocks = [block for turn in turns for block in turn["content"]]
    assert all(turn["content"] for turn in turns)
    assert all(block["text"].strip() for block in blocks if block["type"] == "text")
    ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert len(ids) == len(set(ids)) and all(re.fullmatch(r"[a-zA-Z0-9_-]+", one) for one in ids)
    for before, after in zip(turns, [*turns[1:], {"content": []}], strict=True):
        if before["role"] == "assistant":
            asked_for = [block["id"] for block in before["content"] if block["type"] == "tool_use"]
            first = [block.get("tool_use_id") for block in after["content"][: len(asked_for)]]
            assert first == asked_for, "results come right behind their calls, and before all else"
            assert before["content"][-1]["type"] in ("text", "tool_use"), "no answer ends with a thought"
    results = [block for block in blocks if block["type"] == "tool_result"]
    assert len(results) == len(ids)
    assert json.dumps(body).count("cache_control") <= 4
    if thinking := body.get("thinking"):
        assert thinking.get("budget_tokens", 1024) >= 1024 and thinking.get("budget_tokens", 0) < body["max_tokens"]


@settings(max_examples=300, deadline=None)
@given(ASKED)
def test_google_accepts_every_history(asked: ModelRequest) -> None:
    contents: list[dict[str, Any]] = json.loads(google_request.encode_request(asked, "local"))["contents"]
    assert contents[-1]["role"] == "user"
    is_new = asked.model.startswith("gemini-3")
    for before, after in zip(contents, [*contents[1:], {"parts": []}], strict=True):
        assert before["parts"] and "unused" not in json.dumps(before)
        calls = [part["functionCall"] for part in before["parts"] if "functionCall" in part]
        given_back = [part["functionResponse"] for part in after["parts"] if "functionResponse" in part]
        assert [(call["name"], call.get("id")) for call in calls] == [(r["name"], r.get("id")) for r in given_back]
        signed = [part.get("thoughtSignature") for part in before["parts"] if "functionCall" in part]
        assert not is_new or not signed or signed[0]
        for part in before["parts"]:
            assert part.get("text", "x").strip() or "thoughtSignature" in part
            assert isinstance(part.get("functionCall", {}).get("args", {}), dict)
