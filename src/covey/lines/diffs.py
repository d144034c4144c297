"""A unified diff → lines with numbers and colours: all of it, or as much as says what happened."""

from __future__ import annotations

import re

from covey.lines.line import Span, Style, StyledLine
from covey.lines.widths import cut, expanded
from covey.lines.words import counted

SHORT = 8
"""Lines of a change that are shown without being asked for."""
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def diff_lines(diff: str, columns: int, *, limit: int | None = SHORT) -> list[StyledLine]:
    """The lines that change, with their numbers; with `limit` None also those around them, and each in full."""
    shown: list[StyledLine] = []
    left_out = 0
    before = after = 0
    in_hunk = False
    for text in diff.split("\n"):
        if found := _HUNK.match(text):
            before, after, in_hunk = int(found[1]), int(found[2]), True
            if shown and not left_out:
                shown.append(StyledLine((Span("      ⋮", "dim"),)))
            continue
        if not in_hunk or not text:
            continue
        sign, number = text[0], before if text[0] == "-" else after
        before, after = before + (sign in "- "), after + (sign in "+ ")
        if sign == " " and limit is not None:
            continue
        if limit is not None and len(shown) >= limit:
            left_out += sign in "+-"
            continue
        shown.append(_diff_line(sign, number, text, columns, is_cut=limit is not None))
    if left_out:
        shown.append(StyledLine((Span(f"      … {counted(left_out, 'more line')}", "dim"),)))
    return shown


def _diff_line(sign: str, number: int, text: str, columns: int, *, is_cut: bool) -> StyledLine:
    if sign not in "+- ":  # a remark, such as a missing line end
        return StyledLine((Span(f"      {text}", "dim"),))
    rest = expanded(text[1:])
    rest = cut(rest, max(columns - 8, 8)) if is_cut else rest
    style: Style = "added" if sign == "+" else "removed" if sign == "-" else ""
    return StyledLine((Span(f"{number:>5} ", "dim"), Span(f"{sign} {rest}", style)))
