"""What people see beside the answer: notes and results on stderr, and what goes on now when it is a terminal."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from covey.cli.terminal_text import undisguised
from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import one_line, plain
from covey.lines.theme import choose_theme, paint
from covey.lines.widths import cut_line

__all__ = ["FRAMES", "Screen", "plain", "share_lines", "warning"]

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAME_S = 0.15
PATIENCE_S = 0.3
"""A wait that is shorter than this needs no spinner."""
COLUMNS_ELSEWHERE = 160
"""Where nobody knows how wide it is: lines of a log may be long, but not without end."""
ROWS_ELSEWHERE = 50
"""Where nobody knows how high it is."""


def warning(text: str) -> str:
    """Further lines belong to the first, and are indented below it."""
    return f"covey: {plain(text)}".replace("\n", "\n  ")


def rows_of(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).lines or ROWS_ELSEWHERE
    except (OSError, ValueError):
        return ROWS_ELSEWHERE


def columns_of(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80 if stream.isatty() else COLUMNS_ELSEWHERE


def share_lines(answer: TextIO, notes: TextIO) -> bool:
    """Whether both are written into one text: on one terminal, or into one file or pipe, as with `2>&1`."""
    if answer.isatty() and notes.isatty():
        return True
    try:
        return os.path.sameopenfile(answer.fileno(), notes.fileno())
    except (OSError, ValueError):
        return False


def wrapped(text: str, columns: int, style: Style = "") -> list[StyledLine]:
    """A line by words, as rows of a terminal; further rows are indented."""
    if len(text) < columns // 2:  # which fits, however wide its characters are
        return [line(Span(text, style))]
    from covey.lines.wrap import wrap  # late: most notes fit

    indent = " " * (2 + len(text) - len(text.lstrip()))
    return wrap([Span(text, style)], columns - 1, rest=(Span(indent),))


def rows_taken(text: str, columns: int) -> int:
    """Rows of a terminal that a line takes which is not wrapped. Rather too few: what is above them is not its own."""
    from covey.lines.wrap import broken  # late: seldom needed

    return len(broken(text, columns, ""))


class _AskedRows:
    """How many rows have been written for one question, and how wide the screen was then."""

    def __init__(self) -> None:
        self.rows = 0
        self.columns = 0

    def add(self, rows: int, columns: int) -> None:
        self.columns = columns if self.columns in (0, columns) else -1
        self.rows += rows


class Screen:
    """Stderr of one command. `at_line_start` is set by whatever writes the answer to the same terminal."""

    def __init__(self, stream: TextIO, *, quiet: bool, shares_terminal: bool, is_plain: bool = False) -> None:
        self._stream = undisguised(stream)
        self._quiet = quiet
        self.shares_terminal = shares_terminal
        """The answer is written there too."""
        self.is_terminal = stream.isatty()
        self.is_plain = is_plain or (self.is_terminal and os.environ.get("TERM") == "dumb")
        """Words instead of signs, and one line for each thing that happens."""
        self.moves_cursor = self.is_terminal and not self.is_plain
        """Lines may be drawn over. Else no line changes."""
        self._spins = self.moves_cursor and not quiet
        self.theme = choose_theme(os.environ, is_terminal=self.is_terminal)
        self.tail: Callable[[], Sequence[StyledLine]] = lambda: ()
        """What is drawn below the spinner, each time anew."""
        self.before_note: Callable[[], None] = lambda: None
        """Called before anything else is written below an answer that is not finished."""
        self._waiting_for = line()
        self._since = 0.0
        self._drawn = 0
        """Rows of the spinner and what is below it."""
        self._asking = False
        self._prompt = ""
        """The row after which an answer is typed."""
        self._asked = _AskedRows()
        self.at_line_start = True
        self._has_noted = False
        """Notes stand above what is written next."""

    @property
    def columns(self) -> int:
        return columns_of(self._stream)

    @property
    def rows(self) -> int:
        return rows_of(self._stream)

    def say(self, text: str) -> None:
        """A note that one may do without, on one line; at a terminal, wrapped by words."""
        self.show(self._wrapped(" ".join(plain(text).splitlines()), "dim"))

    def _wrapped(self, text: str, style: Style = "") -> list[StyledLine]:
        """Elsewhere a line stays one line, for whoever searches in it."""
        return wrapped(text, self.columns, style) if self.is_terminal else [line(Span(text, style))]

    def show(self, lines: Iterable[StyledLine]) -> None:
        """The same, as lines."""
        if not self._quiet:
            self._write([paint(each, self.theme) for each in lines])

    def warn(self, text: str) -> None:
        """Something that must be said, quiet or not."""
        self.report(warning(text))

    def report(self, text: str) -> None:
        """The same, as it is."""
        rows = [row for each in plain(text).split("\n") for row in self._wrapped(each)]
        self._write([paint(row, self.theme) for row in rows])

    def ask(self, prompt: str, lines: Sequence[StyledLine] = ()) -> None:
        """A question: the answer is typed after the prompt. Until then nothing else is written on its line.

        The prompt is the last line of a text that is wrapped by words; '': nothing is to be typed yet.
        """
        self._fresh_line()
        *above, last = (row for each in plain(prompt).split("\n") for row in self._wrapped(each.rstrip()))
        shown = [*lines, *above]
        self._prompt = last.text + " " * prompt.endswith(" ")
        self._stream.write("".join(f"{paint(each, self.theme)}\n" for each in shown) + self._prompt)
        self._stream.flush()
        self._asked.add(len(shown), self.columns)
        self._asking = True

    def answered(self, seen: str, unseen: str = "") -> None:
        """The person has typed an answer: what the terminal has shown of it, and what is shown only now.

        With one of them the line has ended.
        """
        if unseen:
            self._stream.write(plain(unseen))
            self._stream.flush()
        self._asked.add(rows_taken(f"{self._prompt}{seen}{unseen}", self.columns), self.columns)
        self._asking, self._prompt = False, ""
        self.at_line_start = True

    def take_back_question(self) -> bool:
        """Erase the question that was answered, with its menu; False if not all of it can be reached any more."""
        rows, columns = self._asked.rows, self._asked.columns
        self._asked = _AskedRows()
        if not self.moves_cursor or not 0 < rows < self.rows or columns != self.columns:
            return False
        self._stream.write(f"\x1b[{rows}A\r\x1b[J")
        self._stream.flush()
        return True

    def wait_for(self, what: str | StyledLine) -> None:
        """Show that we wait, and for what; '' when there is nothing to wait for."""
        shown = what if isinstance(what, StyledLine) else line(one_line(what))
        if shown != self._waiting_for:
            self._waiting_for, self._since = shown, time.monotonic()
            if self._drawn:
                self.clear()

    def clear(self) -> None:
        """Take the spinner away, and leave the line of a question, before something else is written."""
        if self._drawn or self._asking:
            left = "\n" if self._prompt else ""
            self._asked.add(len(left), self.columns)
            self._stream.write(left if self._asking else self._erased())
            self._stream.flush()
            self._drawn, self._asking, self._prompt = 0, False, ""

    def stop_spinning(self) -> None:
        self.clear()
        self._spins = False

    async def spin(self) -> None:
        """Draw what goes on until cancelled."""
        while self._spins:
            await asyncio.sleep(FRAME_S)
            waited_s = time.monotonic() - self._since
            has_room = not self._asking and (self.at_line_start or not self.shares_terminal)
            if self._waiting_for.spans and waited_s > PATIENCE_S and has_room:
                frame = FRAMES[int(waited_s / FRAME_S) % len(FRAMES)]
                time_of_it = Span(f" {waited_s:.0f}s", "dim")
                what = cut_line(self._waiting_for, self.columns - len(time_of_it.text) - 3)
                self._draw([line(Span(f"{frame} ", "marker"), *what.spans, time_of_it), *self.tail()])

    @property
    def began_line(self) -> bool:
        """Whether the answer's next text is on a line of its own already, because of a note in between."""
        return self.shares_terminal and self.at_line_start

    def takes_answer(self) -> bool:
        """Words of the answer come now: whether they begin below notes, from which a blank line parts them."""
        has_noted, self._has_noted = self._has_noted, False
        return has_noted and self.shares_terminal and not self.is_plain

    def _draw(self, rows: Sequence[StyledLine]) -> None:
        columns = self.columns - 1  # in the last column some terminals begin a new row
        shown = "\n".join(paint(cut_line(row, columns), self.theme) for row in rows)
        self._stream.write(f"{self._erased()}{shown}")
        self._stream.flush()
        self._drawn = len(rows)

    def _erased(self) -> str:
        return f"\x1b[{self._drawn - 1}A\r\x1b[J" if self._drawn > 1 else "\r\x1b[K"

    def _write(self, texts: Sequence[str]) -> None:
        if texts:
            self._fresh_line()
            self._stream.write("".join(f"{text}\n" for text in texts))
            self._stream.flush()
            self._asked = _AskedRows()
            self._has_noted = True

    def _fresh_line(self) -> None:
        self.clear()
        self.before_note()
        if self.shares_terminal and not self.at_line_start:
            self._stream.write("\n")
            self.at_line_start = True
