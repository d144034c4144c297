"""What a permission is about, as rows: the command or the change. Says whether some of it is not shown. Pure."""

from __future__ import annotations

from covey.lines.diffs import diff_lines
from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import visible
from covey.lines.widths import expanded, width
from covey.lines.wrap import broken, wrap
from covey.protocol.events import PermissionRequest
from covey.tui.face.state import FaceState

NARROW_PANEL = 100
"""The panel is no wider, however wide the screen is."""
FEWEST = 3
"""Rows of it that are shown on the smallest screen."""


def panel_columns(state: FaceState) -> int:
    """Columns of text in the panel; the sides of a wide screen leave it enough."""
    return max(min(state.width, NARROW_PANEL) - 4, 10)


def permission_rows(request: PermissionRequest, columns: int, height: int) -> tuple[list[StyledLine], bool]:
    """As much as a third of the screen takes, and whether there is more."""
    most = max(height // 3, FEWEST)
    rows = _rows(request, columns)
    if len(rows) <= most:
        return rows, False
    left = line(Span(f"  … {len(rows) - most + 1} more rows", "dim"))
    return [*rows[: most - 1], left], True


def _rows(request: PermissionRequest, columns: int) -> list[StyledLine]:
    command, diff = request.params.get("command"), request.params.get("diff")
    if isinstance(command, str) and command.strip():
        where = request.params.get("working_dir")
        rows = [line(Span(f"in {visible(str(where))}", "dim"))] if where else []
        for number, text in enumerate(command.split("\n")):
            sign = Span("$ " if number == 0 else "  ", "dim")
            for at, row in enumerate(broken(expanded(visible(text)), max(columns - 2, 8), "strong")):
                rows.append(line(sign if at == 0 else Span("  "), *row.spans))
        return rows
    head = wrap([Span(visible(request.description), "strong")], columns)
    if isinstance(diff, str) and diff:
        return [*head, *whole_diff(diff, columns)]
    return [*head, *_content(request, columns)]


def _content(request: PermissionRequest, columns: int) -> list[StyledLine]:
    """What would be written, where the server could not say what it changes."""
    params = request.params
    if isinstance(content := params.get("content"), str):
        marked = [("+", text) for text in content.split("\n")]
    elif "old_string" in params and "new_string" in params:
        marked = [("-", text) for text in str(params["old_string"]).split("\n")]
        marked += [("+", text) for text in str(params["new_string"]).split("\n")]
    else:
        return []
    rows: list[StyledLine] = []
    for sign, text in marked:
        style: Style = "added" if sign == "+" else "removed"
        for row in broken(expanded(visible(text)), max(columns - 2, 8), style):
            rows.append(line(Span(f"{sign} ", style), *row.spans))
    return rows


def whole_diff(diff: str, columns: int) -> list[StyledLine]:
    """Every character of a change: what is wider than the panel goes on below."""
    rows: list[StyledLine] = []
    for row in diff_lines(_visible(diff), columns, limit=None):
        *before, last = row.spans
        indent = sum(width(span.text) for span in before)
        first, *rest = broken(last.text, max(columns - indent, 8), last.style)
        rows.append(StyledLine((*before, *first.spans)))
        rows += [line(Span(" " * indent), *more.spans) for more in rest]
    return rows


def _visible(text: str) -> str:
    return "\n".join(visible(each) for each in text.split("\n"))
