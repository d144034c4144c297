"""The edit tool: replace one piece of text in a file by another."""

from __future__ import annotations

from covey.tools.base import Tool, ToolFailed
from covey.tools.file_change import changing_tool
from covey.tools.files import FileParams, FileReads
from covey.tools.replacement import NewString, OldString, ReplaceAll, replace_text


class EditParams(FileParams, frozen=True, forbid_unknown_fields=True):
    old_string: OldString
    new_string: NewString
    replace_all: ReplaceAll = False


def edit_tool(reads: FileReads) -> Tool[EditParams]:
    return changing_tool("edit", EditParams, reads, verb="Edit", changed=_changed)


def _changed(params: EditParams, before: str | None, name: str) -> tuple[str, str]:
    if before is None:
        raise ToolFailed(f"{name} does not exist. Use write to create it, or glob to find the right name.")
    old, new = params.old_string, params.new_string
    replaced = replace_text(before, old, new, everywhere=params.replace_all, name=name)
    return replaced.text, f"Edited {name} in {replaced.places}. {replaced.note}".rstrip()
