"""What the Responses API is sent for each kind of message."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from covey.models.base import ModelRequest, ToolSpec
from covey.models.responses_request import Thought, encode_request
from covey.protocol.messages import (
    Binary,
    BinaryPart,
    Finish,
    FinishPart,
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

CALL = ToolCallPart(data=ToolCall(id="call_1", name="ls", input='{"path":"."}', finished=True))
ENDED = FinishPart(data=Finish(reason="tool_use", time=0))
SENT_CALL = {"type": "function_call", "call_id": "call_1", "name": "ls", "arguments": '{"path":"."}'}


def body(asked: ModelRequest) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(encode_request(asked, "local"))
    return value


def items(*messages: Message | str, **fields: Any) -> list[dict[str, Any]]:
    value: list[dict[str, Any]] = body(request(*messages, **fields))["input"]
    return value


def thought(text: str = "hm", *ids: str) -> Part:
    signature = "".join(Thought(item_id, f"secret of {item_id}").signature() for item_id in ids)
    return ReasoningPart(data=Reasoning(thinking=text, signature=signature))


def sent_thought(item_id: str, *summary: str) -> dict[str, Any]:
    return {
        "type": "reasoning",
        "id": item_id,
        "summary": [{"type": "summary_text", "text": text} for text in summary],
        "encrypted_content": f"secret of {item_id}",
    }


def test_the_smallest_request() -> None:
    assert body(request("hello")) == {
        "model": "big",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "hello"}]}],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
    }


def test_system_prompt_tools_limit_and_effort() -> None:
    tool = ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
    sent = body(request("hello", system="Be kind.", tools=[tool], max_tokens=100, effort="high"))
    assert sent["instructions"] == "Be kind."
    assert sent["max_output_tokens"] == 100
    assert sent["reasoning"] == {"summary": "auto", "effort": "high"}
    [sent_tool] = sent["tools"]
    assert sent_tool == {
        "type": "function",
        "name": "bash",
        "description": "Run a command.",
        "parameters": tool.parameters,
        "strict": False,
    }


def test_a_step_with_a_thought_a_call_and_its_result() -> None:
    result = ToolResult(tool_call_id="call_1", name="ls", content="a.py", metadata="", is_error=False)
    step = message("assistant", thought("hm", "rs_1"), "I look.", CALL, ENDED)
    assert items("look", step, message("tool", ToolResultPart(data=result)))[1:] == [
        sent_thought("rs_1", "hm"),
        {"role": "assistant", "content": "I look."},
        SENT_CALL,
        {"type": "function_call_output", "call_id": "call_1", "output": "a.py"},
    ]


def test_thoughts_stand_before_what_they_led_to() -> None:
    step = message("assistant", thought("one", "rs_1"), "A plan.", thought("", "rs_2", "rs_3"), CALL, ENDED)
    assert items("look", step)[1:] == [
        sent_thought("rs_1", "one"),
        {"role": "assistant", "content": "A plan."},
        sent_thought("rs_2"),
        sent_thought("rs_3"),
        SENT_CALL,
    ]


def test_a_thought_that_led_to_nothing_is_left_out() -> None:
    step = message("assistant", "Wait.", thought("hm", "rs_1"), ENDED)
    assert items("look", step)[1:] == [{"role": "assistant", "content": "Wait."}]


def test_thoughts_of_another_model_or_provider_are_left_out() -> None:
    step = message("assistant", thought("hm", "rs_1"), CALL, ENDED)
    for other in (msgspec.structs.replace(step, model="small"), msgspec.structs.replace(step, provider="elsewhere")):
        assert items("look", other)[1:] == [SENT_CALL]


def test_signatures_that_are_not_ours_are_left_out() -> None:
    for signature in ("EuYBCkQYAiJA==", '{"id": 5}\n', "{}", "\x00"):
        odd = ReasoningPart(data=Reasoning(thinking="hm", signature=signature))
        assert items("look", message("assistant", odd, CALL, ENDED))[1:] == [SENT_CALL]


def test_pictures() -> None:
    shown = message(
        "user",
        BinaryPart(data=Binary(Path="cat.png", MIMEType="image/png", Data="iVBORw==")),
        ImageUrlPart(data=ImageUrl(url="https://example.org/a.png", detail="low")),
    )
    assert items(shown)[0]["content"] == [
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw==", "detail": "auto"},
        {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"},
    ]
    blind = items(shown, sees_images=False)[0]["content"]
    assert [piece["type"] for piece in blind] == ["input_text", "input_text"]
    assert "cat.png" in blind[0]["text"]


def test_the_picture_of_a_result_goes_with_it() -> None:
    result = ToolResult(
        tool_call_id="call_1",
        name="view",
        content="A cat.",
        metadata="",
        is_error=False,
        data="iVBORw==",
        mime_type="image/png",
    )
    shown = message("tool", ToolResultPart(data=result))
    assert items("look", shown)[1]["output"] == [
        {"type": "input_text", "text": "A cat."},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw==", "detail": "auto"},
    ]
    blind = items("look", shown, sees_images=False)[1]["output"]
    assert blind.startswith("A cat.\n") and "cannot see" in blind


def test_a_message_with_nothing_to_say_is_left_out() -> None:
    assert items("hello", " ", message("assistant", thought("hm", "rs_1"), ENDED)) == items("hello")


def test_a_schema_for_the_output_is_given_to_the_provider_if_it_takes_it() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert body(request("hi", output_schema=schema))["text"] == {
        "format": {"type": "json_schema", "name": "output", "schema": schema, "strict": False}
    }
    for other in (None, {"type": "array"}, {"anyOf": [schema]}):
        assert "text" not in body(request("hi", output_schema=other))
