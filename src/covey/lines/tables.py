"""A table of Markdown → rows that fit: columns as wide as their cells or, where there is no room, cells that wrap."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from covey.lines.inline import styled
from covey.lines.line import Span, Style, StyledLine
from covey.lines.widths import head, width
from covey.lines.wrap import wrap

_CELL = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\s*:?-{1,}:?\s*")
GAP = "  "
SMALLEST = 3
"""Columns of a cell, where there is no room for all."""

Cell = list[Span]
Side = Literal["left", "right", "centre"]
"""Where the cells of a column stand in it."""


def table_lines(source: Sequence[str], columns: int) -> list[StyledLine]:
    """The lines of a table as they were written → rows. A row with other cells than the first is shown all the same.

    The source of a row is the number of its line.
    """
    rows = [_cells(text) for text in source]
    has_head = len(rows) > 1 and all(_RULE.fullmatch(cell) for cell in rows[1])
    cells = {
        number: [styled(cell.replace("\\|", "|"), "heading" if has_head and number == 0 else "") for cell in row]
        for number, row in enumerate(rows)
        if not (has_head and number == 1)
    }
    count = max(map(len, cells.values()))
    widths = _fitted(
        [max(_width(row[at]) if at < len(row) else 0 for row in cells.values()) for at in range(count)],
        columns - len(GAP) * (count - 1),
    )
    sides: list[Side] = [_side(cell) for cell in rows[1]] if has_head else []
    sides += ["left"] * (count - len(sides))
    drawn = {number: _row_lines(row, widths, sides) for number, row in cells.items()}
    lines = [StyledLine(row.spans, number) for number, rows_of_it in drawn.items() for row in rows_of_it]
    if has_head:
        first = len(drawn[0])
        lines.insert(first, StyledLine((Span(head(GAP.join("─" * each for each in widths), columns), "dim"),), 1))
    return lines


def _cells(text: str) -> list[str]:
    text = text.strip()
    text = text[1:] if text.startswith("|") else text
    text = text[:-1] if text.endswith("|") and not text.endswith("\\|") else text
    return [cell.strip() for cell in _CELL.split(text)]


def _side(rule: str) -> Side:
    """What `---:` and `:--:` below the head of a column say about it."""
    if not rule.endswith(":"):
        return "left"
    return "centre" if rule.startswith(":") else "right"


def _width(cell: Cell) -> int:
    return sum(width(span.text) for span in cell)


def _fitted(wanted: list[int], columns: int) -> list[int]:
    """Narrow columns keep what they need; the wide ones share the rest."""
    widths = [0] * len(wanted)
    left, room = list(range(len(wanted))), columns
    while left:
        share = max(room // len(left), SMALLEST)
        narrow = [at for at in left if wanted[at] <= share]
        for at in narrow or left:
            widths[at] = min(wanted[at], share)
            room -= widths[at]
        left = [at for at in left if at not in narrow] if narrow else []
    return widths


def _row_lines(row: Sequence[Cell], widths: Sequence[int], sides: Sequence[Side]) -> list[StyledLine]:
    wrapped = [_cell_lines(cell, columns) for cell, columns in zip(row, widths, strict=False)]
    lines: list[StyledLine] = []
    for number in range(max(map(len, wrapped), default=0)):
        spans: list[Span] = []
        for at, cell in enumerate(wrapped):
            shown = cell[number] if number < len(cell) else []
            room = max(widths[at] - _width(shown), 0)
            before = {"left": 0, "right": room, "centre": room // 2}[sides[at]]
            spans += [Span(" " * before)] * bool(before) + shown
            if at < len(wrapped) - 1:
                spans.append(Span(" " * (room - before) + GAP))
        lines.append(StyledLine(tuple(spans)))
    return lines


def _cell_lines(cell: Cell, columns: int) -> list[Cell]:
    """The cell in rows of exactly this width at most, also if it is narrower than text usually gets."""
    if _width(cell) <= columns:
        return [cell]
    if columns >= 8:
        return [list(row.spans) for row in wrap(cell, columns)]
    style: Style = cell[0].style if cell else ""
    text, rows = "".join(span.text for span in cell), []
    while text:
        part = head(text, columns) or text[0]
        rows.append([Span(part, style)])
        text = text[len(part) :]
    return rows
