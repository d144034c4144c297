"""What a message holds, as a model can be given it: words and pictures, whatever the wire format. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from covey.protocol.messages import (
    Attachment,
    Binary,
    BinaryPart,
    FinishPart,
    ImageUrlPart,
    Message,
    Part,
    ReasoningPart,
    ShellCommandPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from covey.protocol.printed import as_printed


@dataclass(frozen=True, slots=True)
class Words:
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    mime_type: str
    data: str
    """Base64."""


@dataclass(frozen=True, slots=True)
class PictureAt:
    """A picture that the provider fetches itself."""

    url: str


Piece = Words | Picture | PictureAt


@dataclass(frozen=True, slots=True)
class ImageSupport:
    """Which pictures a model can be shown. In the place of others stands a sentence."""

    mime_types: frozenset[str] = frozenset()
    fetches: bool = False
    """Addresses of pictures will do."""


def pieces_of(parts: Iterable[Part], images: ImageSupport) -> Iterator[Piece]:
    """What the parts say, without what is blank: providers refuse empty text. Calls and results are not among it."""
    for part in parts:
        piece = _piece(part, images)
        if piece is not None and not (isinstance(piece, Words) and not piece.text.strip()):
            yield piece


def pieces_of_result(result: ToolResult, images: ImageSupport) -> list[Piece]:
    pieces: list[Piece] = [Words(result.content)] if result.content.strip() else []
    if result.data and (result.mime_type or "").startswith("image/"):
        pieces.append(_picture(result.mime_type or "", result.data, images))
    return pieces


def is_of(message: Message, provider_id: str, model: str) -> bool:
    """Whether this very model said it: only then do its signatures mean anything."""
    return message.provider == provider_id and message.model == model


def _piece(part: Part, images: ImageSupport) -> Piece | None:
    match part:
        case TextPart(data=data):
            return Words(data.text)
        case BinaryPart(data=data):
            return _attachment(data, images)
        case ImageUrlPart(data=data):
            if images.fetches:
                return PictureAt(data.url)
            where = "" if data.url.startswith("data:") else f" at {data.url}"
            return Words(f"(There is a picture{where}, but you cannot see it.)")
        case ShellCommandPart(data=data):
            printed = as_printed(data.output)  # it is kept as it was, for people
            return Words(f"(I ran this command myself.)\n$ {data.command}\n{printed}\n(exit code {data.exit_code})")
        case ReasoningPart() | ToolCallPart() | ToolResultPart() | FinishPart():
            return None
        case _:
            assert_never(part)


def _attachment(data: Binary, images: ImageSupport) -> Piece:
    if data.MIMEType.startswith("image/"):
        return _picture(data.MIMEType, data.Data, images, data.Path)
    attachment = Attachment(file_path=data.Path, file_name=data.Path, mime_type=data.MIMEType, content=b"")
    if not attachment.is_text:
        return Words(f"(The file {data.Path} of type {data.MIMEType} is attached, but you cannot see it.)")
    try:
        text = base64.b64decode(data.Data).decode("utf-8", "replace")
    except binascii.Error:
        return Words(f"(The file {data.Path} is attached, but it is damaged.)")
    return Words(f'<file path="{data.Path}">\n{text}\n</file>')


def _picture(mime_type: str, data: str, images: ImageSupport, name: str = "") -> Piece:
    if mime_type in images.mime_types:
        return Picture(mime_type, data)
    return Words(f"(Here is a picture{f', {name},' if name else ''} of type {mime_type}, but you cannot see it.)")
