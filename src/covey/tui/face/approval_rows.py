"""Extensions as rows: as much of what waits for an approval as fits, and their states. Pure."""

from __future__ import annotations

from covey.lines.approval import all_rows
from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import one_line, visible
from covey.protocol.extensions import ApprovalRequest, ExtensionView
from covey.tui.face.state import TextPage

FEWEST = 4
"""Rows of it that are shown on the smallest screen."""
_STATES: dict[str, Style] = {
    "ready": "success",
    "failed": "error",
    "needs_login": "warning",
    "needs_approval": "warning",
}


def approval_rows(request: ApprovalRequest, columns: int, height: int) -> tuple[list[StyledLine], bool]:
    """As much as a third of the screen takes, and whether there is more."""
    rows, most = all_rows(request, columns), max(height // 3, FEWEST)
    if len(rows) <= most:
        return rows, False
    return [*rows[: most - 1], line(Span(f"  … {len(rows) - most + 1} more rows", "dim"))], True


def extensions_page(extensions: tuple[ExtensionView, ...]) -> TextPage:
    """Every extension with its state, and why."""
    rows: list[StyledLine] = []
    for each in extensions:
        about = [each.state.replace("_", " ")]
        about += [f"{len(each.tools)} tools"] if each.tools else []
        about += [f"{len(each.withheld)} withheld"] if each.withheld else []
        state = Span(f"  {' · '.join(about)}", _STATES.get(each.state, "dim"))
        rows.append(line(Span(f"{each.kind:<8}"), Span(visible(each.name), "strong"), state))
        rows += [line(Span(f"        {one_line(each.why)}", "dim"))] if each.why else []
    if not rows:
        rows = [line(Span("no extensions yet: `covey mcp add` adds a server of tools", "dim"))]
    return TextPage("extensions", tuple(rows), hint="esc closes")
