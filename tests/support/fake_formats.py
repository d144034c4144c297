"""What the fake model says, in each wire format, and what it was asked, out of each.

A reply has about as many events as in Chat Completions, so that gates mean the same: what frames a piece (the start of
a block, the end of the one before it) comes together with the piece.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.fake_reply import Call, Reply, events

_Json = dict[str, Any]
Turns = Iterator[tuple[str, str]]
"""Role (user, assistant or tool) and text of what was said, in order. One step of the assistant is one entry."""

REASONS = {
    "anthropic": {"length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use", "stop": "end_turn"},
    "google": {"length": "MAX_TOKENS", "content_filter": "SAFETY", "tool_calls": "STOP", "stop": "STOP"},
}


@dataclass(frozen=True)
class Format:
    events: Callable[[Reply], Iterator[str]]
    turns: Callable[[_Json], Turns]


def _event(**fields: Any) -> str:
    name = f"event: {fields['type']}\n" if "type" in fields else ""
    return f"{name}data: {json.dumps(fields, ensure_ascii=False)}\n\n"


def _texts(reply: Reply) -> Iterator[str]:
    return (reply.text.replace("{n}", str(n)) for n in range(reply.chunks) if reply.text)


def _fragments(call: Call) -> list[str]:
    text = call.input if isinstance(call.input, str) else json.dumps(call.input)
    size = max(1, -(-len(text) // call.pieces))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _call_id(call: Call, index: int) -> str:
    return call.id or f"call_{time.monotonic_ns()}_{index}"


def _finish(reply: Reply) -> str:
    return reply.finish or ("tool_calls" if reply.tools else "stop")


# ── Chat Completions ──


def _chat_turns(body: _Json) -> Turns:
    for message in body.get("messages", []):
        content = message["content"] or ""
        text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        yield message["role"], text


# ── Responses ──


def _responses_events(reply: Reply) -> Iterator[str]:
    if reply.raw is not None:
        yield from reply.raw
        return
    before = _event(type="response.created", response={"id": "resp_fake", "status": "in_progress"})
    index = 0
    if reply.reasoning:
        item: _Json = {"type": "reasoning", "id": "rs_fake", "summary": []}
        yield (
            before
            + _event(type="response.output_item.added", output_index=index, item=item)
            + _event(
                type="response.reasoning_summary_text.delta", output_index=index, summary_index=0, delta=reply.reasoning
            )
        )
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        done = item | {"summary": summary, "encrypted_content": "fake-thought"}
        before, index = _event(type="response.output_item.done", output_index=index, item=done), index + 1
    if reply.text:
        for text in _texts(reply):
            yield before + _event(type="response.output_text.delta", output_index=index, content_index=0, delta=text)
            before = ""
        index += 1
    for number, call in enumerate(reply.tools):
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": _call_id(call, number), "name": call.name}
        yield before + _event(type="response.output_item.added", output_index=index, item=item | {"arguments": ""})
        for text in _fragments(call):
            yield _event(type="response.function_call_arguments.delta", output_index=index, delta=text)
        done = item | {"arguments": "".join(_fragments(call))}
        before, index = _event(type="response.output_item.done", output_index=index, item=done), index + 1
    if reply.ending == "done":
        yield before + _responses_end(reply)


def _responses_end(reply: Reply) -> str:
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(_finish(reply))
    status = "incomplete" if reason else "completed"
    response: _Json = {"id": "resp_fake", "status": status, "incomplete_details": reason and {"reason": reason}}
    if reply.usage:
        prompt, completion = reply.usage
        response["usage"] = {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}
    return _event(type=f"response.{status}", response=response)


def _responses_turns(body: _Json) -> Turns:
    last = ""
    for item in body.get("input", []):
        role = item.get("role") or ("tool" if item["type"] == "function_call_output" else "assistant")
        if role == last == "assistant":
            continue  # several items of one step
        last = role
        content = item.get("content", "")
        yield role, content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


# ── Anthropic's Messages ──


def _anthropic_events(reply: Reply) -> Iterator[str]:
    if reply.raw is not None:
        yield from reply.raw
        return
    prompt, completion = reply.usage or (0, 0)
    message = {"id": "msg_fake", "type": "message", "role": "assistant", "model": "fake", "content": []}
    usage = {"input_tokens": prompt, "output_tokens": 1}
    before = _event(type="message_start", message=message | {"usage": usage})
    index = 0

    def block(**content: Any) -> str:
        return _event(type="content_block_start", index=index, content_block=content)

    def more(**delta: Any) -> str:
        return _event(type="content_block_delta", index=index, delta=delta)

    if reply.reasoning:
        yield (
            before
            + block(type="thinking", thinking="", signature="")
            + more(type="thinking_delta", thinking=reply.reasoning)
        )
        before = more(type="signature_delta", signature="fake-signature")
        before, index = before + _event(type="content_block_stop", index=index), index + 1
    if reply.text:
        before += block(type="text", text="")
        for text in _texts(reply):
            yield before + more(type="text_delta", text=text)
            before = ""
        before, index = _event(type="content_block_stop", index=index), index + 1
    for number, call in enumerate(reply.tools):
        yield before + block(type="tool_use", id=_call_id(call, number), name=call.name, input={})
        for text in _fragments(call):
            yield more(type="input_json_delta", partial_json=text)
        before, index = _event(type="content_block_stop", index=index), index + 1
    if reply.ending == "done":
        stop = {"stop_reason": REASONS["anthropic"].get(_finish(reply), _finish(reply)), "stop_sequence": None}
        last = _event(type="message_delta", delta=stop, usage={"output_tokens": completion})
        yield before + last + _event(type="message_stop")


def _anthropic_turns(body: _Json) -> Turns:
    for message in body.get("messages", []):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        role = "tool" if any(block["type"] == "tool_result" for block in blocks) else message["role"]
        yield role, "".join(block.get("text", "") for block in blocks)


# ── Google's Gemini ──


def _google_events(reply: Reply) -> Iterator[str]:
    """Calls come whole here, each in one event."""
    if reply.raw is not None:
        yield from reply.raw
        return

    def chunk(part: _Json, **fields: Any) -> str:
        return _event(candidates=[{"content": {"parts": [part], "role": "model"}, "index": 0}], **fields)

    if reply.reasoning:
        yield chunk({"text": reply.reasoning, "thought": True})
    for text in _texts(reply):
        yield chunk({"text": text})
    for number, call in enumerate(reply.tools):
        args = json.loads(call.input) if isinstance(call.input, str) else call.input
        function = {"name": call.name, "args": args, "id": _call_id(call, number)}
        yield chunk({"functionCall": function, "thoughtSignature": "ZmFrZQ=="})
    if reply.ending == "done":
        reason = REASONS["google"].get(_finish(reply), _finish(reply))
        last: _Json = {"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": reason}]}
        if reply.usage:
            prompt, completion = reply.usage
            last["usageMetadata"] = {"promptTokenCount": prompt, "candidatesTokenCount": completion}
        yield _event(**last)


def _google_turns(body: _Json) -> Turns:
    for content in body.get("contents", []):
        role = "assistant" if content.get("role") == "model" else "user"
        if any("functionResponse" in part for part in content["parts"]):
            role = "tool"
        yield role, "".join(part.get("text", "") for part in content["parts"])


FORMATS: dict[str, Format] = {
    "/chat/completions": Format(events, _chat_turns),
    "/responses": Format(_responses_events, _responses_turns),
    "/messages": Format(_anthropic_events, _anthropic_turns),
    ":streamGenerateContent": Format(_google_events, _google_turns),
}
"""By a part of the path."""
