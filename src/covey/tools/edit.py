"""The edit tool: replace one piece of text in a file by another, exactly."""

from __future__ import annotations

from typing import Annotated

import msgspec

from covey.tools.base import ToolFailed
from covey.tools.file_change import ChangesFile
from covey.tools.files import FileParams, printable

_SEARCHED_LINES = 20_000
_SEARCHED_CHARACTERS = 120
"""How much is compared to find a line that is near to one that was not found: some tenths of a second."""
_SIMILAR = 0.5
_SHOWN_LINES = 12
_SHOWN_CHARACTERS = 500
_SHOWN_PLACES = 10
"""What an error message may hold of the file: enough to correct the call, not a second way to read the file."""


class EditParams(FileParams, frozen=True, forbid_unknown_fields=True):
    old_string: Annotated[str, msgspec.Meta(description="The text to replace, exactly as it is in the file.")]
    new_string: Annotated[str, msgspec.Meta(description="The text to put in its place.")]
    replace_all: Annotated[bool, msgspec.Meta(description="Replace it wherever it occurs.")] = False


class Edit(ChangesFile[EditParams]):
    name = "edit"
    params = EditParams
    verb = "Edit"

    def changed(self, params: EditParams, before: str | None, name: str) -> tuple[str, str]:
        if before is None:
            raise ToolFailed(f"{name} does not exist. Use write to create it, or bash (ls) to find the right name.")
        if not params.old_string:
            raise ToolFailed("old_string is empty. Give the text to replace, or use write for the whole file.")
        if params.old_string == params.new_string:
            raise ToolFailed("old_string and new_string are the same: there is nothing to change.")
        old, new = _with_line_ends_of(before, params.old_string, params.new_string)
        count = before.count(old)
        if count == 0:
            raise ToolFailed(f"old_string is not in {name}. {_nearest(before, params.old_string)}")
        if count > 1 and not params.replace_all:
            raise ToolFailed(
                f"old_string occurs {count} times in {name}, on lines {_places(before, old)}. Add lines around it "
                "until it is unique, or set replace_all."
            )
        times = "1 place" if count == 1 else f"{count} places"
        return before.replace(old, new), f"Edited {name} in {times} (line {_places(before, old)})."


def _with_line_ends_of(text: str, old: str, new: str) -> tuple[str, str]:
    """A model sees and writes lines that end in \\n; in a file with Windows line ends it means those."""
    if "\r\n" in text and "\r" not in old + new:
        windows = old.replace("\n", "\r\n")
        if windows in text:
            return windows, new.replace("\n", "\r\n")
    return old, new


def _places(text: str, piece: str) -> str:
    """The numbers of the lines where the piece begins, as words."""
    numbers: list[str] = []
    position, line = text.find(piece), 1
    counted = 0
    while position >= 0 and len(numbers) < _SHOWN_PLACES:
        line += text.count("\n", counted, position)
        counted = position
        numbers.append(str(line))
        position = text.find(piece, position + len(piece))
    return ", ".join(numbers) + (" and more" if position >= 0 else "")


def _nearest(text: str, piece: str) -> str:
    """What the file has instead: the same lines with other blanks, or the line that is most like the first wanted."""
    lines = text.split("\n")
    wanted = [line.strip() for line in piece.strip("\n").split("\n")]
    stripped = [line.strip() for line in lines]
    whole = "\n".join(["", *stripped, ""])
    # Joined and searched as one text: that takes linear time, whatever a model asks for.
    if (position := whole.find("\n".join(["", *wanted, ""]))) >= 0:
        start = whole.count("\n", 0, position)
        return f"But for blanks at the ends of lines, it is here:\n{_numbered(lines, start, len(wanted))}"
    first = _triples(next((line for line in wanted if line), ""))
    scores = [_similarity(first, line) for line in stripped[:_SEARCHED_LINES]]
    start = scores.index(max(scores))
    if scores[start] < _SIMILAR:
        return "Nothing in it is similar. View the file to see what it contains."
    return f"The most similar place is:\n{_numbered(lines, start, len(wanted))}"


def _similarity(wanted: set[str], line: str) -> float:
    """From 0 to 1: how many of the triples of characters are the same. Rough, but fast whatever the lines are like."""
    present = _triples(line)
    return 2 * len(wanted & present) / (len(wanted) + len(present) or 1)


def _triples(line: str) -> set[str]:
    return {line[start : start + 3] for start in range(min(len(line), _SEARCHED_CHARACTERS))}


def _numbered(lines: list[str], start: int, count: int) -> str:
    shown = lines[start : start + min(count, _SHOWN_LINES)]
    numbered = (f"{start + 1 + index:6}\t{line.rstrip()[:_SHOWN_CHARACTERS]}" for index, line in enumerate(shown))
    return printable("\n".join(numbered))
