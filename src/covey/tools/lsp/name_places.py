"""Where a model means a name: by a file, a line, and the name itself. Models count columns badly, and need not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import msgspec

from covey.tools.base import ToolContext, ToolFailed, is_inside, resolve
from covey.tools.files import FileParams, name_for, read_for_change
from covey.tools.lsp.positions import LineIndex, Position
from covey.tools.threads import in_thread


class NameParams(FileParams, frozen=True, forbid_unknown_fields=True):
    """A name somewhere in a file."""

    line: Annotated[int, msgspec.Meta(ge=1, description="The line that the name is on, counting from 1.")]
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200, description="The name, as it is written there.")]


def workspace_file(context: ToolContext, given: str) -> Path:
    """A file inside the workspace: language servers know no other. Raises ToolFailed."""
    path = resolve(context, given)
    if not is_inside(context, path):
        raise ToolFailed(f"{name_for(context, path)}: language servers only know the files of the workspace. Use grep.")
    return path


async def read_text(path: Path, name: str) -> str:
    """The text as it is on disk. Bytes that are no UTF-8 become what cannot be confused with a name."""
    content, _ = await in_thread(lambda: read_for_change(path, name))
    return content.decode("utf-8", "replace")


def position_of(index: LineIndex, params: NameParams) -> Position:
    """The first place of the name on its line. Raises ToolFailed, saying where it is instead."""
    row = index.line(params.line - 1)
    pattern = re.compile(rf"(?<!\w){re.escape(params.name)}(?!\w)")
    if found := pattern.search(row) or re.search(re.escape(params.name), row):
        return index.position(index.offset(Position(params.line - 1, 0)) + found.start())
    elsewhere = [number for number, text in enumerate(index.text.splitlines(), 1) if pattern.search(text)]
    if not elsewhere:
        raise ToolFailed(f"{params.name!r} does not occur in {params.file_path}.")
    listed = ", ".join(map(str, elsewhere[:10]))
    raise ToolFailed(f"{params.name!r} is not on line {params.line} of {params.file_path}; it is on {listed}.")
