"""A request in which only words are wanted says so in every format, and keeps the tools that its calls need."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from covey.models import anthropic_request, chat_request, google_request, responses_request
from covey.models.base import ModelRequest, ToolSpec
from covey.models.ollama_chat import native_body
from tests.models.asking import request

TOOLS = [ToolSpec("ls", "Lists.", {"type": "object", "properties": {"path": {"type": "string"}}})]


@pytest.mark.parametrize(
    ("encode", "field", "value"),
    [
        (lambda asked: chat_request.encode_request(asked, "max_tokens"), "tool_choice", "none"),
        (lambda asked: responses_request.encode_request(asked, "local"), "tool_choice", "none"),
        (lambda asked: anthropic_request.encode_request(asked, "local"), "tool_choice", {"type": "none"}),
        (
            lambda asked: google_request.encode_request(asked, "local"),
            "toolConfig",
            {"functionCallingConfig": {"mode": "NONE"}},
        ),
    ],
)
def test_no_call_is_wanted(encode: Callable[[ModelRequest], bytes], field: str, value: Any) -> None:
    without = json.loads(encode(request("hello", tools=TOOLS, may_call=False)))
    assert without.pop(field) == value
    assert without == json.loads(encode(request("hello", tools=TOOLS)))
    assert field not in json.loads(encode(request("hello", may_call=False))), "there is nothing that could be called"


def test_ollama_has_no_word_for_it_so_its_tools_are_left_out() -> None:
    assert "tools" in native_body(request("hello", tools=TOOLS), 8_192)
    assert "tools" not in native_body(request("hello", tools=TOOLS, may_call=False), 8_192)
