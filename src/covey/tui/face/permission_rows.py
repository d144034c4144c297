"""What a permission is about, as rows: the command or the change. Says whether some of it is not shown. Pure."""

from __future__ import annotations

from msgspec import structs

from covey.client.view.records import AskRequest
from covey.lines.diffs import beginning, diff_lines, read_diff, split_rows
from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import visible
from covey.lines.widths import expanded, width
from covey.lines.wrap import broken, wrap
from covey.protocol.events import PermissionRequest
from covey.tui.face.sizes import body_columns, is_low
from covey.tui.face.state import FaceState

NARROW_PANEL, WIDE_PANEL = 100, 180
"""The panel is no wider, however wide the screen is; the second with a change that stands beside what was before."""
SPLIT_FROM = 100
"""Columns of text from which there is room for both."""
FRAME = 4
"""Columns of a panel beside its text."""
OUTSIDE = "It runs outside the sandbox."
FEWEST = 3
"""Rows of it that are shown on the smallest screen."""


def panel_width(state: FaceState, request: AskRequest | None = None) -> int:
    """Columns of the panel with its frame."""
    is_change = isinstance(request, PermissionRequest) and bool(request.params.get("diff"))
    columns = body_columns(state)
    has_room = is_change and not state.is_unified and columns - FRAME >= SPLIT_FROM
    return min(columns, WIDE_PANEL if has_room else NARROW_PANEL)


def panel_columns(state: FaceState, request: AskRequest | None = None) -> int:
    """Columns of text in it."""
    return max(panel_width(state, request) - FRAME, 10)


def as_chosen(state: FaceState, request: PermissionRequest) -> PermissionRequest:
    """With what is said of the sandbox as it is turned on or off in the panel."""
    return structs.replace(request, sandbox=OUTSIDE) if state.ask.unsandboxed else request


def permission_rows(state: FaceState, request: PermissionRequest) -> tuple[list[StyledLine], bool]:
    """As much as a third of the screen takes, and whether there is more."""
    most = FEWEST if is_low(state) else max(state.height // 3, FEWEST)
    rows = _rows(request, panel_columns(state, request), is_unified=state.is_unified)
    if len(rows) <= most:
        return rows, False
    left = line(Span(f"  … {len(rows) - most + 1} more rows", "dim"))
    return [*rows[: most - 1], left], True


def _rows(request: PermissionRequest, columns: int, *, is_unified: bool) -> list[StyledLine]:
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
        return [*head, *whole_diff(diff, columns, is_unified=is_unified)]
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


def whole_diff(diff: str, columns: int, *, is_unified: bool = False) -> list[StyledLine]:
    """Every character of a change: beside what was there before, if there is room; what is too wide goes on below."""
    if columns >= SPLIT_FROM and not is_unified:
        shown = _visible(diff)
        return split_rows(read_diff(shown, 0, len(shown), beginning(shown))[0], columns)
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
