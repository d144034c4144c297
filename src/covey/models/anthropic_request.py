"""Our messages → the body of a request to Anthropic's Messages API. Pure, but for the catalogue.

The API is strict: roles take turns and the user has the first word, no text is blank, each tool call has an id of its
own and its result right after it. Thoughts go back to the model that had them, exactly as they came.
"""

from __future__ import annotations

import re
from typing import Any, assert_never

import msgspec

from covey.models import catalog
from covey.models.anthropic_answer import REDACTED, SIGNED
from covey.models.base import ModelRequest
from covey.models.pieces import ImageSupport, Picture, PictureAt, Piece, Words, is_of, pieces_of, pieces_of_result
from covey.protocol.messages import (
    BinaryPart,
    FinishPart,
    ImageUrlPart,
    Message,
    Part,
    Reasoning,
    ReasoningPart,
    ShellCommandPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

MAX_TOKENS = 8192
"""For models that the catalogue does not know: every Claude since 3.5 can say as much."""
BUDGETS = {"low": 2048, "medium": 8192, "high": 24_576}
"""Tokens to think, for models that do not find their own measure. More than the last helps seldom and costs always."""
MIN_BUDGET = 1024
"""Anthropic's own bound."""
ADAPTIVE_SINCE = (4, 6)
"""From here on a model chooses how long it thinks, and is given an effort; before, it is given a budget."""
ALWAYS_SINCE = (5, 0)
"""From here on a model thinks unless it is told not to."""
BOUND_SINCE = (5, 1)
"""From here on a thought is refused when anything before it has changed, as in every summary."""
BEGINNING = "(The beginning of the conversation is missing.)"
GO_ON = "Go on."

_IMAGES = ImageSupport(frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}), fetches=True)
_CACHE = {"type": "ephemeral"}
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?")
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")

_Json = dict[str, Any]


def encode_request(request: ModelRequest, provider_id: str, *, binding: bool = True) -> bytes:
    """The whole body. `binding`: the request says in a header that it may choose what happens to changed thoughts."""
    body: _Json = {"model": request.model, "stream": True} | _thinking(request, provider_id, binding=binding)
    thoughts = "thinking" in body or version_of(request.model) is None
    body["messages"] = _Conversation(request, provider_id, thoughts=thoughts).turns()
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHE}]
    if request.tools:
        tools: list[_Json] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
        tools[-1]["cache_control"] = _CACHE
        body["tools"] = tools
        if not request.may_call:
            body["tool_choice"] = {"type": "none"}
    return msgspec.json.encode(body)


def version_of(model: str) -> tuple[int, int] | None:
    """(4, 5) for claude-haiku-4-5-20251001. A Claude without a number is a new one; None: not a Claude."""
    if found := _VERSION.search(model):
        return int(found[1]), int(found[2] or 0)
    return (99, 0) if "claude-" in model else None


def _thinking(request: ModelRequest, provider_id: str, *, binding: bool) -> _Json:
    """How long it may think, and how long all of it may get: thoughts count too."""
    card = catalog.lookup("anthropic", request.model)
    most = card.max_tokens if card and card.max_tokens else 0
    max_tokens = request.max_tokens or most or MAX_TOKENS
    version = version_of(request.model)
    if version and version >= ADAPTIVE_SINCE:
        return {"max_tokens": max_tokens} | _adaptive(request.effort, version, binding=binding)
    if not request.effort or not _may_think(request, provider_id):
        return {"max_tokens": max_tokens}
    budget = BUDGETS.get(request.effort, BUDGETS["medium"])
    if max_tokens <= budget + MIN_BUDGET:
        max_tokens += budget
    if most and max_tokens > most:
        max_tokens = most
    budget = min(budget, max_tokens - MIN_BUDGET)  # something must be left for the answer
    if budget < MIN_BUDGET:
        return {"max_tokens": max_tokens}
    return {"max_tokens": max_tokens, "thinking": {"type": "enabled", "budget_tokens": budget}}


def _adaptive(effort: str, version: tuple[int, int], *, binding: bool) -> _Json:
    if not effort and version < ALWAYS_SINCE:
        return {}
    thinking: _Json = {"type": "adaptive", "display": "summarized"}  # else people would watch a silent model
    if binding and version >= BOUND_SINCE:
        thinking["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
    return {"thinking": thinking} | ({"output_config": {"effort": effort}} if effort else {})


def _may_think(request: ModelRequest, provider_id: str) -> bool:
    """A step whose calls were made without thoughts, or by another model, is followed by one without them."""
    last = next((message for message in reversed(request.messages) if message.role == "assistant"), None)
    return last is None or not last.tool_calls or bool(_thoughts(last, request, provider_id))


def _thoughts(message: Message, request: ModelRequest, provider_id: str) -> list[_Json]:
    if not is_of(message, provider_id, request.model):
        return []
    return [block for part in message.parts if isinstance(part, ReasoningPart) for block in _thought(part.data)]


def _thought(data: Reasoning) -> list[_Json]:
    """The blocks of one part: the text is that of the first signed one. What nobody signed cannot be sent."""
    blocks: list[_Json] = []
    text = data.thinking
    for line in data.signature.splitlines():
        if line.startswith(SIGNED):
            blocks.append({"type": "thinking", "thinking": text, "signature": line.removeprefix(SIGNED)})
            text = ""
        elif line.startswith(REDACTED):
            blocks.append({"type": "redacted_thinking", "data": line.removeprefix(REDACTED)})
    return blocks


class _Conversation:
    """The messages, put into the form that the API accepts."""

    def __init__(self, request: ModelRequest, provider_id: str, *, thoughts: bool) -> None:
        self._request = request
        self._provider_id = provider_id
        self._sends_thoughts = thoughts
        self._images = _IMAGES if request.sees_images else ImageSupport()
        self._turns: list[_Json] = []
        self._open: dict[str, list[str]] = {}
        """For each of our ids, those under which calls were sent that have no result yet."""
        self._used: set[str] = set()

    def turns(self) -> list[_Json]:
        for message in self._request.messages:
            if message.role == "assistant":
                self._add("assistant", self._said(message))
            elif message.role == "tool":
                self._add("user", self._results(message))
            else:
                self._add("user", [_block(piece) for piece in pieces_of(message.parts, self._images)])
        if not self._turns or self._turns[-1]["role"] == "assistant":
            self._add("user", [{"type": "text", "text": GO_ON}])
        for turn in [turn for turn in self._turns if turn["role"] == "user"][-2:]:
            turn["content"][-1]["cache_control"] = _CACHE
        return self._turns

    def _add(self, role: str, blocks: list[_Json]) -> None:
        if not blocks:
            return
        if not self._turns and role == "assistant":
            self._turns.append({"role": "user", "content": [{"type": "text", "text": BEGINNING}]})
        if self._turns and self._turns[-1]["role"] == role:
            self._turns[-1]["content"] += blocks
        else:
            self._turns.append({"role": role, "content": blocks})

    def _said(self, message: Message) -> list[_Json]:
        """Up to the last word or call: a thought that nothing followed was cut short, and is refused at the end."""
        own = self._sends_thoughts and is_of(message, self._provider_id, self._request.model)
        blocks = [block for part in message.parts for block in self._blocks(part, own=own)]
        while blocks and blocks[-1]["type"] not in ("text", "tool_use"):
            blocks.pop()
        return blocks

    def _blocks(self, part: Part, *, own: bool) -> list[_Json]:
        match part:
            case TextPart(data=data):
                return [{"type": "text", "text": data.text}] if data.text.strip() else []
            case ReasoningPart(data=data):
                return _thought(data) if own else []
            case ToolCallPart(data=data):
                call_id = self._new_id(data.id)
                self._open.setdefault(data.id, []).append(call_id)
                given = data.input.strip() or "{}"  # sent as it came: a changed letter would spoil the cache
                return [{"type": "tool_use", "id": call_id, "name": data.name, "input": msgspec.Raw(given.encode())}]
            case ToolResultPart() | ImageUrlPart() | BinaryPart() | ShellCommandPart() | FinishPart():
                return []
            case _:
                assert_never(part)

    def _results(self, message: Message) -> list[_Json]:
        blocks: list[_Json] = []
        for result in message.tool_results:
            waiting = self._open.get(result.tool_call_id)
            if not waiting:
                continue
            block: _Json = {"type": "tool_result", "tool_use_id": waiting.pop(0)}
            content = [_block(piece) for piece in pieces_of_result(result, self._images)]
            if content:
                block["content"] = content
            if result.is_error:
                block["is_error"] = True
            blocks.append(block)
        return blocks

    def _new_id(self, call_id: str) -> str:
        """Other models have ids with other characters, or use the same ids again in each step."""
        plain = _NOT_IN_IDS.sub("_", call_id) or "call"
        unique, number = plain, 1
        while unique in self._used:
            number += 1
            unique = f"{plain}_{number}"
        self._used.add(unique)
        return unique


def _block(piece: Piece) -> _Json:
    match piece:
        case Words(text):
            return {"type": "text", "text": text}
        case Picture(mime_type, data):
            return {"type": "image", "source": {"type": "base64", "media_type": mime_type, "data": data}}
        case PictureAt(url):
            return {"type": "image", "source": {"type": "url", "url": url}}
        case _:
            assert_never(piece)
