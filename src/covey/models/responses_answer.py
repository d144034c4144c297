"""The bytes of a streamed Responses answer → model facts. Pure: fed as the bytes come, does no I/O.

An answer is a list of items: thoughts, messages, function calls. Each is announced, grows by deltas, and is repeated
as a whole when it is done; what the deltas left out is taken from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from covey.lifecycle.reply import ReasoningDelta, TextDelta, ToolCallBegun, ToolInputDelta, UsageReported
from covey.models.responses_request import Thought
from covey.models.sse import SseAnswer
from covey.models.trouble import CUT_OFF, AnswerBroken, Trouble, reported, snippet
from covey.protocol.messages import FinishReason

_TEXT = frozenset(("response.output_text.delta", "response.refusal.delta"))
_REASONING = frozenset(("response.reasoning_summary_text.delta", "response.reasoning_text.delta"))
_REASONS: dict[str, FinishReason] = {"max_output_tokens": "max_tokens", "content_filter": "content_filter"}


class _Piece(msgspec.Struct, gc=False):
    """Of a message or a thought."""

    text: str = ""
    refusal: str = ""


class _Item(msgspec.Struct, gc=False):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    encrypted_content: str | None = None
    content: list[_Piece] | None = None
    summary: list[_Piece] | None = None


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: _Details | None = None


class _Incomplete(msgspec.Struct, gc=False):
    reason: str | None = None


class _Response(msgspec.Struct, gc=False):
    status: str | None = None
    error: Any = None
    incomplete_details: _Incomplete | None = None
    output: list[_Item] | None = None
    usage: _Usage | None = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    delta: str = ""
    output_index: int = 0
    summary_index: int = 0
    item: _Item | None = None
    response: _Response | None = None


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_whole = msgspec.json.Decoder(_Response).decode


class ResponsesAnswer(SseAnswer):
    """One answer, as far as it has come."""

    def __init__(self, used_call_ids: Iterable[str] = ()) -> None:
        super().__init__(used_call_ids)
        self._status = ""
        self._incomplete = ""
        self._spoken: set[int] = set()
        """The items of which text has come."""
        self._calls: dict[int, list[int]] = {}
        """For the item of each function call: its number among the calls, and how much of its input has come."""

    def _reason(self) -> FinishReason:
        if self._status == "incomplete":
            return _REASONS.get(self._incomplete, "unknown")
        if self._calls:
            return "tool_use"
        return "end_turn" if self._status == "completed" else "unknown"

    def _event(self, data: bytes) -> None:
        try:
            event = _decode_event(data)
        except msgspec.DecodeError:
            self._not_an_event(data.strip())
            return
        kind = event.type
        if kind in _TEXT:
            self._speak(event.output_index, TextDelta, event.delta)
        elif kind == "response.function_call_arguments.delta":
            self._input(event.output_index, event.delta)
        elif kind in _REASONING:
            self._speak(event.output_index, ReasoningDelta, event.delta)
        else:
            self._rare_event(kind, event, data)
        self._seen_events = True

    def _rare_event(self, kind: str, event: _Event, data: bytes) -> None:
        match kind:
            case "response.reasoning_summary_part.added" if event.summary_index:
                self._grow(ReasoningDelta, "\n\n")
            case "response.output_item.added" if event.item:
                if event.item.type == "function_call":
                    self._begin(event.output_index, event.item)
            case "response.output_item.done" if event.item:
                self._whole_item(event.output_index, event.item)
            case "response.completed" | "response.incomplete" if event.response:
                self._end(event.response, kind.removeprefix("response."))
            case "response.failed" if event.response:
                raise reported(event.response.error or {"message": "it did not say which"})
            case "response.cancelled":
                raise AnswerBroken(CUT_OFF, Trouble.CUT)
            case "error":
                raise reported(msgspec.json.decode(data))
            case _ if not kind.startswith("response."):
                self._not_an_event(data.strip())

    def _not_an_event(self, data: bytes) -> None:
        """Some servers send an end mark, some a whole answer instead of a stream, all of them errors."""
        if data == b"[DONE]":
            self.done = True
        elif data:
            value = self._strange(data)
            if "type" in value or value.get("object") != "response":
                if str(value.get("type")).startswith("response."):
                    raise AnswerBroken(f"sent an event of an unknown form: {snippet(data)}")
                return
            self._whole(data)

    def _whole(self, data: bytes) -> None:
        try:
            response = _decode_whole(data)
        except msgspec.DecodeError:
            raise AnswerBroken(f"sent an answer of an unknown form: {snippet(data)}") from None
        self._seen_events = True
        for index, item in enumerate(response.output or ()):
            self._whole_item(index, item)
        self._end(response, response.status or "")

    def _speak(self, index: int, kind: type[TextDelta] | type[ReasoningDelta], text: str) -> None:
        if index not in self._spoken:
            self._count_item()
            self._spoken.add(index)
        self._grow(kind, text)

    def _begin(self, index: int, item: _Item) -> list[int]:
        if not item.name:
            raise AnswerBroken("sent a tool call without a name")
        call = self._calls[index] = [len(self._calls), 0]
        self._emit(ToolCallBegun(call[0], self._call_id(item.call_id or item.id), item.name))
        return call

    def _input(self, index: int, text: str) -> None:
        call = self._calls.get(index)
        if call is None:
            raise AnswerBroken("sent the input of a tool call that it had not begun")
        if text:
            call[1] += len(text)
            self._emit(ToolInputDelta(call[0], text))

    def _whole_item(self, index: int, item: _Item) -> None:
        """An item that is done: what is missing of it so far."""
        match item.type:
            case "function_call":
                call = self._calls.get(index) or self._begin(index, item)
                self._input(index, (item.arguments or "")[call[1] :])
            case "message" if index not in self._spoken:
                for piece in item.content or ():
                    self._grow(TextDelta, piece.text or piece.refusal)
            case "reasoning":
                if index not in self._spoken and (pieces := item.summary or item.content):
                    self._grow(ReasoningDelta, "\n\n".join(piece.text for piece in pieces))
                if item.id and item.encrypted_content:
                    self._emit(ReasoningDelta("", Thought(item.id, item.encrypted_content).signature()))

    def _end(self, response: _Response, status: str) -> None:
        if response.error or status == "failed":
            raise reported(response.error or {"message": "it did not say which"})
        self._status = status
        self._incomplete = (response.incomplete_details and response.incomplete_details.reason) or ""
        if usage := response.usage:
            details = usage.input_tokens_details or _Details()
            self._usage = UsageReported(
                usage.input_tokens,
                usage.output_tokens,
                cached_tokens=details.cached_tokens or 0,
                cache_write_tokens=details.cache_write_tokens or 0,
            )
        self.finished = self.done = True
