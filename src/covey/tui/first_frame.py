"""The first thing on the screen: the prompt, drawn before anything is loaded. What is typed meanwhile waits for it."""

from __future__ import annotations

from covey.lines.line import EMPTY, Span, StyledLine
from covey.tui.frame import ScreenFrame


def first_frame(width: int, height: int) -> ScreenFrame:
    """As the face draws it a moment later, so that nothing jumps."""
    head = StyledLine((Span(" covey", "accent"), Span(" · starting", "dim")))
    rule = StyledLine((Span("─" * width, "border"),))
    prompt = StyledLine((Span(" > ", "accent"),))
    rows = [head, *[EMPTY] * max(height - 4, 0), rule, prompt, EMPTY]
    return ScreenFrame(width, tuple(rows[-height:]), (max(height - 2, 0), 3), "covey")
