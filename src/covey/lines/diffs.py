"""A unified diff → lines with numbers and colours: all of it, or as much as says what happened; side by side or not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_STYLES: dict[str, Style] = {"+": "added", "-": "removed"}


@dataclass(frozen=True, slots=True)
class DiffPlace:
    """Where one is in a diff: what the next line is numbered, in the file before and after. 0: in no hunk."""

    before: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True)
class DiffLine:
    sign: str
    """`+`, `-`, a blank; `@` begins a hunk, `\\` is a remark."""
    text: str
    """Without the sign."""
    before: int
    after: int
    source: int
    """Where it begins in the diff."""


def read_diff(diff: str, start: int, end: int, place: DiffPlace) -> tuple[list[DiffLine], DiffPlace]:
    """The lines of a piece of a diff, and the place after it. What stands before the first hunk is left out."""
    before, after, at = place.before, place.after, start
    lines: list[DiffLine] = []
    for text in diff[start:end].split("\n"):
        source, at = at, at + len(text) + 1
        if found := _HUNK.match(text):
            if before or after:  # before the first hunk there is nothing to part it from
                lines.append(DiffLine("@", "", before, after, source))
            before, after = int(found[1]), int(found[2])
        elif (before or after) and text:
            lines.append(DiffLine(text[0], text[1:], before, after, source))
            before, after = before + (text[0] in "- "), after + (text[0] in "+ ")
    return lines, DiffPlace(before, after)


def diff_lines(diff: str, columns: int, *, limit: int | None = SHORT) -> list[StyledLine]:
    """The lines that change, with their numbers; with `limit` None also those around them, and each in full."""
    lines, _ = read_diff(diff, 0, len(diff) if limit is None else LOOKED_AT, DiffPlace())
    if limit is None:
        return [_numbered(line, _shown(line)) for line in lines]
    shown: list[StyledLine] = []
    left_out = 0
    for line in lines:
        if line.sign == " " or (line.sign == "@" and (left_out or not shown)):
            continue
        if line.sign != "@" and len(shown) >= limit:
            left_out += line.sign in "+-"
            continue
        shown.append(_numbered(line, cut(_shown(line), max(columns - GUTTER, 8))))
    if left_out:
        more = counted(left_out, "more line") if len(diff) <= LOOKED_AT else "many more lines"
        shown.append(StyledLine((Span(f"      … {more}", "dim"),)))
    return shown


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
    if line.sign not in "+- ":  # a remark, such as a missing line end
        return StyledLine((Span(f"      {line.sign}{text}", "dim"),), line.source)
    number = line.before if line.sign == "-" else line.after
    return StyledLine(
        (Span(f"{number:>5} ", "dim"), Span(f"{line.sign} {text}", _STYLES.get(line.sign, ""))), line.source
    )
