"""Extensions as rows: as much of what waits for an approval as fits, and their states. Pure."""

from __future__ import annotations

from covey.lines.approval import all_rows
from covey.lines.line import Span, StyledLine, line
from covey.protocol.extensions import ApprovalRequest

FEWEST = 4
"""Rows of it that are shown on the smallest screen."""


def approval_rows(request: ApprovalRequest, columns: int, height: int) -> tuple[list[StyledLine], bool]:
    """As much as a third of the screen takes, and whether there is more."""
    rows, most = all_rows(request, columns), max(height // 3, FEWEST)
    if len(rows) <= most:
        return rows, False
    return [*rows[: most - 1], line(Span(f"  … {len(rows) - most + 1} more rows", "dim"))], True
