"""Our messages → the body of a Chat Completions request. Pure.

Thoughts are not sent back by themselves, as most servers do not read them and some refuse them: `Kept` says which are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from covey.models.base import ModelRequest
from covey.models.pieces import ImageSupport, Picture, PictureAt, Piece, Words, is_of, pieces_of, pieces_of_result
from covey.protocol.messages import ImageUrlPart, Message, Part, ReasoningPart

COMMON_IMAGES = ImageSupport(frozenset(("image/png", "image/jpeg", "image/gif", "image/webp")), fetches=True)

_Json = dict[str, Any]
Kept = Callable[[Message], _Json]
"""What goes back with an answer beside its words and calls: further fields of its message."""


def images_for(request: ModelRequest) -> ImageSupport:
    """What OpenAI's models can be shown, and those that are compatible with them."""
    return COMMON_IMAGES if request.sees_images else ImageSupport()


def encode_request(request: ModelRequest, max_tokens_field: str, kept: Kept = lambda answer: {}) -> bytes:
    """The whole body; servers differ in the name of the limit."""
    return msgspec.json.encode(body_of(request, max_tokens_field, kept))


def body_of(request: ModelRequest, max_tokens_field: str, kept: Kept) -> _Json:
    """The same, for a server that wants more in it."""
    body: _Json = {
        "model": request.model,
        "messages": _messages(request, kept),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in request.tools
        ]
        if not request.may_call:
            body["tool_choice"] = "none"
    if request.max_tokens:
        body[max_tokens_field] = request.max_tokens
    if request.effort:
        body["reasoning_effort"] = request.effort
    if request.output_schema and not request.tools:  # a grammar would keep the model from calling any
        wanted = {"name": "output", "schema": request.output_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": wanted}
    return body


NO_THOUGHTS = " "
"""Stands for thoughts that there were none of: to Moonshot (Kimi) an empty field is a missing one."""


def all_thoughts(request: ModelRequest, provider_id: str) -> Kept:
    """For a model that wants the field in every answer, also where there is nothing of its own to put in."""
    return lambda answer: {"reasoning_content": _thoughts(answer, request, provider_id) or NO_THOUGHTS}


def thoughts_of_turn(request: ModelRequest, provider_id: str) -> Kept:
    """For a model that was heard thinking: what it thought in the turn under way, where it called tools."""
    last = next((message for message in reversed(request.messages) if message.role == "assistant"), None)
    run_id = last.run_id if last and last.tool_calls else ""  # an answer without calls has ended its turn

    def kept(answer: Message) -> _Json:
        if answer.run_id != run_id or not answer.tool_calls:
            return {}
        thoughts = _thoughts(answer, request, provider_id)
        return {"reasoning_content": thoughts} if thoughts else {}

    return kept


def _messages(request: ModelRequest, kept: Kept) -> list[_Json]:
    wire: list[_Json] = [{"role": "system", "content": request.system}] if request.system else []
    images = images_for(request)
    for message in request.messages:
        if message.role == "tool":
            wire += _tool_results(message, images)
        elif message.role == "assistant":
            wire.append(_assistant(message) | kept(message))
        else:
            content = _content(message, images)
            if wire and wire[-1]["role"] == message.role == "user":
                wire[-1]["content"] += content  # many chat templates refuse two user messages in a row
            else:
                wire.append({"role": message.role, "content": content})
    for entry in wire:
        if isinstance(entry["content"], list):
            entry["content"] = _simplest(entry["content"])
    return wire


def _assistant(message: Message) -> _Json:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.input or "{}"}}
        for call in message.tool_calls
    ]
    if calls:
        return {"role": "assistant", "content": message.text or None, "tool_calls": calls}
    return {"role": "assistant", "content": message.text}


def _thoughts(message: Message, request: ModelRequest, provider_id: str) -> str:
    if not is_of(message, provider_id, request.model):
        return ""
    return "".join(part.data.thinking for part in message.parts if isinstance(part, ReasoningPart))


def _tool_results(message: Message, images: ImageSupport) -> list[_Json]:
    """All results, and then their pictures in a message of the user: a result can hold only text here."""
    wire: list[_Json] = []
    shown: list[_Json] = []
    for result in message.tool_results:
        pieces = pieces_of_result(result, images)
        text = "\n".join(piece.text for piece in pieces if isinstance(piece, Words))
        wire.append({"role": "tool", "tool_call_id": result.tool_call_id, "content": text})
        for picture in pieces:
            if not isinstance(picture, Words):
                shown += [_text(f"The picture that {result.name} gave:"), _wire_piece(picture)]
    return [*wire, {"role": "user", "content": shown}] if shown else wire


def _content(message: Message, images: ImageSupport) -> list[_Json]:
    return [_wire_piece(piece, detail_of(part)) for part in message.parts for piece in pieces_of((part,), images)]


def _wire_piece(piece: Piece, detail: str = "") -> _Json:
    if isinstance(piece, Words):
        return _text(piece.text)
    return {"type": "image_url", "image_url": {"url": address_of(piece)} | ({"detail": detail} if detail else {})}


def address_of(picture: Picture | PictureAt) -> str:
    """OpenAI wants an address in any case; one can hold the picture itself."""
    if isinstance(picture, PictureAt):
        return picture.url
    return f"data:{picture.mime_type};base64,{picture.data}"


def detail_of(part: Part) -> str:
    """How closely the model shall look at a picture, if that was requested."""
    return (part.data.detail or "") if isinstance(part, ImageUrlPart) else ""


def _text(text: str) -> _Json:
    return {"type": "text", "text": text}


def _simplest(content: list[_Json]) -> str | list[_Json]:
    """One string where that is enough: not every server understands lists."""
    if all(piece["type"] == "text" for piece in content):
        return "\n\n".join(piece["text"] for piece in content)
    return content
