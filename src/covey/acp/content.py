"""Pieces that ACP is made of: text, pictures, diffs, in their JSON. Pure."""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]

TEXT_SHOWN = 32 * 1024
"""Characters of one result that an editor is sent: more is not read there, and the server has all of it."""
_FENCES = re.compile(r"`{3,}")


def text_block(text: str) -> Json:
    return {"type": "text", "text": text}


def image_block(data: str, mime_type: str) -> Json:
    """`data` is base64."""
    return {"type": "image", "data": data, "mimeType": mime_type}


def shown(block: Json) -> Json:
    """A block as content of a tool call."""
    return {"type": "content", "content": block}


def diff(path: str, old: str | None, new: str) -> Json:
    """`old` None: there was no such file."""
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def fenced(text: str, language: str = "") -> str:
    """As Markdown that shows exactly this: no text can end the fence that is around it."""
    longest = max((len(found) for found in _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def cut(text: str, limit: int = TEXT_SHOWN) -> str:
    """Both ends of a long text, and how much is missing between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters …\n{text[-half:]}"
