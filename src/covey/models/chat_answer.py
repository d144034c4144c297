"""The bytes of a streamed Chat Completions answer → model facts. Pure: fed as the bytes come, does no I/O.

Text that arrives in one read becomes one fact, so a reader that falls behind has less to do, not more.
"Compatible" servers differ: tool calls come in fragments or whole, with and without index or id, and some end with
`stop` where they mean `tool_calls`. What can be understood is understood; what cannot is an `AnswerBroken`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from covey.lifecycle.reply import ReasoningDelta, TextDelta, ToolCallBegun, ToolInputDelta, UsageReported
from covey.models.sse import SseAnswer
from covey.models.trouble import AnswerBroken, reported, snippet
from covey.protocol.messages import FinishReason

_REASONS: dict[str, FinishReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "content_filter",
}


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _ToolCall(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class ChatDelta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: Any = None
    """OpenRouter's own form of thoughts, which it wants back: see `openrouter`."""
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: ChatDelta | None = None
    message: ChatDelta | None = None
    """Instead of the delta, where a server or a proxy does not stream."""
    finish_reason: str | None = None


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class ChatUsage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None
    """What DeepSeek calls its cached tokens."""
    cost: Any = None
    """Dollars with OpenRouter; elsewhere it may be anything. So is the rest."""
    is_byok: Any = None
    cost_details: Any = None


class _Groq(msgspec.Struct, gc=False):
    usage: ChatUsage | None = None
    error: Any = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: ChatUsage | None = None
    error: Any = None
    x_groq: _Groq | None = None
    """Where Groq puts the usage, if it was not asked for it."""


_decode_chunk = msgspec.json.Decoder(_Chunk).decode


class ChatAnswer(SseAnswer):
    """One answer, as far as it has come."""

    def __init__(self, used_call_ids: Iterable[str] = (), on_thoughts: Callable[[], None] = lambda: None) -> None:
        super().__init__(used_call_ids)
        self._on_thoughts = on_thoughts
        """Called when thoughts come as `reasoning_content`."""
        self._finish_reason = ""
        self._call_count = 0
        self._calls: dict[tuple[int | None, str], int] = {}
        """The number of the last tool call with this index and id; `None` or '' stands for any."""

    def _reason(self) -> FinishReason:
        reason = _REASONS.get(self._finish_reason, "unknown")
        if reason in ("max_tokens", "content_filter"):
            return reason
        if self._call_count:
            return "tool_use"
        return "end_turn" if reason == "tool_use" else reason

    def _event(self, data: bytes) -> None:
        try:
            chunk = _decode_chunk(data)
        except msgspec.DecodeError:
            self._not_a_chunk(data.strip())
            return
        if chunk.error:
            raise reported(chunk.error)
        if chunk.choices is None and chunk.usage is None:
            self._not_a_chunk(data.strip())
            return
        self._seen_events = True
        for choice in chunk.choices or ():
            if delta := choice.delta or choice.message:
                self._take(delta)
            if choice.finish_reason:
                self._finish_reason = choice.finish_reason
                self.finished = True
        if chunk.usage is not None:
            self._usage = self._counted(chunk.usage)
        elif chunk.x_groq is not None:
            self._take_groq(chunk.x_groq)

    def _not_a_chunk(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.done = True
        elif data and "choices" in self._strange(data):
            raise AnswerBroken(f"sent an event of an unknown form: {snippet(data)}")

    def _take(self, delta: ChatDelta) -> None:
        if delta.reasoning_content:
            self._on_thoughts()
        if text := delta.reasoning_content or delta.reasoning:
            self._grow(ReasoningDelta, text)
        if text := delta.content or delta.refusal:
            self._grow(TextDelta, text)
        for call in delta.tool_calls or ():
            self._take_call(call, call.function or _Function())

    def _take_groq(self, groq: _Groq) -> None:
        if groq.error:
            raise reported(groq.error)
        if groq.usage is not None:
            self._usage = self._counted(groq.usage)

    def _take_call(self, call: _ToolCall, function: _Function) -> None:
        self._flush()
        number = self._find_call(call, function.name)
        if number is None:
            if not function.name:
                raise AnswerBroken("sent a tool call without a name")
            number = self._call_count
            self._facts.append(ToolCallBegun(number, self._call_id(call.id), function.name))
            self._call_count += 1
            call_id = call.id or ""
            self._calls |= {(call.index, call_id): number, (call.index, ""): number, (None, call_id): number}
        text = function.arguments
        if isinstance(text, dict):
            text = msgspec.json.encode(text).decode()
        if text:
            self._facts.append(ToolInputDelta(number, text))

    def _find_call(self, call: _ToolCall, name: str | None) -> int | None:
        """The call that this fragment continues; None if it begins a new one."""
        if call.index is None:
            if not call.id:
                return None if name else self._calls.get((None, ""))
            return self._calls.get((None, call.id))
        # Whole calls that all have index 0 differ in their id, and each has its name.
        return self._calls.get((call.index, call.id if name and call.id else ""))

    def _counted(self, usage: ChatUsage) -> UsageReported:
        details = usage.prompt_tokens_details or _Details()
        return UsageReported(
            usage.prompt_tokens or 0,
            usage.completion_tokens or 0,
            cached_tokens=details.cached_tokens or usage.prompt_cache_hit_tokens or 0,
            cache_write_tokens=details.cache_write_tokens or 0,
        )
