"""The view tool: a page of a text file with line numbers, or a picture. What was viewed may be changed afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec

from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools.base import Image, Tool, ToolContext, ToolFailed, ToolOutput, built_in, parameters, resolve
from covey.tools.files import FileParams, FileReads, may_look, name_for, open_regular, printable
from covey.tools.seen_files import seen_fact
from covey.tools.threads import in_thread

LINES_LIMIT = 2_000
PAGE_BYTES = 200 * 1024
"""A page is for a model with a bounded memory: this is some 50,000 tokens."""
LINE_CHARACTERS = 2_000
"""Longer lines are generated or data; nobody needs their end to understand a file."""
IMAGE_BYTES = 5 * 1024 * 1024
"""What providers take as one picture."""
SKIP_BYTES = 64 * 1024 * 1024
"""How far to look for the first line wanted: some tenths of a second, in a thread that cannot be cancelled."""

_PIECE = 8 * 1024
"""More bytes than `LINE_CHARACTERS` can take, so that a line that is shown in full comes in one piece."""


class ViewParams(FileParams, frozen=True, forbid_unknown_fields=True):
    offset: Annotated[int, msgspec.Meta(ge=1, description="First line to read, counting from 1.")] = 1
    limit: Annotated[int, msgspec.Meta(ge=1, description="Number of lines to read; at most 2000.")] = LINES_LIMIT


def view_tool(reads: FileReads) -> Tool[ViewParams]:
    return built_in(
        "view",
        Effect.LOOKS,
        ViewParams,
        intent=_intent,
        describe=_described,
        preview=_preview,
        run=lambda params, context: in_thread(lambda: _view(params, context, reads)),
        result_limit=2 * PAGE_BYTES,  # a page is bounded already, and says how to go on: it is never cut again
    )


def _intent(params: ViewParams, context: ToolContext) -> Intent:
    path = resolve(context, params.file_path)
    return Intent("view", "read", str(path), harmless=may_look(context, path))


def _described(params: ViewParams, context: ToolContext) -> str:
    return f"Read {name_for(context, resolve(context, params.file_path))}"


def _preview(params: ViewParams, context: ToolContext) -> dict[str, Any]:
    # The file itself, not the link by which the model may have named it.
    return {**parameters(params, context), "file_path": printable(str(resolve(context, params.file_path)))}


def _view(params: ViewParams, context: ToolContext, reads: FileReads) -> ToolOutput:
    path = resolve(context, params.file_path)
    name = name_for(context, path)
    with open_regular(path, name) as (file, version):
        beginning = file.read(_PIECE)
        file.seek(0)
        mime_type = _picture(beginning)
        if mime_type is not None:
            output = _shown(file, path, mime_type, version.size, context)
        elif b"\0" in beginning:
            raise ToolFailed(f"{name} is binary ({version.size} bytes): view shows only text and images.")
        else:
            content, lines = _page(file, name, params.offset, min(params.limit, LINES_LIMIT))
            output = ToolOutput(content, metadata={"file_path": printable(str(path)), "lines": lines})
    reads.record(context.session_id, path, version)
    return replace(output, metadata={**output.metadata, **seen_fact((path, version))})


def _picture(beginning: bytes) -> str | None:
    """The type of a picture, by its content: names lie."""
    if beginning.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if beginning.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if beginning.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if beginning.startswith(b"RIFF") and beginning[8:12] == b"WEBP":
        return "image/webp"
    return None


def _shown(file: BinaryIO, path: Path, mime_type: str, size: int, context: ToolContext) -> ToolOutput:
    name = name_for(context, path)
    if not context.sees_images:
        raise ToolFailed(f"{name} is an image ({mime_type}, {size} bytes), and this model cannot see images.")
    data = file.read(IMAGE_BYTES + 1)
    if len(data) > IMAGE_BYTES:
        raise ToolFailed(f"{name} is an image of more than 5 MB. Make a smaller copy with bash and view that.")
    metadata = {"file_path": printable(str(path)), "mime_type": mime_type, "bytes": len(data)}
    return ToolOutput(f"{name}: {mime_type}, {len(data)} bytes.", metadata=metadata, image=Image(mime_type, data))


def _page(file: BinaryIO, name: str, offset: int, limit: int) -> tuple[str, int]:
    """The page as text, and how many lines are on it."""
    skipped = _skip(file, name, offset - 1)
    lines: list[str] = []
    size = 0
    while len(lines) < limit and size < PAGE_BYTES and (line := _line(file)) is not None:
        numbered = f"{offset + len(lines):6}\t{line}"
        lines.append(numbered)
        size += len(numbered.encode())
    if not lines:
        if offset == 1:
            return f"{name} is empty.", 0
        raise ToolFailed(f"{name} has only {skipped} lines, so there is no line {offset}.")
    if file.read(1):
        following = offset + len(lines)
        lines.append(f"\n[The file goes on. To see more, view it with offset={following}.]")
        return "\n".join(lines), len(lines) - 1
    return "\n".join(lines), len(lines)


def _skip(file: BinaryIO, name: str, lines: int) -> int:
    """Go on to the line after so many, or to the end; gives how many there were."""
    skipped = size = 0
    piece = b"\n"
    while skipped < lines:
        last, piece = piece, file.readline(_PIECE)
        if not piece:
            return skipped + (not last.endswith(b"\n"))  # the last line may have no end, but counts
        skipped += piece.endswith(b"\n")
        size += len(piece)
        if size > SKIP_BYTES:
            raise ToolFailed(f"{name} is too large to look for line {lines + 1}. Use bash with sed, tail or grep.")
    return skipped


def _line(file: BinaryIO) -> str | None:
    """The next line without its end, cut if it is long; None at the end of the file."""
    piece = file.readline(_PIECE)
    if not piece:
        return None
    text = piece.decode("utf-8", "replace").rstrip("\r\n")
    whole = len(piece) < _PIECE or piece.endswith(b"\n")
    while not whole and (rest := file.readline(_PIECE)):
        whole = rest.endswith(b"\n")
    return text if len(text) <= LINE_CHARACTERS else f"{text[:LINE_CHARACTERS]} [... the line goes on]"
