"""What is on the screen, as a value. The face makes frames; the terminal shows the newest, and drops what it missed."""

from __future__ import annotations

from dataclasses import dataclass

from covey.lines.line import StyledLine


@dataclass(frozen=True, slots=True)
class ScreenFrame:
    width: int
    rows: tuple[StyledLine, ...]
    """From the top; none is wider than the screen. A row that is the very object of the last frame is not looked at."""
    cursor: tuple[int, int] | None = None
    """Row and column of the caret, from 0. None: it is hidden."""
    title: str = ""
    """Of the window."""
