"""The answer on a terminal: rows that are rendered from Markdown while it is written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TextIO

from covey.cli.output import TAKEN_BACK
from covey.cli.screen import Screen, columns_of
from covey.cli.terminal_text import undisguised
from covey.client.view.run_news import AnswerGrew, RunNewsItem
from covey.lines.line import StyledLine
from covey.lines.markdown import MarkdownRows
from covey.lines.theme import choose_theme, paint
from covey.protocol.events import Event
from covey.protocol.runs import RunComplete


class RowPrinter:
    """The answer as rows of a terminal, rendered from Markdown as it grows.

    Only the row that is being written is ever drawn over and, where the cursor must not move, not even that one: it is
    written when it is full.
    """

    def __init__(self, stdout: TextIO, screen: Screen) -> None:
        self._stdout = undisguised(stdout)
        self._screen = screen
        self._theme = choose_theme(os.environ, is_terminal=True)
        self._rows: MarkdownRows | None = None
        self._current = ""
        self._begins = True
        """Nothing of this answer has been written."""
        self._drawn = ""
        """The row that is being written, as it is on the screen."""
        screen.before_note = self.settle

    def update(self, event: Event, news: Sequence[RunNewsItem]) -> None:
        for item in news:
            if isinstance(item, AnswerGrew):
                self._answer(item)
            else:
                self.settle()

    def end(self, terminal: RunComplete, news: Sequence[RunNewsItem], exit_code: int, why: str = "") -> None:
        for item in news:
            if isinstance(item, AnswerGrew):
                self._answer(item)
        self.settle()

    def settle(self) -> None:
        """Something else comes below: finish the row that is being written."""
        if self._rows:
            self._put(self._rows.end(), StyledLine())

    def _answer(self, item: AnswerGrew) -> None:
        if item.message_id != self._current or item.is_anew or self._rows is None:
            self.settle()
            self._begins = True
            if item.is_anew:
                self._screen.warn(TAKEN_BACK)
            self._current, self._rows = item.message_id, MarkdownRows(columns_of(self._stdout))
        finished = self._rows.add(item.text)
        self._put(finished, self._rows.open_row if self._screen.moves_cursor else StyledLine())

    def _put(self, rows: list[StyledLine], open_row: StyledLine) -> None:
        drawn = paint(open_row, self._theme)
        if not rows and drawn == self._drawn:
            return
        self._screen.clear()
        parted = "\n" if self._screen.takes_answer() and self._begins else ""
        self._begins = False
        erased = "\r\x1b[K" if self._drawn else ""
        finished = "".join(f"{paint(row, self._theme)}\n" for row in rows)
        self._stdout.write(f"{parted}{erased}{finished}{drawn}")
        self._stdout.flush()
        self._drawn = drawn
        self._screen.at_line_start = not drawn
