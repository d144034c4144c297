"""What a server answers to a call, as a model reads it: marked as the words of the server, in text and pictures."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import msgspec

from covey.tools.base import Image, ToolOutput

IMAGE_LIMIT = 5 * 1024 * 1024
"""Bytes of a picture: what providers take."""
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MARK = "from-mcp"


def output_of(server: str, result: Mapping[str, Any], *, sees: bool) -> ToolOutput:
    """`sees`: the model can be shown pictures. Of several, the first one is."""
    parts: list[str] = []
    image: Image | None = None
    content = result.get("content")
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        if block.get("type") == "image":
            found, words = _image(block, sees=sees, is_first=image is None)
            image = image or found
            parts.append(words)
        else:
            parts.append(_words(block))
    has_text = any(isinstance(block, dict) and block.get("type") == "text" for block in content or ())
    structured = result.get("structuredContent")
    if structured is not None and not has_text:
        parts.append(msgspec.json.format(msgspec.json.encode(structured), indent=1).decode())
    text = "\n".join(part for part in parts if part) or "(nothing)"
    return ToolOutput(marked(server, text), is_error=result.get("isError") is True, image=image)


def marked(server: str, text: str) -> str:
    """The words of a server, in marks that they cannot close."""
    inside = text.replace(f"</{_MARK}", f"< /{_MARK}").replace(f"<{_MARK}", f"< {_MARK}")
    return f'<{_MARK} server="{server}">\n{inside}\n</{_MARK}>'


def _words(block: Mapping[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "resource_link":
            return f"[a link to the resource {block.get('uri')}: {block.get('description') or block.get('name') or ''}]"
        case "resource":
            resource = block.get("resource")
            return resource_words(resource) if isinstance(resource, dict) else ""
        case "audio":
            return f"[a sound ({block.get('mimeType')}), which cannot be played here]"
        case other:
            return f"[something of the type {str(other)[:40]}, which is not known here]"


def resource_words(resource: Mapping[str, Any]) -> str:
    """A resource that came along, or was read."""
    if isinstance(text := resource.get("text"), str):
        return f"[{resource.get('uri')}]\n{text}"
    size = len(str(resource.get("blob", ""))) * 3 // 4
    return f"[{resource.get('uri')}: {size} bytes of {resource.get('mimeType') or 'no known type'}, not shown]"


def _image(block: Mapping[str, Any], *, sees: bool, is_first: bool) -> tuple[Image | None, str]:
    mime_type = str(block.get("mimeType"))
    try:
        data = base64.b64decode(str(block.get("data", "")), validate=True)
    except (binascii.Error, ValueError):
        return None, "[a picture that cannot be read]"
    what = f"a picture ({mime_type[:40]}, {len(data)} bytes)"
    if len(data) > IMAGE_LIMIT:
        return None, f"[{what}, which is too large to be shown]"
    if mime_type not in IMAGES or not sees or not is_first:
        return None, f"[{what}, which is not shown]"
    return Image(mime_type, data), f"[{what}]"
