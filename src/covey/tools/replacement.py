"""One piece of text in the place of another: exactly, or else with the indentation of the file."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, NamedTuple

import msgspec

from covey.tools.base import ToolFailed
from covey.tools.files import printable

_SEARCHED_LINES = 20_000
_SEARCHED_CHARACTERS = 120
"""How much is compared to find a line that is near to one that was not found: some tenths of a second."""
_SIMILAR = 0.5
_SHOWN_LINES = 12
_SHOWN_CHARACTERS = 500
_SHOWN_PLACES = 10
"""What an error message may hold of the file: enough to correct the call, not a second way to read the file."""
_BLANKS = " \t\r"
_NUMBERED = re.compile(r" *\d+\t")
"""How view begins a line."""

OldString = Annotated[str, msgspec.Meta(description="The text to replace, exactly as it is in the file.")]
NewString = Annotated[str, msgspec.Meta(description="The text to replace it with.")]
ReplaceAll = Annotated[bool, msgspec.Meta(description="Replace all occurrences.")]


class Replaced(NamedTuple):
    text: str
    places: str
    """How many, and where, as words."""
    note: str = ""
    """What was done otherwise than asked."""


def replace_text(text: str, old: str, new: str, *, everywhere: bool, name: str) -> Replaced:
    """Raises ToolFailed, with what helps to correct the call."""
    if not old:
        raise ToolFailed("old_string is empty. Give the text to replace, or use write for the whole file.")
    if old == new:
        raise ToolFailed("old_string and new_string are the same: there is nothing to change.")
    exact, replacement = _with_line_ends_of(text, old, new)
    count = text.count(exact)
    if count == 0:
        return _but_for_blanks(text, old, new, name)
    if count > 1 and not everywhere:
        raise ToolFailed(
            f"old_string occurs {count} times in {name}, on lines {_places(text, exact)}. Add lines around it "
            "until it is unique, or set replace_all."
        )
    times = "1 place" if count == 1 else f"{count} places"
    return Replaced(text.replace(exact, replacement), f"{times} (line {_places(text, exact)})")


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


# ── whole lines that differ in blanks at their ends ──


def _but_for_blanks(text: str, old: str, new: str, name: str) -> Replaced:
    lines = text.split("\n")
    wanted = _split(old)
    starts = _similar_places(lines, wanted)
    if len(starts) > 1:
        numbers = ", ".join(str(start + 1) for start in starts[:_SHOWN_PLACES])
        numbers += " and more" if len(starts) > _SHOWN_PLACES else ""
        raise ToolFailed(
            f"old_string is not exactly in {name}. Ignoring leading and trailing whitespace, it occurs more than once, "
            f"on lines {numbers}. Give it exactly as it is in the file, and unique."
        )
    if not starts:
        raise ToolFailed(f"old_string is not in {name}. {nearest(lines, old)}")
    start, end = starts[0], starts[0] + len(wanted)
    there = lines[start:end]
    put = _reindented(wanted, [] if new == "" else _split(new), [line.rstrip("\r") for line in there])
    if put is None:
        where = _numbered(lines, start, len(wanted))
        raise ToolFailed(f"old_string is not in {name}. Ignoring leading and trailing whitespace, it is here:\n{where}")
    if any(line.endswith("\r") for line in there):
        put = [f"{line}\r" for line in put]
    if new and old.endswith("\n") and not new.endswith("\n") and end < len(lines):
        put[-1] = put[-1].rstrip("\r") + lines[end]  # as asked: the next line goes on where the new text ends
        end += 1
    if not old.endswith("\n") and (not new or new.endswith("\n")):
        put.append("")  # as asked: the end of the line stays
    after = "\n".join([*lines[:start], *put, *lines[end:]])
    if after == text:
        raise ToolFailed("old_string and new_string differ only in whitespace that the file does not have.")
    note = "Whitespace at line ends or starts did not match old_string; the indentation of the file was used."
    return Replaced(after, f"1 place (line {start + 1})", note)


def _split(text: str) -> list[str]:
    """Its lines; a line break at its end ends the last one."""
    return text.removesuffix("\n").split("\n")


def _similar_places(lines: list[str], wanted: list[str]) -> list[int]:
    """The indices of the lines where the wanted ones begin, but for blanks; at most one more than is shown."""
    if not any(line.strip(_BLANKS) for line in wanted):
        return []
    # Joined and searched as one text: that takes linear time, whatever a model asks for.
    whole = "\n".join(["", *(line.strip(_BLANKS) for line in lines), ""])
    piece = "\n".join(["", *(line.strip(_BLANKS) for line in wanted), ""])
    starts: list[int] = []
    position = counted = line = 0
    while len(starts) <= _SHOWN_PLACES and (position := whole.find(piece, position)) >= 0:
        line += whole.count("\n", counted, position)
        counted = position
        starts.append(line)
        position += 1
    return starts


def _reindented(old: list[str], new: list[str], there: list[str]) -> list[str] | None:
    """The new lines as they belong in the file; None if that cannot be known.

    Lines that old and new have in common at their beginnings and ends stay as they are in the file.
    """
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    rest = shorter - head
    tail = next((index for index in range(rest) if old[-1 - index] != new[-1 - index]), rest)
    middle = new[head : len(new) - tail]
    indents = _indents(old, there)
    if indents is not None:
        changed = [_moved(line, indents) for line in middle]
    elif len(new) == len(old):  # the old lines had no indentation to go by: line for line, then
        changed = [_indent(there[head + index]) + line.lstrip(_BLANKS) for index, line in enumerate(middle)]
    elif middle:
        return None
    else:
        changed = []
    return [*there[:head], *changed, *there[len(there) - tail :]]


def _indents(old: list[str], there: list[str]) -> dict[str, str] | None:
    """Which indentation of the old lines is which one in the file; None if one of them is several."""
    indents: dict[str, str] = {}
    for line, real in zip(old, there, strict=True):
        if line.strip(_BLANKS) and indents.setdefault(_indent(line), _indent(real)) != _indent(real):
            return None
    return indents


def _moved(line: str, indents: dict[str, str]) -> str:
    """A new line with the indentation that it has in the file's way of indenting."""
    indent, text = _indent(line), line.lstrip(_BLANKS)
    if not text:
        return ""
    if indent in indents:
        return indents[indent] + text
    nearest = max((known for known in indents if indent.startswith(known)), key=len, default=None)
    if nearest is not None:
        return indents[nearest] + _in_units(indent[len(nearest) :], indents) + text
    least = min(indents, key=len)
    if not least.startswith(indent):
        return line  # other blanks than the old lines have: those of the file, it seems
    # Less than any old line had: what those have too much or too little in the file, this one has too.
    missing = _in_units(least.removeprefix(indent), indents)
    real = indents[least]
    return (real.removesuffix(missing) if real.endswith(missing) else "") + text


def _in_units(blanks: str, indents: dict[str, str]) -> str:
    """Further indentation, in the steps of the file where the old lines show what those are."""
    known = sorted(indents, key=len)
    steps = [(more[len(less) :], indents[more][len(indents[less]) :]) for less, more in pairwise(known)]
    if set(known[0]) != set(indents[known[0]]):  # tabs for blanks, or blanks for tabs
        steps.append((known[0], indents[known[0]]))
    for step, real in steps:
        if step and real and set(step) == set(blanks) and len(blanks) % len(step) == 0:
            return real * (len(blanks) // len(step))
    if set(blanks) == {" "} and set("".join(indents.values())) == {"\t"}:
        return "\t" * max(1, len(blanks) // 4)
    return blanks


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


# ── what is there instead ──


def nearest(lines: list[str], piece: str) -> str:
    """What helps: the place with the line that is most like the first one wanted."""
    wanted = [line.strip() for line in piece.strip("\n").split("\n")]
    if all(_NUMBERED.match(line) for line in piece.strip("\n").split("\n")):
        return "Leave out the line numbers and tabs that view puts before each line."
    first = _triples(next((line for line in wanted if line), ""))
    scores = [_similarity(first, line.strip()) for line in lines[:_SEARCHED_LINES]]
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
