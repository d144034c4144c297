"""The multiedit tool: several replacements in one file, all of them or none."""

from __future__ import annotations

from typing import Annotated

import msgspec

from covey.tools.base import Tool, ToolFailed
from covey.tools.file_change import changing_tool
from covey.tools.files import FileParams, FileReads
from covey.tools.replacement import NewString, OldString, ReplaceAll, replace_text

EDITS_LIMIT = 100
"""Each may search the whole file, so this many take a few seconds at worst."""


class OneEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    old_string: OldString
    new_string: NewString
    replace_all: ReplaceAll = False


class MultieditParams(FileParams, frozen=True, forbid_unknown_fields=True):
    edits: Annotated[
        tuple[OneEdit, ...],
        msgspec.Meta(min_length=1, max_length=EDITS_LIMIT, description="The replacements, in order."),
    ]


def multiedit_tool(reads: FileReads) -> Tool[MultieditParams]:
    return changing_tool("multiedit", MultieditParams, reads, verb="Edit", changed=_changed)


def _changed(params: MultieditParams, before: str | None, name: str) -> tuple[str, str]:
    if before is None:
        raise ToolFailed(f"{name} does not exist. Use write to create it, or glob to find the right name.")
    text = before
    count = len(params.edits)
    notes = []
    for number, edit in enumerate(params.edits, 1):
        try:
            replaced = replace_text(
                text, edit.old_string, edit.new_string, everywhere=edit.replace_all, name=_name(name, number)
            )
        except ToolFailed as error:
            raise ToolFailed(f"Edit {number} of {count} cannot be made, so none was. {error}") from None
        text = replaced.text
        notes.append(f"\n{number}. {replaced.places} {replaced.note}".rstrip())
    if text == before:
        raise ToolFailed("The edits undo each other: there is nothing to change.")
    return text, f"Made {count} {'edit' if count == 1 else 'edits'} in {name}:{''.join(notes)}"


def _name(name: str, number: int) -> str:
    """Line numbers in what is said about a later edit are not those of the file on disk."""
    return name if number == 1 else f"{name} as the edits before it leave it"
