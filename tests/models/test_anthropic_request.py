"""What Anthropic's models are sent for each kind of message."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from covey.models.anthropic_request import BEGINNING, GO_ON, MAX_TOKENS, encode_request, version_of
from covey.models.base import ModelRequest, ToolSpec
from covey.protocol.messages import (
    Binary,
    BinaryPart,
    ImageUrl,
    ImageUrlPart,
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

CACHE = {"cache_control": {"type": "ephemeral"}}
NEW, MIDDLE, OLD = "claude-sonnet-5-5", "claude-opus-4-6", "claude-haiku-4-5"


def asked(*messages: Message | str, model: str = NEW, **fields: Any) -> ModelRequest:
    return replace(request(*messages, **fields), model=model)


def body(sent: ModelRequest, **options: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(encode_request(sent, "local", **options))
    return value


def turns(sent: ModelRequest) -> list[tuple[str, list[dict[str, Any]]]]:
    """Roles and blocks, without the marks for the cache."""
    value = body(sent)["messages"]
    for turn in value:
        for block in turn["content"]:
            block.pop("cache_control", None)
    return [(turn["role"], turn["content"]) for turn in value]


def said(*parts: Part | str, model: str = NEW) -> Message:
    return msgspec.structs.replace(message("assistant", *parts), model=model)


def thought(text: str, signature: str) -> ReasoningPart:
    return ReasoningPart(data=Reasoning(thinking=text, signature=signature))


def call(call_id: str, name: str = "bash", given: str = "{}") -> ToolCallPart:
    return ToolCallPart(data=ToolCall(id=call_id, name=name, input=given, finished=True))


def results(*ids: str, **fields: Any) -> Message:
    values: dict[str, Any] = {"name": "bash", "content": "done", "metadata": "", "is_error": False} | fields
    return message("tool", *(ToolResultPart(data=ToolResult(tool_call_id=call_id, **values)) for call_id in ids))


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_the_smallest_request() -> None:
    assert body(asked("hello", model="other")) == {
        "model": "other",
        "stream": True,
        "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": [text("hello") | CACHE]}],
    }


def test_system_prompt_tools_and_the_last_two_turns_of_the_user_are_cached() -> None:
    tools = [ToolSpec(name, "Does it.", {"type": "object"}) for name in ("bash", "ls")]
    sent = body(asked("one", said("1"), "two", said("2"), "three", system="Be kind.", tools=tools))
    assert sent["system"] == [text("Be kind.") | CACHE]
    assert [CACHE.items() <= tool.items() for tool in sent["tools"]] == [False, True]
    assert sent["tools"][0] == {"name": "bash", "description": "Does it.", "input_schema": {"type": "object"}}
    marked = [turn["content"][-1]["text"] for turn in sent["messages"] if "cache_control" in turn["content"][-1]]
    assert marked == ["two", "three"]
    assert json.dumps(sent).count("cache_control") == 4, "Anthropic allows no more"


def test_roles_take_turns_and_the_user_begins_and_ends() -> None:
    assert turns(asked("one", "two")) == [("user", [text("one"), text("two")])]
    assert turns(asked(said("hi"), "yes")) == [
        ("user", [text(BEGINNING)]),
        ("assistant", [text("hi")]),
        ("user", [text("yes")]),
    ]
    assert [role for role, _ in turns(asked("one", said("a"), said("b")))] == ["user", "assistant", "user"]
    assert turns(asked("one", said("a")))[-1] == ("user", [text(GO_ON)])
    assert turns(asked(" ")) == [("user", [text(GO_ON)])]


def test_blank_text_is_left_out() -> None:
    assert turns(asked("one", said(" \n", call("a")), results("a"), "  ", "two"))[1:] == [
        ("assistant", [{"type": "tool_use", "id": "a", "name": "bash", "input": {}}]),
        ("user", [{"type": "tool_result", "tool_use_id": "a", "content": [text("done")]}, text("two")]),
    ]


def test_parallel_calls_and_their_results_in_one_turn() -> None:
    calls = said("I look.", call("a", given='{"command": "ls"}'), call("b", "view", ""))
    given = results("a", "b", content="", is_error=True)
    assert turns(asked("look", calls, given))[1:] == [
        (
            "assistant",
            [
                text("I look."),
                {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "ls"}},
                {"type": "tool_use", "id": "b", "name": "view", "input": {}},
            ],
        ),
        (
            "user",
            [
                {"type": "tool_result", "tool_use_id": "a", "is_error": True},
                {"type": "tool_result", "tool_use_id": "b", "is_error": True},
            ],
        ),
    ]


def test_ids_get_characters_that_are_allowed_and_each_is_used_once() -> None:
    steps = asked("x", said(call("fc|1.a")), results("fc|1.a"), said(call("fc|1.a"), call("fc_1_a")))
    steps = replace(steps, messages=[*steps.messages, results("fc|1.a", "fc_1_a")])
    blocks = [block for _, content in turns(steps) for block in content]
    assert [block["id"] for block in blocks if block["type"] == "tool_use"] == ["fc_1_a", "fc_1_a_2", "fc_1_a_3"]
    assert [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] == [
        "fc_1_a",
        "fc_1_a_2",
        "fc_1_a_3",
    ]


def test_pictures() -> None:
    data = base64.b64encode(b"\x89PNG").decode()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    shown = message("user", BinaryPart(data=Binary(Path="a.png", MIMEType="image/png", Data=data)))
    address = message("user", ImageUrlPart(data=ImageUrl(url="https://example.org/a.png")))
    assert turns(asked(shown, address)) == [
        ("user", [picture, {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}])
    ]
    step = [said(call("a", "view")), results("a", data=data, mime_type="image/png")]
    [result] = turns(asked("look", *step))[-1][1]
    assert result["content"] == [text("done"), picture]
    blind = turns(asked(shown, address, *step, sees_images=False))
    assert "image" not in [block["type"] for _, content in blind for block in content]
    assert data not in json.dumps(blind) and "a picture" in json.dumps(blind)
    strange = message("user", BinaryPart(data=Binary(Path="a.tiff", MIMEType="image/tiff", Data=data)))
    assert turns(asked(strange)) == [
        ("user", [text("(Here is a picture, a.tiff, of type image/tiff, but you cannot see it.)")])
    ]


def test_thoughts_go_back_as_they_came() -> None:
    parts: list[Part | str] = [thought("First.", "t:S1\nr:D1\nt:S2\n"), thought("Second.", "t:S3\n"), "Yes.", call("a")]
    [_, (_, blocks), _] = turns(asked("x", said(*parts), results("a")))
    assert blocks[:5] == [
        {"type": "thinking", "thinking": "First.", "signature": "S1"},
        {"type": "redacted_thinking", "data": "D1"},
        {"type": "thinking", "thinking": "", "signature": "S2"},
        {"type": "thinking", "thinking": "Second.", "signature": "S3"},
        text("Yes."),
    ]


@pytest.mark.parametrize(
    "other",
    [
        said(thought("Hm.", "t:S1\n"), "Yes.", model="claude-opus-5-5"),
        said(thought("Hm.", ""), "Yes."),
        said(thought("Hm.", '{"id": "rs_1"}\n'), "Yes."),
    ],
    ids=["of another model", "not signed", "signed by somebody else"],
)
def test_other_thoughts_stay_here(other: Message) -> None:
    assert turns(asked("x", other, "y"))[1] == ("assistant", [text("Yes.")])


def test_a_thought_without_a_word_is_no_answer() -> None:
    assert [role for role, _ in turns(asked("x", said(thought("Hm.", "t:S\n")), "y"))] == ["user"]


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("claude-opus-5-5", (5, 5)),
        ("claude-fable-5", (5, 0)),
        ("claude-haiku-4-5-20251001", (4, 5)),
        ("claude-opus-4-20250514", (4, 0)),
        ("claude-3-7-sonnet-20250219", (3, 7)),
        ("anthropic.claude-opus-4-6-v1", (4, 6)),
        ("anthropic/claude-opus-5.5", (5, 5)),
        ("claude-mythos-preview", (99, 0)),
        ("deepseek-flash", None),
    ],
)
def test_the_version_is_read_from_the_name(model: str, version: tuple[int, int] | None) -> None:
    assert version_of(model) == version


def test_new_models_choose_how_long_they_think_and_show_it() -> None:
    adaptive = {"type": "adaptive", "display": "summarized"}
    bound = adaptive | {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    plain, with_effort = body(asked("x")), body(asked("x", effort="low"))
    assert (plain["thinking"], plain.get("output_config"), plain["max_tokens"]) == (bound, None, 128_000)
    assert (with_effort["thinking"], with_effort["output_config"]) == (bound, {"effort": "low"})
    assert body(asked("x"), binding=False)["thinking"] == adaptive
    assert body(asked("x", model="claude-opus-5"))["thinking"] == adaptive
    assert "thinking" not in body(asked("x", model=MIDDLE))
    assert body(asked("x", model=MIDDLE, effort="high"))["thinking"] == adaptive


@pytest.mark.parametrize(
    ("effort", "max_tokens", "budget", "sent"),
    [
        ("", None, None, 64_000),
        ("low", None, 2048, 64_000),
        ("high", None, 24_576, 64_000),
        ("medium", 1000, 8168, 9192),
        ("high", 60_000, 24_576, 60_000),
        ("high", 25_000, 24_576, 49_576),
    ],
)
def test_older_models_get_a_budget_within_the_limit(
    effort: str, max_tokens: int | None, budget: int | None, sent: int
) -> None:
    value = body(asked("x", model=OLD, effort=effort, max_tokens=max_tokens))
    thinking = {"type": "enabled", "budget_tokens": budget} if budget else None
    assert (value.get("thinking"), value["max_tokens"]) == (thinking, sent)
    assert not budget or budget < value["max_tokens"]


def test_an_older_model_does_not_begin_to_think_within_a_step() -> None:
    own = said(thought("Hm.", "t:S\n"), call("a"), model=OLD)
    others = said(call("a"), model="gpt")
    assert "thinking" in body(asked("x", own, results("a"), model=OLD, effort="low"))
    assert "thinking" not in body(asked("x", others, results("a"), model=OLD, effort="low"))
    assert "thinking" in body(asked("x", others, results("a"), said("Done."), "y", model=OLD, effort="low"))
    assert "thinking" not in json.dumps(body(asked("x", own, results("a"), model=OLD))), "off: none are sent either"
