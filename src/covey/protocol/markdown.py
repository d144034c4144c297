"""A conversation as Markdown, to be read by people. Pure; piece by piece, so that a long one needs no memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, assert_never

import msgspec

from covey.protocol.messages import (
    BinaryPart,
    FinishPart,
    ImageUrlPart,
    Message,
    Part,
    ReasoningPart,
    Session,
    ShellCommandPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)

SUBJECTS = ("command", "file_path", "path", "pattern", "url", "query", "prompt", "description")
"""What says most about a call, if it is among its parameters."""
SUBJECT_CHARS = 200
"""A call is one short line; its result says the rest."""


def head(session: Session) -> str:
    return f"# {_line(session.title) or 'Session ' + session.id}\n"


def section(message: Message, shown_chars: int | None = None) -> str:
    """One message, with an empty line before each block. `shown_chars`: cut longer outputs short."""
    blocks = [] if message.role == "tool" else [f"## {_role(message)}"]
    for part in message.parts:
        blocks += _blocks(part, shown_chars)
    return "".join(f"\n{block}\n" for block in blocks)


def _role(message: Message) -> str:
    role = "Summary" if message.is_summary_message else message.role.capitalize()
    model = f"{message.provider}/{message.model}" if message.provider and message.model else message.model
    return f"{role} ({_line(model)})" if message.role == "assistant" and model else role


def _blocks(part: Part, shown_chars: int | None) -> Iterator[str]:
    match part:
        case TextPart(data=said):
            if text := said.text.strip("\n"):
                yield _closed(text)
        case ToolCallPart(data=call):
            yield call_line(call)
        case ToolResultPart(data=result):
            yield from _result(result, shown_chars)
        case ShellCommandPart(data=command):
            from covey.protocol.printed import as_printed  # late: a server listens before it needs any of this

            yield fenced(f"$ {command.command}\n{as_printed(command.output)}".rstrip("\n"), "", shown_chars)
        case ImageUrlPart(data=image):
            yield f"*(image: {_line(image.url)[:SUBJECT_CHARS]})*"
        case BinaryPart(data=file):
            yield f"*(attached: {_line(file.Path)}, {_line(file.MIMEType)})*"
        case FinishPart(data=finish):
            if finish.reason not in ("end_turn", "tool_use"):
                yield f"*({finish.reason}{': ' + _line(finish.message) if finish.message else ''})*"
        case ReasoningPart():
            return  # what a model thought is no part of what it said; JSON has it
        case _:
            assert_never(part)


def call_line(call: ToolCall) -> str:
    """A call as a list item: its name, and what it is about."""
    subject = _subject(call.input)
    return f"- **{_line(call.name)}**" + (f" {code(subject)}" if subject else "")


def _subject(text: str) -> str:
    params = _decoded(text)
    found = next((params[name] for name in SUBJECTS if isinstance(params.get(name), str) and params[name]), None)
    words = _line(found if found is not None else text if text.strip() not in ("", "{}") else "")
    return words if len(words) <= SUBJECT_CHARS else words[: SUBJECT_CHARS - 1] + "…"


def _result(result: ToolResult, shown_chars: int | None) -> Iterator[str]:
    """A diff where there is one: it says what was done better than the words for the model."""
    diff = _decoded(result.metadata).get("diff")
    is_diff = isinstance(diff, str) and bool(diff) and not result.is_error
    if result.is_error:
        yield "*(failed)*"
    yield fenced(str(diff) if is_diff else result.content, "diff" if is_diff else "", shown_chars)


def _decoded(text: str) -> dict[str, Any]:
    """Untrusted: what a model or a tool wrote may be anything."""
    try:
        value = msgspec.json.decode(text or "{}")
    except (msgspec.MsgspecError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def fenced(text: str, language: str = "", shown_chars: int | None = None) -> str:
    """A code block whose fence is longer than any run of backticks in the text."""
    if shown_chars is not None and len(text) > shown_chars:
        text = f"{text[:shown_chars]}\n… {len(text) - shown_chars} more characters"
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def code(text: str) -> str:
    """Words within a line, as code, whatever backticks they have."""
    ticks = "`" * (_longest(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _longest(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _closed(text: str) -> str:
    """What somebody wrote, with the code block closed that it has left open: it would take in all that follows."""
    fence = ""
    for line in text.split("\n"):
        found = re.match(r" {0,3}(`{3,}|~{3,})(.*)", line)
        if not found:
            continue
        marks, rest = found[1], found[2]
        if not fence and not (marks[0] == "`" and "`" in rest):
            fence = marks
        elif fence and marks[0] == fence[0] and len(marks) >= len(fence) and not rest.strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _line(text: str) -> str:
    return " ".join(text.split())
