"""What the fake model is told to say, and how it is said in Chat Completions. The other formats are `fake_formats`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, Literal

import msgspec


class Call(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A tool call, its input sent in `pieces` fragments."""

    name: str
    input: dict[str, Any] | str = {}
    id: str = ""
    pieces: int = 2


class Reply(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What one request gets: reasoning, text, tool calls, then the ending. Each piece is an event of its own."""

    text: str = "Hello from the fake model."
    """`{n}` in it is replaced by the number of the chunk."""
    chunks: int = 1
    """How often the text is sent."""
    delay_ms: float = 0.0
    """The time between two events, each in a packet of its own; 0: as fast as possible, many in one packet."""
    reasoning: str = ""
    tools: tuple[Call, ...] = ()
    usage: tuple[int, int] | None = (10, 5)
    """Tokens of the prompt and of the answer."""
    finish: str = ""
    """Empty: `tool_calls` if there are any, else `stop`."""
    ending: Literal["done", "end", "cut", "silence"] = "done"
    """`done`: finish reason, usage and [DONE]; `end`: the body just ends; `cut`: the connection is closed within the
    body; `silence`: nothing more comes."""
    raw: tuple[str, ...] | None = None
    """These exact pieces instead of the events made from the fields above; goes well with the ending `end`."""
    gates: dict[int, str] = {}
    """Before the n-th event, wait until the gate is released; -1: before the status line."""
    status: int = 200
    """0: close the connection without an answer."""
    headers: dict[str, str] = {}
    body: str | None = None
    """An answer that is not a stream."""
    chunked: bool = True
    """False: the body has no length and ends with the connection."""


def event(**fields: Any) -> str:
    """One Chat Completions event as it is on the wire."""
    chunk = {"id": "fake", "object": "chat.completion.chunk", "created": 1, "model": "fake", **fields}
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"


def delta(finish_reason: str | None = None, **fields: Any) -> str:
    return event(choices=[{"index": 0, "delta": fields, "finish_reason": finish_reason}])


def events(reply: Reply) -> Iterator[str]:
    if reply.raw is not None:
        yield from reply.raw
        return
    if reply.reasoning:
        yield delta(reasoning_content=reply.reasoning)
    if reply.text:
        same = delta(content=reply.text)
        for number in range(reply.chunks):
            yield same if "{n}" not in reply.text else delta(content=reply.text.replace("{n}", str(number)))
    for index, call in enumerate(reply.tools):
        yield from _call_events(index, call)
    if reply.ending == "done":
        yield delta(reply.finish or ("tool_calls" if reply.tools else "stop"))
        if reply.usage:
            prompt, completion = reply.usage
            usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
            yield event(choices=[], usage=usage)
        yield "data: [DONE]\n\n"


def _call_events(index: int, call: Call) -> Iterator[str]:
    text = call.input if isinstance(call.input, str) else json.dumps(call.input)
    call_id = call.id or f"call_{time.monotonic_ns()}_{index}"
    size = max(1, -(-len(text) // call.pieces))
    function = {"name": call.name, "arguments": ""}
    yield delta(tool_calls=[{"index": index, "id": call_id, "type": "function", "function": function}])
    for at in range(0, len(text), size):
        yield delta(tool_calls=[{"index": index, "function": {"arguments": text[at : at + size]}}])
