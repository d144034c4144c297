"""What an editor sends as a prompt → the prompt of a run: text, mentions, attachments. Pure."""

from __future__ import annotations

import base64
import binascii
import posixpath
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from covey.acp.content import Json
from covey.protocol.messages import Attachment
from covey.protocol.requests import PostPrompt
from covey.rpc.messages import INVALID_PARAMS, RpcError


def prompt_of(blocks: Any, session_id: str, root: str) -> PostPrompt:
    """Raises RpcError for what cannot be taken."""
    if not isinstance(blocks, list):
        raise _wrong("prompt is a list of content blocks")
    texts: list[str] = []
    attachments: list[Attachment] = []
    for block in blocks:
        text, more = _block(block if isinstance(block, dict) else {}, root)
        texts += [text] if text else []
        attachments += more
    return PostPrompt(session_id=session_id, prompt=_joined(texts), attachments=tuple(attachments))


def _joined(texts: Sequence[str]) -> str:
    """Blocks stand side by side, as they were typed; where nothing separates two words, a blank does."""
    joined = ""
    for text in texts:
        needs_blank = joined and not joined[-1].isspace() and not text[0].isspace()
        joined += f" {text}" if needs_blank else text
    return joined


def _block(block: Json, root: str) -> tuple[str, list[Attachment]]:
    match block:
        case {"type": "text", "text": str(text)}:
            return text, []
        case {"type": "resource_link", "uri": str(uri)}:
            return _mention(uri, root), []
        case {"type": "image", "data": str(data), "mimeType": str(mime_type)}:
            return "", [_attachment(str(block.get("uri") or ""), mime_type, _bytes(data))]
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text), **more}}:
            mime_type = str(more.get("mimeType") or "")
            is_text = mime_type.startswith("text/") or mime_type == "application/json"
            return "", [_attachment(uri, mime_type if is_text else "text/plain", text.encode())]
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str(data), **more}}:
            return "", [_attachment(uri, str(more.get("mimeType") or "application/octet-stream"), _bytes(data))]
    raise _wrong(f"content of type {str(block.get('type'))[:40]!r} is not taken, or not whole")


def _mention(uri: str, root: str) -> str:
    """A file of the project is mentioned, so that it comes along; anything else is only named."""
    path = path_of(uri)
    if not path:
        return uri
    inside = posixpath.relpath(path, root) if path.startswith(root.rstrip("/") + "/") else path
    return f'@"{inside}"' if '"' not in inside and "\n" not in inside else inside


def path_of(uri: str) -> str:
    """The path of a `file:` URI; '' for any other."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    return posixpath.normpath(unquote(parts.path)) if parts.scheme == "file" and parts.path else ""


def _attachment(uri: str, mime_type: str, content: bytes) -> Attachment:
    path = path_of(uri) or uri[:1000]
    name = posixpath.basename(path) or mime_type.replace("/", ".")
    return Attachment(file_path=path or name, file_name=name, mime_type=mime_type, content=content)


def _bytes(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong("the data of a block is no base64") from None


def _wrong(why: str) -> RpcError:
    return RpcError(INVALID_PARAMS, why)
