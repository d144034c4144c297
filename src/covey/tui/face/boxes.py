"""Rows put together: filled up to a width, beside each other, with a rule or a box around them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from covey.lines.line import Span, Style, StyledLine
from covey.lines.widths import cut_line, width


def line_width(line: StyledLine) -> int:
    return sum(width(span.text) for span in line.spans)


def fit(line: StyledLine, columns: int) -> StyledLine:
    """Just so wide: cut, or filled with blanks."""
    missing = columns - line_width(line)
    if missing < 0:
        line = cut_line(line, columns)
        missing = columns - line_width(line)
    return StyledLine((*line.spans, Span(" " * missing))) if missing > 0 else line


def spread(left: StyledLine, right: StyledLine, columns: int) -> StyledLine:
    """One at each end. Where there is no room for both, the left one is cut."""
    room = columns - line_width(right)
    if room < 4:
        return fit(left, columns)
    return StyledLine((*fit(left, room).spans, *right.spans))


def beside(parts: Sequence[tuple[Sequence[StyledLine], int]], height: int) -> list[StyledLine]:
    """Columns of rows, each with its width, beside each other."""
    rows: list[StyledLine] = []
    for number in range(height):
        spans: list[Span] = []
        for lines, columns in parts:
            spans += fit(lines[number] if number < len(lines) else StyledLine(), columns).spans
        rows.append(StyledLine(tuple(spans)))
    return rows


def rule(columns: int, left: str = "", right: str = "", style: Style = "border") -> StyledLine:
    """A line across, with words on it."""
    before = f"─ {left} " if left else ""
    after = f" {right} ─" if right else ""
    room = columns - width(before) - width(after)
    if room < 0:
        after, room = "", columns - width(before)
    if room < 0:
        return fit(StyledLine((Span(before, style),)), columns)
    return StyledLine((Span(f"{before}{'─' * room}{after}", style),))


def boxed(
    lines: Sequence[StyledLine], columns: int, title: str, right: str = "", bottom: str = "", style: Style = "border"
) -> list[StyledLine]:
    """The lines in a frame with a title."""
    inner = max(columns - 4, 1)
    head = rule(columns - 2, title, right, style).text
    foot = rule(columns - 2, "", bottom, style).text
    rows = [StyledLine((Span(f"╭{head}╮", style),))]
    for each in lines:
        rows.append(StyledLine((Span("│ ", style), *fit(each, inner).spans, Span(" │", style))))
    return [*rows, StyledLine((Span(f"╰{foot}╯", style),))]


def bottom_of(lines: Sequence[StyledLine], height: int) -> list[StyledLine]:
    """The last rows, below empty ones if there are too few."""
    shown = list(lines[-height:]) if height else []
    return [StyledLine()] * (height - len(shown)) + shown


def window(count: int, selected: int, rows: int) -> range:
    """Which of many rows are shown, so that the selected one is among them."""
    start = max(0, min(selected - rows // 2, count - rows))
    return range(start, min(start + rows, count))
