"""Our messages → the body of a Chat Completions request. Pure."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from covey.models.base import ModelRequest
from covey.protocol.messages import (
    Attachment,
    Binary,
    BinaryPart,
    ImageUrlPart,
    Message,
    Part,
    ShellCommandPart,
    TextPart,
)

_Json = dict[str, Any]


def encode_request(request: ModelRequest, max_tokens_field: str) -> bytes:
    """The whole body. Newer models of OpenAI want the limit under another name than everybody else."""
    body: _Json = {
        "model": request.model,
        "messages": _messages(request),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in request.tools
        ]
    if request.max_tokens:
        body[max_tokens_field] = request.max_tokens
    return msgspec.json.encode(body)


def _messages(request: ModelRequest) -> list[_Json]:
    wire: list[_Json] = [{"role": "system", "content": request.system}] if request.system else []
    for message in request.messages:
        if message.role == "tool":
            wire += _tool_results(message)
        elif message.role == "assistant":
            wire.append(_assistant(message))
        else:
            content = _content(message)
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


def _tool_results(message: Message) -> list[_Json]:
    return [
        {"role": "tool", "tool_call_id": result.tool_call_id, "content": result.content}
        for result in message.tool_results
    ]


def _content(message: Message) -> list[_Json]:
    return [piece for part in message.parts if (piece := _piece(part)) is not None]


def _piece(part: Part) -> _Json | None:
    match part:
        case TextPart(data=data):
            return _text(data.text)
        case BinaryPart(data=data):
            return _attachment(data)
        case ImageUrlPart(data=data):
            return {
                "type": "image_url",
                "image_url": {"url": data.url} | ({"detail": data.detail} if data.detail else {}),
            }
        case ShellCommandPart(data=data):
            return _text(f"$ {data.command}\n{data.output}\n(exit code {data.exit_code})")
        case _:
            return None


def _attachment(data: Binary) -> _Json:
    if data.MIMEType.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{data.MIMEType};base64,{data.Data}"}}
    attachment = Attachment(file_path=data.Path, file_name=data.Path, mime_type=data.MIMEType, content=b"")
    if not attachment.is_text:
        return _text(f"(The file {data.Path} of type {data.MIMEType} is attached, but you cannot see it.)")
    try:
        text = base64.b64decode(data.Data).decode("utf-8", "replace")
    except binascii.Error:
        return _text(f"(The file {data.Path} is attached, but it is damaged.)")
    return _text(f'<file path="{data.Path}">\n{text}\n</file>')


def _text(text: str) -> _Json:
    return {"type": "text", "text": text}


def _simplest(content: list[_Json]) -> str | list[_Json]:
    """One string where that is enough: not every server understands lists."""
    if all(piece["type"] == "text" for piece in content):
        return "\n\n".join(piece["text"] for piece in content)
    return content
