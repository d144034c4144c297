"""What was said last, as rows above the prompt. Pure."""

from __future__ import annotations

from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import one_line
from covey.lines.widths import cut, width
from covey.lines.wrap import wrap
from covey.tui.face.boxes import rule
from covey.tui.face.sizes import is_low
from covey.tui.face.state import FaceState

LONGEST_NOTICE = 4
"""Rows: more is in the log, or said where it happened. What went wrong may take two thirds: it says what to do."""


def notice_rows(state: FaceState, columns: int) -> list[StyledLine]:
    """What was said last, on the rule above the prompt: it covers nothing. A long sentence takes rows of its own."""
    toast = state.toast
    if toast is None:
        return []
    style: Style = "accent" if toast.kind == "note" else toast.kind
    text = one_line(toast.text)
    if is_low(state) or width(text) + 4 <= columns:
        text = cut(text, columns - 4)
        return [line(Span("─ ", "border"), Span(text, style), Span(f" {'─' * (columns - width(text) - 3)}", "border"))]
    most = max(LONGEST_NOTICE, state.height * 2 // 3) if toast.kind == "error" else LONGEST_NOTICE
    rows = wrap([Span(text, style)], columns - 2, (Span("  "),), (Span("  "),))[:most]
    return [rule(columns), *rows, rule(columns)]
