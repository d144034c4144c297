"""The bytes of a streamed answer of Anthropic's Messages API → model facts. Pure: fed as the bytes come.

What must be sent back unchanged in later steps travels in `ReasoningDelta.signature`, one line for each block: `t:` and
the signature of a thought, or `r:` and a thought that only Anthropic can read. `anthropic_request` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

import msgspec

from covey.lifecycle.reply import ReasoningDelta, TextDelta, ToolCallBegun, ToolInputDelta, UsageReported
from covey.models.sse import SseAnswer
from covey.models.trouble import AnswerBroken, Trouble, error_text, judge, snippet
from covey.protocol.messages import FinishReason

SIGNED, REDACTED = "t:", "r:"
MAX_BLOCK_BYTES = 16 * 1024 * 1024
"""What the beginnings and signatures of all blocks may have: more than an answer may have at all."""

_REASONS: dict[str, FinishReason] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "pause_turn": "end_turn",  # only tools that run at Anthropic pause, and we ask for none
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "content_filter",
}

TROUBLES = {
    "authentication_error": Trouble.AUTH,
    "permission_error": Trouble.AUTH,
    "billing_error": Trouble.SPENT,
    "request_too_large": Trouble.OVERFLOW,
    "rate_limit_error": Trouble.BUSY,
    "overloaded_error": Trouble.BUSY,
    "timeout_error": Trouble.BUSY,
    "api_error": Trouble.BUSY,
}
"""By the type of an error; `invalid_request_error` and others need a second look."""


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct, gc=False):
    usage: _Usage | None = None


class _Block(msgspec.Struct, gc=False):
    type: str
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    input: Any = None


class _Delta(msgspec.Struct, gc=False):
    type: str
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    signature: str = ""


class _End(msgspec.Struct, gc=False):
    stop_reason: str | None = None
    stop_details: Any = None


class _Event(msgspec.Struct, gc=False, tag_field="type"):
    """Base of all events, distinguished by their type."""


class _MessageStart(_Event, gc=False, tag="message_start"):
    message: _Message


class _BlockStart(_Event, gc=False, tag="content_block_start"):
    index: int
    content_block: _Block


class _BlockDelta(_Event, gc=False, tag="content_block_delta"):
    index: int
    delta: _Delta


class _BlockStop(_Event, gc=False, tag="content_block_stop"):
    index: int


class _MessageDelta(_Event, gc=False, tag="message_delta"):
    delta: _End
    usage: _Usage | None = None


class _MessageStop(_Event, gc=False, tag="message_stop"):
    pass


class _Ping(_Event, gc=False, tag="ping"):
    pass


class _Error(_Event, gc=False, tag="error"):
    error: Any = None


_AnyEvent = _MessageStart | _BlockStart | _BlockDelta | _BlockStop | _MessageDelta | _MessageStop | _Ping | _Error
_decode_event = msgspec.json.Decoder(_AnyEvent).decode


class MessagesAnswer(SseAnswer):
    """One answer, as far as it has come."""

    def __init__(self, used_call_ids: Iterable[str] = ()) -> None:
        super().__init__(used_call_ids)
        self._blocks: dict[int, _Block] = {}
        """Those that have begun and not ended, by their place in the message."""
        self._numbers: dict[int, int] = {}
        """For each tool call, by its place in the message: which one it is."""
        self._block_bytes = 0
        """Of all that was kept for a block."""
        self._spoke = False
        """A word, a thought or a call has come."""
        self._stop_reason = ""
        self._usage_so_far = UsageReported(0, 0)

    def _event(self, data: bytes) -> None:
        try:
            event: _AnyEvent = _decode_event(data)
        except msgspec.DecodeError:
            self._not_known(data.strip())
            return
        match event:
            case _BlockDelta(index=index, delta=delta):
                self._grow_block(index, delta)
            case _BlockStart(index=index, content_block=block):
                self._remember(len(data))
                self._begin_block(index, block)
            case _BlockStop(index=index):
                self._end_block(index)
            case _MessageStart(message=message):
                self._seen_events = True
                self._count(message.usage)
            case _MessageDelta(delta=end, usage=usage):
                self._count(usage)
                if end.stop_reason:
                    self._stop(end.stop_reason, end.stop_details)
            case _MessageStop():
                self.done = True
            case _Error(error=error):
                raise _provider_error(error, data)
            case _Ping():
                pass
            case _:
                assert_never(event)

    def _not_known(self, data: bytes) -> None:
        """New kinds of events may come any day, and mean nothing to us; other things are no events."""
        if data and "type" not in self._strange(data):
            raise AnswerBroken(f"sent an event of an unknown form: {snippet(data)}")

    def _remember(self, size: int) -> None:
        """What a block begins with, and its signature, are kept until it ends: it may never end."""
        self._count_item()
        self._block_bytes += size
        if self._block_bytes > MAX_BLOCK_BYTES:
            raise AnswerBroken(f"sent more than {MAX_BLOCK_BYTES // 2**20} MiB of blocks")

    def _begin_block(self, index: int, block: _Block) -> None:
        self._blocks[index] = block
        match block.type:
            case "text" if block.text:
                self._grow(TextDelta, block.text)
            case "thinking" if block.thinking:
                self._grow(ReasoningDelta, block.thinking)
            case "redacted_thinking":
                self._emit(ReasoningDelta("", f"{REDACTED}{block.data}\n"))
            case "tool_use":
                if not block.name:
                    raise AnswerBroken("sent a tool call without a name")
                self._numbers[index] = number = len(self._numbers)
                self._emit(ToolCallBegun(number, self._call_id(block.id), block.name))
        self._spoke = self._spoke or block.type != "text" or bool(block.text)

    def _grow_block(self, index: int, delta: _Delta) -> None:
        match delta.type:
            case "text_delta":
                self._spoke = True
                self._grow(TextDelta, delta.text)
            case "input_json_delta":
                if delta.partial_json and index in self._numbers:
                    self._blocks[index].input = None  # it comes in pieces, so what the start said does not count
                    self._emit(ToolInputDelta(self._numbers[index], delta.partial_json))
            case "thinking_delta":
                self._grow(ReasoningDelta, delta.thinking)
            case "signature_delta":
                if block := self._blocks.get(index):
                    self._remember(len(delta.signature))
                    block.signature = delta.signature

    def _end_block(self, index: int) -> None:
        block = self._blocks.pop(index, None)
        if block is None:
            return
        if block.type == "thinking" and block.signature:
            self._emit(ReasoningDelta("", f"{SIGNED}{block.signature}\n"))
        elif block.type == "tool_use" and block.input:
            self._emit(ToolInputDelta(self._numbers[index], msgspec.json.encode(block.input).decode()))

    def _count(self, usage: _Usage | None) -> None:
        """What is missing in a later report is as it was in the one before."""
        if usage is None:
            return
        before = self._usage_so_far
        read = _or(usage.cache_read_input_tokens, before.cached_tokens)
        written = _or(usage.cache_creation_input_tokens, before.cache_write_tokens)
        fresh = _or(usage.input_tokens, before.prompt_tokens - before.cached_tokens - before.cache_write_tokens)
        completion = _or(usage.output_tokens, before.completion_tokens)
        self._usage = self._usage_so_far = UsageReported(fresh + read + written, completion, read, written)

    def _stop(self, reason: str, details: Any) -> None:
        self._stop_reason = reason
        self.finished = True
        if reason == "refusal" and not self._spoke and isinstance(details, dict):
            self._grow(TextDelta, str(details.get("explanation") or ""))

    def _reason(self) -> FinishReason:
        reason = _REASONS.get(self._stop_reason, "unknown")
        if reason in ("max_tokens", "content_filter"):
            return reason
        if self._numbers:
            return "tool_use"
        return "end_turn" if reason == "tool_use" else reason


def trouble_of(kind: str, status: int, body: bytes) -> Trouble:
    """What an error of this type means, with its status (0: it came inside of an answer) and as it was sent."""
    if b"exceed context limit" in body:
        return Trouble.OVERFLOW
    if b"usage limits" in body or b"enforced_spend_limit_reached" in body:
        return Trouble.SPENT
    if kind == "not_found_error":
        return Trouble.REFUSED
    return TROUBLES.get(kind) or judge(status, body)


def _provider_error(error: Any, data: bytes) -> AnswerBroken:
    kind = error.get("type") if isinstance(error, dict) else None
    return AnswerBroken(f"reported an error: {error_text(error) or snippet(data)}", trouble_of(str(kind), 0, data))


def _or(value: int | None, instead: int) -> int:
    return instead if value is None else value
