"""The bytes of a streamed Chat Completions answer → model facts. Pure: fed as the bytes come, does no I/O.

Text that arrives in one read becomes one fact, so a reader that falls behind has less to do, not more.
"Compatible" servers differ: tool calls come in fragments or whole, with and without index or id, and some end with
`stop` where they mean `tool_calls`. What can be understood is understood; what cannot is an `AnswerBroken`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from typing import Any

import msgspec

from covey.lifecycle.reply import (
    ModelFact,
    ReasoningDelta,
    Stopped,
    TextDelta,
    ToolCallBegun,
    ToolInputDelta,
    UsageReported,
)
from covey.protocol.messages import FinishReason

MAX_LINE_BYTES = 16 * 1024 * 1024
"""A whole tool call can come on one line; a line without end must not fill the memory."""
SNIPPET = 200
"""How much of something strange is shown: enough to recognise it."""
MAX_ERROR_TEXT = 1000
"""Some servers quote the whole request in their errors."""

NOT_AN_API = "answered with a web page: this does not look like an OpenAI-compatible API, so check base_url"
CUT_OFF = "stopped before the end: the answer was cut off"

_REASONS: dict[str, FinishReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "content_filter",
}


class AnswerBroken(Exception):
    """The answer is an error, has no end, or is no answer. The text goes on where "the server" ends."""


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _ToolCall(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    message: _Delta | None = None
    """Instead of the delta, where a server or a proxy does not stream."""
    finish_reason: str | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_decode_chunk = msgspec.json.Decoder(_Chunk).decode


class ChatAnswer:
    """One answer, as far as it has come."""

    def __init__(self, used_call_ids: Iterable[str] = ()) -> None:
        self.done = False
        """Nothing that follows can matter: call `end`."""
        self._broken: AnswerBroken | None = None
        self._finish_reason: str | None = None
        self._rest = bytearray()
        self._facts: list[ModelFact] = []
        self._kind: type[TextDelta] | type[ReasoningDelta] = TextDelta
        self._pieces: list[str] = []
        self._call_ids = set(used_call_ids)
        self._calls: list[tuple[int | None, str]] = []
        """For each tool call so far, the index and the id that the server gave it."""
        self._usage: UsageReported | None = None
        self._seen_events = False

    @property
    def finished(self) -> bool:
        """Everything but the usage and the end mark is here."""
        return self._finish_reason is not None

    def feed(self, data: bytes) -> list[ModelFact]:
        """The facts that `data` completes. If it breaks the answer, `end` says so: words before the break count."""
        self._facts = []
        try:
            for line in self._lines(data):
                if line.startswith(b"data:"):
                    self._event(line[5:])
                elif line:
                    self._other_line(line)
        except AnswerBroken as broken:
            self._broken, self.done = broken, True
        self._flush()
        if self._usage is not None:
            self._facts.append(self._usage)
            self._usage = None
        return self._facts

    def end(self) -> list[ModelFact]:
        """The last facts, of which the very last one is `Stopped`; raises AnswerBroken if the answer has no end."""
        if self._broken:
            raise self._broken
        facts = self.feed(b"\n")
        if not self.finished:
            if not self._seen_events:
                raise self._broken or AnswerBroken("sent nothing that looks like an OpenAI-compatible API's answer")
            if self._broken or not self.done:
                raise AnswerBroken(CUT_OFF)
        return [*facts, Stopped(self._reason())]

    def _reason(self) -> FinishReason:
        reason = _REASONS.get(self._finish_reason or "", "unknown")
        if reason in ("max_tokens", "content_filter"):
            return reason
        if self._calls:
            return "tool_use"
        return "end_turn" if reason == "tool_use" else reason

    def _lines(self, data: bytes) -> list[bytes]:
        if self._rest or not data.endswith(b"\n"):
            start = len(self._rest)
            self._rest += data
            end = self._rest.rfind(b"\n", start)
            if end < 0:
                if len(self._rest) > MAX_LINE_BYTES:
                    raise AnswerBroken(f"sent a line of more than {MAX_LINE_BYTES // 2**20} MiB")
                return []
            data = bytes(self._rest[:end])
            del self._rest[: end + 1]
        return data.split(b"\n")

    def _event(self, data: bytes) -> None:
        try:
            chunk = _decode_chunk(data)
        except msgspec.DecodeError:
            self._not_a_chunk(data.strip())
            return
        if chunk.error:
            raise AnswerBroken(f"reported an error: {error_text(chunk.error) or snippet(data)}")
        if chunk.choices is None and chunk.usage is None:
            self._not_a_chunk(data.strip())
            return
        self._seen_events = True
        for choice in chunk.choices or ():
            if delta := choice.delta or choice.message:
                self._take(delta)
            if choice.finish_reason:
                self._finish_reason = choice.finish_reason
        if chunk.usage is not None:
            self._usage = UsageReported(chunk.usage.prompt_tokens or 0, chunk.usage.completion_tokens or 0)

    def _not_a_chunk(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.done = True
        elif data:
            try:
                value = msgspec.json.decode(data)
            except msgspec.DecodeError:
                raise AnswerBroken(f"sent garbage: {snippet(data)}") from None
            if told := error_text(value):
                raise AnswerBroken(f"reported an error: {told}")
            if not isinstance(value, dict) or "choices" in value:
                raise AnswerBroken(f"sent an event of an unknown form: {snippet(data)}")

    def _other_line(self, line: bytes) -> None:
        """Comments and other fields mean nothing here. Errors sometimes come as bare JSON, or as a web page."""
        text = line.strip()
        if text.startswith(b"{"):
            self._event(text)
        elif text.startswith(b"<") and not self._seen_events:
            raise AnswerBroken(NOT_AN_API)

    def _take(self, delta: _Delta) -> None:
        if text := delta.reasoning_content or delta.reasoning:
            self._grow(ReasoningDelta, text)
        if text := delta.content or delta.refusal:
            self._grow(TextDelta, text)
        for call in delta.tool_calls or ():
            self._take_call(call, call.function or _Function())

    def _grow(self, kind: type[TextDelta] | type[ReasoningDelta], text: str) -> None:
        if kind is not self._kind:
            self._flush()
            self._kind = kind
        self._pieces.append(text)

    def _flush(self) -> None:
        if self._pieces:
            self._facts.append(self._kind("".join(self._pieces)))
            self._pieces.clear()

    def _take_call(self, call: _ToolCall, function: _Function) -> None:
        self._flush()
        number = self._find_call(call, function.name)
        if number is None:
            number = len(self._calls)
            self._calls.append((call.index, call.id or ""))
            if not function.name:
                raise AnswerBroken("sent a tool call without a name")
            self._facts.append(ToolCallBegun(number, self._call_id(call.id), function.name))
        text = function.arguments
        if isinstance(text, dict):
            text = msgspec.json.encode(text).decode()
        if text:
            self._facts.append(ToolInputDelta(number, text))

    def _find_call(self, call: _ToolCall, name: str | None) -> int | None:
        """The call that this fragment continues; None if it begins a new one."""
        for number in reversed(range(len(self._calls))):
            index, call_id = self._calls[number]
            if call.index is None:
                continues = not name if not call.id else call.id == call_id
            else:
                # Whole calls that all have index 0 differ in their id, and each has its name.
                continues = call.index == index and not (name and call.id and call.id != call_id)
            if continues:
                return number
        return None

    def _call_id(self, given: str | None) -> str:
        """Results find their calls by id, so one that is missing or used before is replaced."""
        if not given or given in self._call_ids:
            given = f"call_{secrets.token_hex(8)}"
        self._call_ids.add(given)
        return given


def error_text_of_body(body: bytes) -> str:
    """What the body of an error says, whatever its shape; '' if it says nothing."""
    text = body.strip()
    if re.match(rb"(?i)<(!doctype|html|\?xml|head|body)", text):
        return NOT_AN_API
    try:
        return error_text(msgspec.json.decode(text))
    except msgspec.DecodeError:
        return snippet(text)


def error_text(value: Any) -> str:
    """The sentence for people somewhere in a decoded error; '' if there is none."""
    match value:
        case str():
            return value.strip()[:MAX_ERROR_TEXT]
        case dict():
            texts = (error_text(value.get(key)) for key in ("error", "message", "detail", "msg", "errors"))
        case list():
            texts = (error_text(item) for item in value)
        case _:
            return ""
    return next((text for text in texts if text), "")


def snippet(data: bytes) -> str:
    text = " ".join(data[: SNIPPET * 4].decode("utf-8", "replace").split())
    return text[:SNIPPET] + ("…" if len(text) > SNIPPET else "")
