"""Ollama's own chat, for one reason: only there a request can say how large the model's window is to be (`num_ctx`).

What goes out is what Chat Completions would get, in Ollama's form; what comes back is a line of JSON for each piece.
Pure but for `OllamaChat`, which puts both together. https://docs.ollama.com/api/chat
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from covey.config.schema import ProviderSettings
from covey.lifecycle.reply import ReasoningDelta, TextDelta, ToolCallBegun, ToolInputDelta, UsageReported
from covey.models.base import ModelRequest
from covey.models.chat_request import Kept, body_of, thoughts_of_turn
from covey.models.openai_compatible import used_call_ids
from covey.models.sse import SseAnswer
from covey.models.wire import WireClient
from covey.protocol.messages import FinishReason

_Json = dict[str, Any]


class OllamaChat(WireClient):
    """`num_ctx`: how many tokens a model is to see."""

    key_check_path = "/api/version"

    def __init__(self, provider_id: str, settings: ProviderSettings, num_ctx: Callable[[str], int]) -> None:
        super().__init__(provider_id, settings)
        self._num_ctx = num_ctx

    def _path(self, request: ModelRequest) -> str:
        return "/api/chat"

    def _encode(self, request: ModelRequest) -> bytes:
        kept = thoughts_of_turn(request, self._provider_id)
        return msgspec.json.encode(native_body(request, self._num_ctx(request.model), kept))

    def _decoder(self, request: ModelRequest) -> OllamaAnswer:
        return OllamaAnswer(used_call_ids(request))


def native_body(request: ModelRequest, num_ctx: int, kept: Kept = lambda answer: {}) -> _Json:
    compatible = body_of(request, "max_tokens", kept)
    names = {call.id: call.name for message in request.messages for call in message.tool_calls}
    options: _Json = {"num_ctx": num_ctx}
    if request.max_tokens:
        options["num_predict"] = request.max_tokens
    body: _Json = {"model": request.model, "stream": True, "options": options}
    body["messages"] = [_message(message, names) for message in compatible["messages"]]
    if "tools" in compatible and request.may_call:  # it has no word for tools that may not be called
        body["tools"] = compatible["tools"]
    if "response_format" in compatible:
        body["format"] = request.output_schema
    return body


def _message(message: _Json, names: dict[str, str]) -> _Json:
    """Arguments are an object, results name their tool, and pictures and thoughts stand beside the text."""
    content = message["content"]
    pieces: list[_Json] = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    native: _Json = {"role": message["role"], "content": "\n\n".join(p["text"] for p in pieces if p["type"] == "text")}
    pictures = [piece["image_url"]["url"] for piece in pieces if piece["type"] == "image_url"]
    if shown := [url.partition(";base64,")[2] for url in pictures if ";base64," in url]:
        native["images"] = shown
    if thoughts := message.get("reasoning_content"):
        native["thinking"] = thoughts
    if calls := message.get("tool_calls"):
        native["tool_calls"] = [
            {"function": {"name": call["function"]["name"], "arguments": _object(call["function"]["arguments"])}}
            for call in calls
        ]
    if message["role"] == "tool":
        native["tool_name"] = names.get(message["tool_call_id"], "")
    return native


def _object(arguments: str) -> _Json:
    """A call whose input was cut off has none that could be read."""
    try:
        return msgspec.json.decode(arguments, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return {}


# ── what comes back ──


class _Function(msgspec.Struct):
    name: str = ""
    arguments: _Json | None = None


class _Call(msgspec.Struct):
    function: _Function = msgspec.field(default_factory=_Function)


class _Piece(msgspec.Struct):
    content: str = ""
    thinking: str = ""
    tool_calls: list[_Call] | None = None


class _Line(msgspec.Struct):
    message: _Piece | None = None
    done: bool = False
    done_reason: str = ""
    prompt_eval_count: int = 0
    eval_count: int = 0
    error: Any = None


_decode_line = msgspec.json.Decoder(_Line).decode


class OllamaAnswer(SseAnswer):
    """One answer, as far as it has come."""

    _calls = 0
    _why = ""

    def _event(self, data: bytes) -> None:
        try:
            line = _decode_line(data)
        except msgspec.MsgspecError:
            self._strange(data)
            return
        if line.error is not None or (line.message is None and not line.done):
            self._strange(data)
            return
        self._seen_events = True
        if line.message:
            self._take(line.message)
        if line.done:
            self._why = line.done_reason
            self._usage = UsageReported(line.prompt_eval_count, line.eval_count)
            self.finished = self.done = True

    def _take(self, piece: _Piece) -> None:
        if piece.thinking:
            self._grow(ReasoningDelta, piece.thinking)
        if piece.content:
            self._grow(TextDelta, piece.content)
        for call in piece.tool_calls or ():
            number, self._calls = self._calls, self._calls + 1
            self._emit(ToolCallBegun(number, self._call_id(None), call.function.name))
            self._emit(ToolInputDelta(number, msgspec.json.encode(call.function.arguments or {}).decode()))

    def _reason(self) -> FinishReason:
        if self._why == "length":
            return "max_tokens"
        return "tool_use" if self._calls else "end_turn"
