"""Our messages → the body of a Responses request. Pure.

Nothing is stored at the provider, so every request carries the whole conversation. What the model thought goes back to
it encrypted, as it came: only to the same model of the same provider, which alone can read it.
"""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from covey.models.base import ModelRequest
from covey.models.chat_request import address_of, detail_of, images_for
from covey.models.pieces import ImageSupport, Piece, Words, is_of, pieces_of, pieces_of_result
from covey.protocol.messages import (
    BinaryPart,
    FinishPart,
    ImageUrlPart,
    Message,
    Reasoning,
    ReasoningPart,
    ShellCommandPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)

_Json = dict[str, Any]


class Thought(msgspec.Struct, omit_defaults=True, gc=False):
    """What is kept of a reasoning item, as the signature of a thought: a line of JSON, as one part can hold several."""

    id: str
    encrypted_content: str

    def signature(self) -> str:
        return msgspec.json.encode(self).decode() + "\n"


_decode_thoughts = msgspec.json.Decoder(Thought).decode_lines


def encode_request(request: ModelRequest, provider_id: str) -> bytes:
    """The whole body."""
    body: _Json = {
        "model": request.model,
        "input": [item for message in request.messages for item in _items(message, request, provider_id)],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        # Strict schemas would forbid arguments that may be left out, which most of our tools have.
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in request.tools
        ]
        if not request.may_call:
            body["tool_choice"] = "none"
    if (schema := request.output_schema) and schema.get("type") == "object":  # it takes no other
        body["text"] = {"format": {"type": "json_schema", "name": "output", "schema": schema, "strict": False}}
    if request.max_tokens:
        body["max_output_tokens"] = request.max_tokens
    body["reasoning"] = {"summary": "auto"} | ({"effort": request.effort} if request.effort else {})
    return msgspec.json.encode(body)


def _items(message: Message, request: ModelRequest, provider_id: str) -> list[_Json]:
    match message.role:
        case "tool":
            return [_output(result, images_for(request)) for result in message.tool_results]
        case "assistant":
            return _assistant(message, is_of(message, provider_id, request.model))
        case "user" | "system":
            images = images_for(request)
            content = [_wire_piece(p, detail_of(part)) for part in message.parts for p in pieces_of((part,), images)]
            return [{"role": message.role, "content": content}] if content else []
        case _:
            assert_never(message.role)


def _assistant(message: Message, own: bool) -> list[_Json]:
    """Its items in their order. Thoughts after the last word or call led to nothing: they would be refused."""
    items: list[_Json] = []
    thoughts: list[_Json] = []
    for part in message.parts:
        match part:
            case ReasoningPart(data=data):
                thoughts += _thoughts(data) if own and data.signature else []
            case TextPart(data=data):
                if data.text:
                    items += [*thoughts, {"role": "assistant", "content": data.text}]
                    thoughts = []
            case ToolCallPart(data=data):
                call = {"call_id": data.id, "name": data.name, "arguments": data.input or "{}"}
                items += [*thoughts, {"type": "function_call", **call}]
                thoughts = []
            case ToolResultPart() | ImageUrlPart() | BinaryPart() | ShellCommandPart() | FinishPart():
                pass
            case _:
                assert_never(part)
    return items


def _thoughts(data: Reasoning) -> list[_Json]:
    """A signature that is none of ours is left out: another wire format of the same provider may have made it."""
    try:
        thoughts = _decode_thoughts(data.signature)
    except msgspec.DecodeError:
        return []
    summary = [{"type": "summary_text", "text": data.thinking}] if data.thinking else []
    return [
        {
            "type": "reasoning",
            "id": thought.id,
            "summary": [] if number else summary,
            "encrypted_content": thought.encrypted_content,
        }
        for number, thought in enumerate(thoughts)
    ]


def _output(result: ToolResult, images: ImageSupport) -> _Json:
    pieces = pieces_of_result(result, images)
    output: str | list[_Json] = [_wire_piece(piece) for piece in pieces]
    if all(isinstance(piece, Words) for piece in pieces):
        output = "\n".join(piece.text for piece in pieces if isinstance(piece, Words))
    return {"type": "function_call_output", "call_id": result.tool_call_id, "output": output}


def _wire_piece(piece: Piece, detail: str = "") -> _Json:
    if isinstance(piece, Words):
        return {"type": "input_text", "text": piece.text}
    return {"type": "input_image", "image_url": address_of(piece), "detail": detail or "auto"}
