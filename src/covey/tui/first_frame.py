"""The first thing on the screen: the prompt, drawn before anything is loaded, with what is typed meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from covey.lines import widths
from covey.lines.line import EMPTY, Span, StyledLine
from covey.tui.frame import ScreenFrame
from covey.tui.inputs import FocusChange, Key, Resize, TerminalInput

_PROMPT = " > "


def first_frame(width: int, height: int, typed: str = "") -> ScreenFrame:
    """As the face draws it a moment later, so that nothing jumps."""
    head = StyledLine((Span(" covey", "accent"), Span(" · starting", "dim")))
    rule = StyledLine((Span("─" * width, "border"),))
    text = widths.head(typed, max(width - len(_PROMPT) - 1, 0))
    prompt = StyledLine((Span(_PROMPT, "accent"), Span(text)))
    rows = [head, *[EMPTY] * max(height - 4, 0), rule, prompt, EMPTY]
    return ScreenFrame(width, tuple(rows[-height:]), (max(height - 2, 0), len(_PROMPT) + widths.width(text)), "covey")


def typed(inputs: Sequence[TerminalInput]) -> str:
    """The words of these keys, up to the first that does something else: that one is the face's."""
    text = ""
    for given in inputs:
        if isinstance(given, FocusChange | Resize):
            continue
        if isinstance(given, Key) and given.name == "backspace":
            text = text[:-1]
        elif isinstance(given, Key) and given.text:
            text += given.text
        else:
            break
    return text
