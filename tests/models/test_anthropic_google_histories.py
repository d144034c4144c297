"""Whatever has happened in a session, Anthropic and Google accept its history: checked by the rules that they state."""

from __future__ import annotations

import json
from dataclasses import replace

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
from tests.models.accepted import check_anthropic, check_google
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
    check_anthropic(json.loads(anthropic_request.encode_request(asked, "local")))


@settings(max_examples=300, deadline=None)
@given(ASKED)
def test_google_accepts_every_history(asked: ModelRequest) -> None:
    body = json.loads(google_request.encode_request(asked, "local"))
    check_google(body, is_new=asked.model.startswith("gemini-3"))
