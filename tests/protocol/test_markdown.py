"""A conversation as Markdown: what people read of it, and that nothing in it breaks out of its block."""

from __future__ import annotations

import json

import pytest

from covey.protocol import markdown
from covey.protocol.messages import (
    Binary,
    BinaryPart,
    Finish,
    FinishPart,
    Message,
    Part,
    Reasoning,
    ReasoningPart,
    Role,
    ShellCommand,
    ShellCommandPart,
    Text,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)


def said(*parts: Part, role: Role = "assistant", model: str = "m") -> str:
    message = Message(
        id="m1", role=role, session_id="s", parts=parts, model=model, provider="p", created_at=1, updated_at=1
    )
    return markdown.section(message)


def text(words: str) -> TextPart:
    return TextPart(data=Text(text=words))


def call(name: str, **params: object) -> ToolCallPart:
    return ToolCallPart(data=ToolCall(id="c", name=name, input=json.dumps(params), finished=True))


def result(content: str, *, is_error: bool = False, **metadata: object) -> ToolResultPart:
    encoded = json.dumps(metadata) if metadata else ""
    return ToolResultPart(
        data=ToolResult(tool_call_id="c", name="bash", content=content, metadata=encoded, is_error=is_error)
    )


def test_roles_are_headings_and_an_answer_says_which_model_gave_it() -> None:
    assert said(text("hello\n"), role="user") == "\n## User\n\nhello\n"
    assert said(text("hi")) == "\n## Assistant (p/m)\n\nhi\n"


def test_a_call_is_one_short_line_and_its_output_a_block() -> None:
    assert said(call("bash", command="ls\n-la", timeout=3)) == "\n## Assistant (p/m)\n\n- **bash** `ls -la`\n"
    assert markdown.call_line(call("todos").data) == "- **todos**"
    assert len(markdown.call_line(call("write", file_path="x" * 9000).data)) < 300
    assert said(result("one\ntwo\n"), role="tool") == "\n```\none\ntwo\n```\n"
    assert said(result("no", is_error=True), role="tool") == "\n*(failed)*\n\n```\nno\n```\n"


def test_a_change_of_a_file_is_shown_as_its_diff() -> None:
    assert said(result("Changed.", diff="-a\n+b\n"), role="tool") == "\n```diff\n-a\n+b\n```\n"
    assert "no" in said(result("no", is_error=True, diff="-a"), role="tool")


@pytest.mark.parametrize("inside", ["```", "a ``` b", "````\n```", "`" * 30, "~~~"])
def test_a_block_is_not_ended_by_what_stands_in_it(inside: str) -> None:
    first, *lines, last = markdown.fenced(inside, "diff").splitlines()
    fence = first.removesuffix("diff")
    assert fence == last and set(fence) == {"`"} and len(fence) >= 3
    assert fence not in inside and "\n".join(lines) == inside


def test_words_within_a_line_keep_their_backticks() -> None:
    assert markdown.code("a `b` c") == "``a `b` c``"
    assert markdown.code("`b`") == "`` `b` ``"


@pytest.mark.parametrize(
    ("words", "added"),
    [
        ("```py\nx = 1", "```"),
        ("```\nx\n```", ""),
        ("~~~~\n```\n~~~", "~~~~"),
        ("`` `not` a fence", ""),
        ("```a`b", ""),
    ],
)
def test_a_block_that_somebody_left_open_is_closed_before_the_next_message(words: str, added: str) -> None:
    assert said(text(words), role="user").removesuffix("\n").endswith(words + (f"\n{added}" if added else ""))


def test_other_parts_are_named_and_thoughts_are_left_out() -> None:
    command = ShellCommandPart(data=ShellCommand(command="ls", output="a\n", exit_code=0))
    file = BinaryPart(data=Binary(Path="a.png", MIMEType="image/png", Data="AAAA"))
    thought = ReasoningPart(data=Reasoning(thinking="hm", signature=""))
    finish = FinishPart(data=Finish(reason="canceled", time=1, message="stopped\nby Kim"))
    shown = said(command, file, thought, finish)
    assert "```\n$ ls\na\n```" in shown
    assert "*(attached: a.png, image/png)*" in shown
    assert "hm" not in shown
    assert "*(canceled: stopped by Kim)*" in shown


@pytest.mark.parametrize("broken", ["{", "[1]", "null", '"x"', ""])
def test_what_a_model_wrote_instead_of_parameters_is_shown_as_it_is(broken: str) -> None:
    part = ToolCallPart(data=ToolCall(id="c", name="bash", input=broken, finished=True))
    assert said(part).splitlines()[-1].startswith("- **bash**")
