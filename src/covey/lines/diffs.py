"""A unified diff → lines with numbers and colours: all of it, or as much as says what happened; side by side or not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from covey.lines.line import EMPTY, Span, Style, StyledLine
from covey.lines.plain_text import plain
from covey.lines.widths import cut, cut_line, expanded, width
from covey.lines.words import counted
from covey.lines.wrap import broken

SHORT = 8
"""Lines of a change that are shown without being asked for."""
LOOKED_AT = 65_536
"""Characters of a diff, where only its first lines are shown."""
GUTTER = 8
"""Columns before the text of a line: its number, its sign, and blanks."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_FILE = re.compile(r"^--- .*\n\+\+\+ .*\n@@ ", re.MULTILINE)
_STYLES: dict[str, Style] = {"+": "added", "-": "removed"}


@dataclass(frozen=True, slots=True)
class DiffPlace:
    """Where one is in a diff: what the next line is numbered, in the file before and after.

    A hunk says how many lines it has. Only by that it is known where it ends: the header of the next file looks like
    a line that goes and one that comes.
    """

    before: int = 0
    after: int = 0
    before_left: int = 0
    after_left: int = 0
    """Lines that the hunk still has; both 0: in no hunk."""
    has_begun: bool = False
    """There was a hunk in this file."""
    names_files: bool = False
    """Each file has a line with its name, since there are several."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    sign: str
    """`+`, `-`, a blank; `@` begins a hunk, `+++` a file, whose name is the text; `\\` is a remark."""
    text: str
    """Without the sign."""
    before: int
    after: int
    source: int
    """Where it begins in the diff."""


def beginning(diff: str) -> DiffPlace:
    """Before the first line of a diff."""
    return DiffPlace(names_files=len(list(islice(_FILE.finditer(diff), 2))) > 1)


def read_diff(diff: str, start: int, end: int, place: DiffPlace) -> tuple[list[DiffLine], DiffPlace]:
    """The lines of a piece of a diff, and the place after it. Headers are left out, but for the names of files."""
    at = start
    lines: list[DiffLine] = []
    for text in diff[start:end].split("\n"):
        shown, after = _read_line(text, at, place)
        lines += [shown] if shown else []
        place, at = after, at + len(text) + 1
    return lines, place


def _read_line(text: str, source: int, place: DiffPlace) -> tuple[DiffLine | None, DiffPlace]:
    """What a line is, if it is shown, and the place after it."""
    before, after, sign = place.before, place.after, text[:1]
    if place.before_left or place.after_left:
        if sign and sign in "+- ":
            going, coming = sign in "- ", sign in "+ "
            left = max(place.before_left - going, 0), max(place.after_left - coming, 0)
            further = replace(
                place, before=before + going, after=after + coming, before_left=left[0], after_left=left[1]
            )
            return DiffLine(sign, text[1:], before, after, source), further
        if sign and sign not in "\\@":  # that the rest was left out: nothing of the hunk follows
            return DiffLine(sign, text[1:], before, after, source), replace(place, before_left=0, after_left=0)
    if found := _HUNK.match(text):
        numbers = [int(number) if number is not None else 1 for number in found.groups()]
        begun = DiffPlace(numbers[0], numbers[2], numbers[1], numbers[3], True, place.names_files)
        # Before the first hunk there is nothing to part it from.
        return DiffLine("@", "", before, after, source) if place.has_begun else None, begun
    if sign == "\\" and place.has_begun:
        return DiffLine(sign, text[1:], before, after, source), place
    if text.startswith("+++ "):
        name = DiffLine("+++", text[4:], 0, 0, source) if place.names_files else None
        return name, replace(place, has_begun=False)
    return None, place


def diff_lines(diff: str, columns: int, *, limit: int | None = SHORT) -> list[StyledLine]:
    """The lines that change, with their numbers; with `limit` None also those around them, and each in full."""
    lines, _ = read_diff(diff, 0, len(diff) if limit is None else LOOKED_AT, beginning(diff))
    if limit is None:
        return numbered_rows(lines)
    shown: list[StyledLine] = []
    marks: list[StyledLine] = []  # where the next changed line is, said if that is shown
    left_out = 0
    for line in lines:
        if line.sign == "+++":
            marks = [_numbered(line, cut(_shown(line), max(columns - 2, 8)))]
        elif line.sign == "@":
            marks = marks or ([_numbered(line, "")] if shown else [])
        elif line.sign != " " and len(shown) >= limit:
            left_out += line.sign in "+-"
        elif line.sign != " ":
            shown += [*marks, _numbered(line, cut(_shown(line), max(columns - GUTTER, 8)))]
            marks = []
    if left_out:
        more = counted(left_out, "more line") if len(diff) <= LOOKED_AT else "many more lines"
        shown.append(StyledLine((Span(f"      … {more}", "dim"),)))
    return shown


def numbered_rows(lines: Iterable[DiffLine]) -> list[StyledLine]:
    """A row for each, however wide it gets."""
    return [_numbered(line, _shown(line)) for line in lines]


def near_changes(lines: Sequence[DiffLine], context: int) -> list[DiffLine]:
    """Without lines that stay as they are and are further than so many from one that changes; a mark parts the rest."""
    changed = [number for number, line in enumerate(lines) if line.sign in "+-"]
    near = {number for at in changed for number in range(at - context, at + context + 1)}
    found: list[DiffLine] = []
    for number, line in enumerate(lines):
        is_kept = line.sign not in " @" or number in near
        if is_kept:
            found.append(line)
        elif found and found[-1].sign != "@":
            found.append(replace(line, sign="@", text=""))
    return found[:-1] if found and found[-1].sign == "@" else found


def unified_rows(lines: Sequence[DiffLine], columns: int) -> list[StyledLine]:
    """One below the other; what is too wide is wrapped."""
    return [row for line in lines for row in _wrapped(line, columns)]


def split_rows(lines: Sequence[DiffLine], columns: int) -> list[StyledLine]:
    """Before on the left and after on the right."""
    half = (columns - 3) // 2
    rows: list[StyledLine] = []
    for left, right in _pairs(lines):
        befores = _wrapped(left, half, is_before=True) if left else []
        afters = _wrapped(right, half) if right else []
        source = (left or right or lines[0]).source
        for number in range(max(len(befores), len(afters))):
            one = befores[number] if number < len(befores) else EMPTY
            other = afters[number] if number < len(afters) else EMPTY
            filling = " " * (half - width(one.text))
            rows.append(
                StyledLine((*one.spans, Span(f"{filling} "), Span("│", "border"), Span(" "), *other.spans), source)
            )
    return rows


def _pairs(lines: Iterable[DiffLine]) -> Iterator[tuple[DiffLine | None, DiffLine | None]]:
    """What was, and what became of it: lines that go and come in one place stand beside each other."""
    gone: list[DiffLine] = []
    come: list[DiffLine] = []
    for line in (*lines, None):
        if line and line.sign == "-" and not come:
            gone.append(line)
        elif line and line.sign == "+":
            come.append(line)
        else:
            for number in range(max(len(gone), len(come))):
                yield gone[number] if number < len(gone) else None, come[number] if number < len(come) else None
            gone, come = [line] if line and line.sign == "-" else [], []
            if line and line.sign == " ":
                yield line, line
            elif line and line.sign != "-":
                yield line, line if line.sign == "@" else None


def _shown(line: DiffLine) -> str:
    return expanded(plain(line.text))


def _wrapped(line: DiffLine, columns: int, *, is_before: bool = False) -> list[StyledLine]:
    sign = line.sign
    if sign not in "+- ":
        return [cut_line(_numbered(line, _shown(line)), columns)]
    first, *rest = broken(_shown(line), max(columns - GUTTER, 8), _STYLES.get(sign, ""))
    number = line.before if sign == "-" or is_before else line.after
    style = _STYLES.get(sign, "")
    rows = [StyledLine((Span(f"{number:>5} ", "dim"), Span(f"{sign} ", style), *first.spans), line.source)]
    return [*rows, *(StyledLine((Span(" " * GUTTER), *row.spans), line.source) for row in rest)]


def _numbered(line: DiffLine, text: str) -> StyledLine:
    if line.sign == "@":
        return StyledLine((Span("      ⋮", "dim"),), line.source)
    if line.sign == "+++":
        return StyledLine((Span(f"  {text}", "strong"),), line.source)
    if line.sign not in "+- ":  # a remark, such as a missing line end
        return StyledLine((Span(f"      {line.sign}{text}", "dim"),), line.source)
    number = line.before if line.sign == "-" else line.after
    return StyledLine(
        (Span(f"{number:>5} ", "dim"), Span(f"{line.sign} {text}", _STYLES.get(line.sign, ""))), line.source
    )
