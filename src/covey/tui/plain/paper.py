"""Where lines are written: one below the other, and nothing is ever moved or drawn over."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from covey.lines.line import Span, Style, StyledLine
from covey.lines.plain_text import one_line
from covey.lines.theme import choose_theme, paint
from covey.lines.wrap import wrap

COLUMNS_ELSEWHERE = 160
"""Where nobody knows how wide it is."""


class Paper:
    def __init__(self, stream: TextIO | None = None) -> None:
        given = stream or sys.stdout
        # What others wrote is made plain where lines are painted.
        self._stream: TextIO = getattr(given, "own", given)
        self._theme = choose_theme(os.environ, is_terminal=self._stream.isatty())
        self.is_prompted = False
        """Somebody may be typing on the last row."""

    @property
    def columns(self) -> int:
        try:
            return max(os.get_terminal_size(self._stream.fileno()).columns, 20)
        except (OSError, ValueError):
            return COLUMNS_ELSEWHERE

    def write(self, lines: Iterable[StyledLine]) -> None:
        text = "".join(f"{paint(each, self._theme)}\n" for each in lines)
        if text:
            # The row on which somebody types is left as it is: what is said goes below it.
            begun = "\n" if self.is_prompted else ""
            self.is_prompted = False
            self._put(begun + text)

    def say(self, text: str, style: Style = "") -> None:
        """A sentence, whole words on each line."""
        self.write(wrap([Span(one_line(text), style)], self.columns))

    def prompt_again(self, text: str) -> None:
        """The prompt, and what was typed after it, are far above: they stand on the last row again."""
        if not self.is_prompted:
            self.is_prompted = True
            self._put(text)

    def prompted(self) -> None:
        """The prompt was shown by whoever reads lines."""
        self.is_prompted = True

    def entered(self) -> None:
        """A line was ended by Enter."""
        self.is_prompted = False

    def _put(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
