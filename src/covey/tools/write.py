"""The write tool: a whole file, new or in the place of one that was seen."""

from __future__ import annotations

from typing import Annotated

import msgspec

from covey.tools.base import Tool
from covey.tools.file_change import changing_tool
from covey.tools.files import FileParams, FileReads


class WriteParams(FileParams, frozen=True, forbid_unknown_fields=True):
    content: Annotated[str, msgspec.Meta(description="The full content of the file.")]


def write_tool(reads: FileReads) -> Tool[WriteParams]:
    return changing_tool("write", WriteParams, reads, verb="Write", changed=_changed, shows=False)


def _changed(params: WriteParams, before: str | None, name: str) -> tuple[str, str]:
    what = "Created" if before is None else "Replaced"
    count = len(params.content.splitlines())
    return params.content, f"{what} {name} ({count} {'line' if count == 1 else 'lines'})."
