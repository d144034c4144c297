"""What a rename would change, checked against the texts before anything is written. Pure.

Servers count columns wrongly now and then, and a wrong column would corrupt a file in silence. So a rename is carried
out only if every range that it names holds the old name, and nothing but it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from covey.tools.lsp.positions import BadRange, Encoding, LineIndex, Range, read_range

FILES_LIMIT = 200
"""Files of one rename. More is a refactoring that somebody should look at piece by piece."""
EDITS_LIMIT = 10_000


class BadEdit(Exception):
    """The server's edit cannot be made; the text says why, for the model."""


class TextEdit(NamedTuple):
    place: Range
    new_text: str


def read_workspace_edit(given: Any) -> dict[str, list[TextEdit]]:
    """The edits of an answer to `rename`, by URI. Raises BadEdit for what is not only a change of texts."""
    if not isinstance(given, dict):
        raise BadEdit("the language server knows no name there that could be changed")
    edits: dict[str, list[TextEdit]] = {}
    for change in given.get("documentChanges") or ():
        match change:
            case {"textDocument": {"uri": str(uri)}, "edits": list(listed)}:
                edits.setdefault(uri, []).extend(map(_read_edit, listed))
            case _:
                raise BadEdit("the language server wants to create, move or delete files, which a rename does not do")
    if not edits and isinstance(changes := given.get("changes"), dict):
        edits = {str(uri): [_read_edit(each) for each in listed] for uri, listed in changes.items()}
    edits = {uri: listed for uri, listed in edits.items() if listed}
    if not edits:
        raise BadEdit("the language server found nothing to change")
    if len(edits) > FILES_LIMIT or sum(map(len, edits.values())) > EDITS_LIMIT:
        raise BadEdit(f"it would change more than {FILES_LIMIT} files or {EDITS_LIMIT} places: too much for one step")
    return edits


def _read_edit(given: Any) -> TextEdit:
    match given:
        case {"range": place, "newText": str(new_text)}:
            try:
                return TextEdit(read_range(place), new_text)
            except BadRange:
                pass
    raise BadEdit("the language server sent an edit that cannot be read")


def renamed(
    edits: Mapping[str, list[TextEdit]], read: Callable[[str], str], old: str, new: str, encoding: Encoding = "utf-16"
) -> dict[str, str]:
    """The new text of each file. Raises BadEdit, and then nothing may be changed at all."""
    return {uri: _apply(LineIndex(read(uri), encoding), listed, old, new, uri) for uri, listed in edits.items()}


def _apply(index: LineIndex, edits: list[TextEdit], old: str, new: str, uri: str) -> str:
    pieces, at = [], 0
    for edit in sorted(edits):
        try:
            start, end = index.offset(edit.place.start), index.offset(edit.place.end)
        except BadRange as error:
            raise BadEdit(f"{uri}: {error}") from None
        if start < at:
            raise BadEdit(f"{uri}: two edits overlap")
        if not _renames(index.text[start:end], edit.new_text, old, new):
            line = edit.place.start.line + 1
            raise BadEdit(f"{uri}: at line {line} there is {index.text[start:end]!r}, and not {old!r}")
        pieces += [index.text[at:start], edit.new_text]
        at = end
    return "".join([*pieces, index.text[at:]])


def _renames(found: str, new_text: str, old: str, new: str) -> bool:
    """Whether replacing `found` by `new_text` is this rename: as a whole, or within a longer piece (`old: old`)."""
    if found == old:
        return new in new_text
    return old in found and found.replace(old, new) == new_text
