"""What the model is sent for each kind of message."""

from __future__ import annotations

import base64
import json
from typing import Any

from covey.models.base import ModelRequest, ToolSpec
from covey.models.chat_request import encode_request
from covey.protocol.messages import (
    Binary,
    BinaryPart,
    Finish,
    FinishPart,
    ImageUrl,
    ImageUrlPart,
    Reasoning,
    ReasoningPart,
    ShellCommand,
    ShellCommandPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from tests.models.asking import message, request


def body(asked: ModelRequest) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(encode_request(asked, "max_tokens"))
    return value


def messages(asked: ModelRequest) -> list[dict[str, Any]]:
    value: list[dict[str, Any]] = body(asked)["messages"]
    return value


def attached(path: str, mime_type: str, content: bytes) -> BinaryPart:
    return BinaryPart(data=Binary(Path=path, MIMEType=mime_type, Data=base64.b64encode(content).decode()))


def test_the_smallest_request() -> None:
    assert body(request("hello")) == {
        "model": "big",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_system_prompt_tools_and_limit() -> None:
    tool = ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
    asked = request("hello", system="Be kind.", tools=[tool], max_tokens=100)
    sent = body(asked)
    assert sent["messages"][0] == {"role": "system", "content": "Be kind."}
    assert sent["tools"] == [
        {
            "type": "function",
            "function": {"name": "bash", "description": "Run a command.", "parameters": tool.parameters},
        }
    ]
    assert sent["max_tokens"] == 100
    assert "max_tokens" not in json.loads(encode_request(asked, "max_completion_tokens"))


def test_a_step_with_tool_calls_and_their_results() -> None:
    calls = message(
        "assistant",
        ReasoningPart(data=Reasoning(thinking="hm", signature="")),
        "I look.",
        ToolCallPart(data=ToolCall(id="a", name="bash", input='{"command":"ls"}', finished=True)),
        ToolCallPart(data=ToolCall(id="b", name="view", input="", finished=True)),
        FinishPart(data=Finish(reason="tool_use", time=0)),
    )
    results = message(
        "tool",
        ToolResultPart(data=ToolResult(tool_call_id="a", name="bash", content="x.py", metadata="", is_error=False)),
        ToolResultPart(data=ToolResult(tool_call_id="b", name="view", content="no path", metadata="", is_error=True)),
    )
    assert messages(request("look", calls, results))[1:] == [
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}},
                {"id": "b", "type": "function", "function": {"name": "view", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "x.py"},
        {"role": "tool", "tool_call_id": "b", "content": "no path"},
    ]


def test_tool_calls_without_a_word_have_no_content() -> None:
    call = ToolCallPart(data=ToolCall(id="a", name="bash", input="{}", finished=True))
    assert messages(request("look", message("assistant", call)))[1]["content"] is None


def test_images_are_data_urls() -> None:
    shown = message("user", "what is this?", attached("cat.png", "image/png", b"\x89PNG"))
    assert messages(request(shown)) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
            ],
        }
    ]


def test_image_addresses_are_passed_on() -> None:
    shown = message("user", ImageUrlPart(data=ImageUrl(url="https://example.org/a.png", detail="low")))
    [sent] = messages(request(shown))
    assert sent["content"] == [
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}}
    ]


def test_an_effort_is_passed_on() -> None:
    assert body(request("hello", effort="low"))["reasoning_effort"] == "low"


def test_a_model_that_does_not_see_is_informed_that_there_was_a_picture() -> None:
    shown = message(
        "user",
        "what is this?",
        attached("cat.png", "image/png", b"\x89PNG"),
        ImageUrlPart(data=ImageUrl(url="https://example.org/a.png")),
    )
    [sent] = messages(request(shown, sees_images=False))
    assert isinstance(sent["content"], str)
    assert "cat.png" in sent["content"] and "https://example.org/a.png" in sent["content"]


def test_the_pictures_of_results_follow_all_results() -> None:
    def result(call_id: str, data: str | None, mime_type: str | None = "image/png") -> ToolResultPart:
        return ToolResultPart(
            data=ToolResult(
                tool_call_id=call_id,
                name="view",
                content=f"{call_id} it is",
                metadata="",
                is_error=False,
                data=data,
                mime_type=mime_type,
            )
        )

    results = message("tool", result("a", "iVBORw=="), result("b", None, None), result("c", "AAAA", "image/x-odd"))
    shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}
    sent = messages(request("look", results, "go on"))
    assert [entry["role"] for entry in sent] == ["user", "tool", "tool", "tool", "user"]
    assert sent[1]["content"] == "a it is" and sent[2]["content"] == "b it is"
    assert sent[3]["content"].startswith("c it is\n") and "cannot see" in sent[3]["content"]
    assert sent[4]["content"][1] == shown and sent[4]["content"][-1] == {"type": "text", "text": "go on"}
    blind = messages(request("look", results, sees_images=False))
    assert [entry["role"] for entry in blind] == ["user", "tool", "tool", "tool"]
    assert "cannot see" in blind[1]["content"]


def test_text_attachments_become_text() -> None:
    shown = message("user", "fix it", attached("a.py", "text/x-python", "x = 'é'".encode()))
    assert messages(request(shown)) == [{"role": "user", "content": "fix it\n\n<file path=\"a.py\">\nx = 'é'\n</file>"}]


def test_attachments_that_cannot_be_shown_are_named() -> None:
    damaged = BinaryPart(data=Binary(Path="b.txt", MIMEType="text/plain", Data="a"))
    [sent] = messages(request(message("user", attached("a.pdf", "application/pdf", b"%PDF"), damaged)))
    assert "a.pdf" in sent["content"] and "application/pdf" in sent["content"]
    assert "b.txt" in sent["content"] and "damaged" in sent["content"]


def test_shell_commands_are_reported() -> None:
    command = ShellCommandPart(data=ShellCommand(command="ls", output="10%\r\x1b[1ma.py\x1b[0m", exit_code=0))
    [sent] = messages(request(message("user", command)))
    assert sent["content"] == "(I ran this command myself.)\n$ ls\na.py\n(exit code 0)"


def test_user_messages_in_a_row_become_one() -> None:
    image = attached("cat.png", "image/png", b"x")
    assert messages(request("one", "two")) == [{"role": "user", "content": "one\n\ntwo"}]
    [sent] = messages(request("one", message("user", "two", image)))
    assert [piece["type"] for piece in sent["content"]] == ["text", "text", "image_url"]
    assert [entry["role"] for entry in messages(request("one", message("assistant", "yes"), "two"))] == [
        "user",
        "assistant",
        "user",
    ]


def test_a_schema_for_the_output_is_given_to_the_provider_where_there_are_no_tools() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert json.loads(encode_request(request("hi", output_schema=schema), "max_tokens"))["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "output", "schema": schema},
    }
    tools = [ToolSpec("ls", "Lists.", {"type": "object"})]
    for other in (request("hi", output_schema=schema, tools=tools), request("hi")):
        assert "response_format" not in json.loads(encode_request(other, "max_tokens"))
