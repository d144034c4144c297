"""Our messages → the body of a request to Google's Gemini API. Pure.

Signatures go back to the model that gave them, in the places from which they came (see `google_answer`). A call without
one, as another model makes it, is marked as such: Gemini 3 and later refuse it otherwise.
"""

from __future__ import annotations

import re
from typing import Any, assert_never

import msgspec

from covey.models.base import ModelRequest, ToolSpec
from covey.models.gemini_schema import clean_schema
from covey.models.google_answer import CALL, TEXT, THOUGHT
from covey.models.pieces import ImageSupport, Picture, PictureAt, Piece, Words, is_of, pieces_of, pieces_of_result
from covey.protocol.messages import (
    BinaryPart,
    FinishPart,
    ImageUrlPart,
    Message,
    ReasoningPart,
    ShellCommandPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)

BUDGETS = {"low": 2048, "medium": 8192, "high": 24_576}
"""Tokens to think, for Gemini 2.5; the last is the most that its smaller models take."""
UNSIGNED = "skip_thought_signature_validator"
"""What Google wants in the place of a signature that there never was."""
GO_ON = "Go on."

_IMAGES = ImageSupport(frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}))
_VERSION = re.compile(r"gemini-(\d{1,2})(?:\.(\d{1,2}))?")
_MADE_BY_US = re.compile(r"call_[0-9a-f]{16}")
"""An id that Gemini did not give, and so does not get back."""

_Json = dict[str, Any]


def encode_request(request: ModelRequest, provider_id: str) -> bytes:
    body: _Json = {"contents": _Conversation(request, provider_id).contents()}
    if request.system.strip():
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in request.tools]}]
        if not request.may_call:
            body["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
    generation: _Json = {"maxOutputTokens": request.max_tokens} if request.max_tokens else {}
    if request.output_schema and not request.tools:  # older Geminis refuse both together
        generation |= {"responseMimeType": "application/json", "responseSchema": clean_schema(request.output_schema)}
    if thinking := _thinking(request):
        generation["thinkingConfig"] = thinking
    if generation:
        body["generationConfig"] = generation
    return msgspec.json.encode(body)


def version_of(model: str) -> tuple[int, int] | None:
    """(2, 5) for gemini-2.5-pro. A Gemini without a number is the newest; None: another model of Google's."""
    if found := _VERSION.search(model):
        return int(found[1]), int(found[2] or 0)
    return (99, 0) if "gemini-" in model else None


def _thinking(request: ModelRequest) -> _Json:
    version = version_of(request.model)
    if version is None or version < (2, 5):
        return {}
    thinking: _Json = {"includeThoughts": True}
    if request.effort and version < (3, 0):
        thinking["thinkingBudget"] = BUDGETS.get(request.effort, BUDGETS["medium"])
    elif request.effort:
        thinking["thinkingLevel"] = request.effort
    return thinking


def _declaration(tool: ToolSpec) -> _Json:
    declaration: _Json = {"name": tool.name, "description": tool.description}
    if tool.parameters.get("properties"):  # an object without any is refused
        declaration["parameters"] = clean_schema(tool.parameters)
    return declaration


class _Conversation:
    """The messages, put into the form that the API accepts."""

    def __init__(self, request: ModelRequest, provider_id: str) -> None:
        self._request = request
        self._provider_id = provider_id
        self._images = _IMAGES if request.sees_images else ImageSupport()
        self._is_new = (version_of(request.model) or (0, 0)) >= (3, 0)
        self._contents: list[_Json] = []
        self._names: dict[str, str] = {}
        """The tool of each call."""

    def contents(self) -> list[_Json]:
        for message in self._request.messages:
            if message.role == "assistant":
                self._add("model", self._said(message))
            elif message.role == "tool":
                self._add_results(message)
            else:
                self._add("user", [_part(piece) for piece in pieces_of(message.parts, self._images)])
        if not self._contents or self._contents[-1]["role"] == "model":
            self._add("user", [{"text": GO_ON}])
        return self._contents

    def _add(self, role: str, parts: list[_Json]) -> None:
        """Neighbours become one, but for results: they stand alone, right after their calls."""
        if not parts:
            return
        last = self._contents[-1] if self._contents else None
        if last and last["role"] == role and "functionResponse" not in last["parts"][0]:
            last["parts"] += parts
        else:
            self._contents.append({"role": role, "parts": parts})

    def _add_results(self, message: Message) -> None:
        results = [result for result in message.tool_results if result.tool_call_id in self._names]
        if not results:
            return
        shown: list[_Json] = []
        parts = [self._response(result, shown) for result in results]
        self._contents.append({"role": "user", "parts": parts})
        self._add("user", shown)

    def _response(self, result: ToolResult, shown: list[_Json]) -> _Json:
        """One result. Older models cannot see pictures inside of it, so those are `shown` right after."""
        pieces = pieces_of_result(result, self._images)
        text = "\n".join(piece.text for piece in pieces if isinstance(piece, Words))
        response: _Json = {
            "name": self._names[result.tool_call_id],
            "response": {"error" if result.is_error else "output": text},
        }
        if not _MADE_BY_US.fullmatch(result.tool_call_id):
            response["id"] = result.tool_call_id
        pictures = [_part(piece) for piece in pieces if isinstance(piece, Picture)]
        if pictures and self._is_new:
            response["parts"] = pictures
        elif pictures:
            shown += [{"text": f"The picture that {response['name']} gave:"}, *pictures]
        return {"functionResponse": response}

    def _said(self, message: Message) -> list[_Json]:
        own = is_of(message, self._provider_id, self._request.model)
        parts: list[_Json] = []
        for part in message.parts:
            match part:
                case TextPart(data=data):
                    if data.text.strip():
                        parts.append({"text": data.text})
                case ReasoningPart(data=data):
                    if own:
                        _sign(parts, data.thinking, data.signature)
                case ToolCallPart(data=data):
                    self._call(parts, data)
                case ToolResultPart() | ImageUrlPart() | BinaryPart() | ShellCommandPart() | FinishPart():
                    pass
                case _:
                    assert_never(part)
        parts = [part for part in parts if "unused" not in part]
        calls = [part for part in parts if "functionCall" in part]
        if self._is_new and calls and "thoughtSignature" not in calls[0]:
            calls[0]["thoughtSignature"] = UNSIGNED
        return parts

    def _call(self, parts: list[_Json], call: ToolCall) -> None:
        self._names[call.id] = call.name
        given = call.input.strip() or "{}"
        wire: _Json = {"name": call.name, "args": msgspec.Raw(given.encode())}
        if not _MADE_BY_US.fullmatch(call.id):
            wire["id"] = call.id
        part: _Json = {"functionCall": wire}
        if parts and "unused" in parts[-1]:
            part["thoughtSignature"] = parts.pop()["unused"]
        parts.append(part)


def _sign(parts: list[_Json], thinking: str, signature: str) -> None:
    """Put the signatures of one part where they belong. One for a call waits at the end, `unused`, until it comes."""
    for line in signature.splitlines():
        kind, _, value = line.partition(":")
        if line.startswith(CALL):
            parts.append({"unused": value})
        elif line.startswith(THOUGHT):
            parts.append({"text": thinking, "thought": True, "thoughtSignature": value})
        elif line.startswith(TEXT) and kind[1:].isdecimal():
            _sign_text(parts, int(kind[1:]), value)


def _sign_text(parts: list[_Json], length: int, signature: str) -> None:
    """A signed text is a part of its own: it is neither joined with what came before nor cut."""
    text = ""
    if length and parts and set(parts[-1]) == {"text"}:
        before = parts.pop()["text"]
        text = before[len(before) - length :] if length < len(before) else before
        if rest := before[: len(before) - len(text)]:
            parts.append({"text": rest})
    parts.append({"text": text, "thoughtSignature": signature})


def _part(piece: Piece) -> _Json:
    match piece:
        case Words(text):
            return {"text": text}
        case Picture(mime_type, data):
            return {"inlineData": {"mimeType": mime_type, "data": data}}
        case PictureAt(url):
            return {"text": url}
        case _:
            assert_never(piece)
