"""The bytes of a streamed answer of Google's Gemini API → model facts. Pure: fed as the bytes come.

Gemini signs parts of its answers, and wants them back signed in the same places. The signatures travel in
`ReasoningDelta.signature`, one line for each, which begins with what it signs: `c:` the call that follows, `t:` the
thought itself, `p12:` the last 12 characters of the text before it. `google_request` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from covey.lifecycle.reply import ReasoningDelta, TextDelta, ToolCallBegun, ToolInputDelta, UsageReported
from covey.models.sse import SseAnswer
from covey.models.trouble import AnswerBroken, Trouble, error_text, judge, snippet
from covey.protocol.messages import FinishReason

CALL, THOUGHT, TEXT = "c:", "t:", "p"

_REASONS: dict[str, FinishReason] = {
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "CONTINUATION": "max_tokens",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
}
_BROKEN = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"})
"""The model went astray and nothing of use came out. Mostly it does better when asked again."""


class _Call(msgspec.Struct, gc=False):
    name: str = ""
    id: str = ""
    args: Any = None


class _Part(msgspec.Struct, gc=False, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str = ""
    function_call: _Call | None = None


class _Content(msgspec.Struct, gc=False):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, gc=False, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: int = 0


class _Feedback(msgspec.Struct, gc=False, rename="camel"):
    block_reason: str | None = None


class _Usage(msgspec.Struct, gc=False, rename="camel"):
    prompt_token_count: int = 0
    candidates_token_count: int = 0
    cached_content_token_count: int = 0
    thoughts_token_count: int = 0
    tool_use_prompt_token_count: int = 0


class _Chunk(msgspec.Struct, gc=False, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: _Usage | None = None
    error: Any = None


_decode_chunk = msgspec.json.Decoder(_Chunk).decode


class GeminiAnswer(SseAnswer):
    """One answer, as far as it has come."""

    def __init__(self, used_call_ids: Iterable[str] = ()) -> None:
        super().__init__(used_call_ids)
        self._finish_reason = ""
        self._finish_message = ""
        self._blocked = False
        self._calls = 0

    def _event(self, data: bytes) -> None:
        try:
            chunk = _decode_chunk(data)
        except msgspec.DecodeError:
            self._not_a_chunk(data.strip())
            return
        if chunk.error:
            raise provider_error(chunk.error, 0)
        if chunk.candidates is None and chunk.usage_metadata is None and chunk.prompt_feedback is None:
            self._strange(data)
            return
        self._seen_events = True
        for candidate in chunk.candidates or ():
            if candidate.index == 0:
                self._take(candidate)
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            self._blocked = self.finished = True
        if usage := chunk.usage_metadata:
            self._usage = UsageReported(
                usage.prompt_token_count + usage.tool_use_prompt_token_count,
                usage.candidates_token_count + usage.thoughts_token_count,
                usage.cached_content_token_count,
            )

    def _not_a_chunk(self, data: bytes) -> None:
        if data == b"[DONE]":  # not Google's, but some gateways end every stream so
            self.done = True
        elif data:
            self._strange(data)

    def _take(self, candidate: _Candidate) -> None:
        if candidate.content and candidate.content.parts:
            for part in candidate.content.parts:
                self._take_part(part)
        if candidate.finish_reason and candidate.finish_reason != "FINISH_REASON_UNSPECIFIED":
            self._finish_reason = candidate.finish_reason
            self._finish_message = candidate.finish_message or ""
            self.finished = True

    def _take_part(self, part: _Part) -> None:
        text = part.text or ""
        if part.function_call:
            self._take_call(part.function_call, part.thought_signature)
        elif part.thought:
            if text:
                self._grow(ReasoningDelta, text)
            if part.thought_signature:
                self._emit(ReasoningDelta("", f"{THOUGHT}{part.thought_signature}\n"))
        else:
            if text:
                self._grow(TextDelta, text)
            if part.thought_signature:
                self._emit(ReasoningDelta("", f"{TEXT}{len(text)}:{part.thought_signature}\n"))

    def _take_call(self, call: _Call, signature: str) -> None:
        if not call.name:
            raise AnswerBroken("sent a tool call without a name")
        if signature:
            self._emit(ReasoningDelta("", f"{CALL}{signature}\n"))
        self._emit(ToolCallBegun(self._calls, self._call_id(call.id), call.name))
        if call.args:
            self._facts.append(ToolInputDelta(self._calls, msgspec.json.encode(call.args).decode()))
        self._calls += 1

    def _reason(self) -> FinishReason:
        if self._blocked:
            return "content_filter"
        if self._finish_reason in _BROKEN:
            why = f": {self._finish_message}" if self._finish_message else ""
            raise AnswerBroken(f"gave no usable answer ({self._finish_reason}){why}", Trouble.BUSY)
        reason = _REASONS.get(self._finish_reason, "unknown")
        return "tool_use" if self._calls and reason in ("end_turn", "unknown") else reason


def trouble_of(status: int, body: bytes) -> Trouble:
    """What an error means, with its HTTP status (0: it came inside of an answer) and as it was sent."""
    if b"API_KEY_INVALID" in body or b"API key expired" in body or b"API key not valid" in body:
        return Trouble.AUTH
    if b"token count" in body and b"exceeds" in body:
        return Trouble.OVERFLOW
    if b"PerDay" in body or (b"FAILED_PRECONDITION" in body and b"billing" in body):
        return Trouble.SPENT
    return judge(status, body)


def provider_error(error: Any, status: int) -> AnswerBroken:
    """An error inside of an answer, decoded."""
    data = msgspec.json.encode(error)
    code = error.get("code") if isinstance(error, dict) else None
    status = status or (code if isinstance(code, int) else 0)
    return AnswerBroken(f"reported an error: {error_text(error) or snippet(data)}", trouble_of(status, data))
