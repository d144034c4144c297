"""Markdown → rows, while it is written. A row that was given out never changes, and no text is looked at twice.

Every line of the source is shown on rows of its own, so only the line that is being written is open, and of that one
only its last row. Tables are the exception: their columns are known when they end, or when they have become long.
"""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass

from covey.lines.code import coloured
from covey.lines.inline import LONGEST, complete_until, styled
from covey.lines.line import EMPTY, Span, Style, StyledLine
from covey.lines.plain_text import plain
from covey.lines.tables import table_lines
from covey.lines.widths import cut_line, expanded, width
from covey.lines.wrap import Rows, broken, broken_line

TABLE_ROWS = 200
"""Of a table that are held back: what comes after them has columns of its own."""
SEEN = 8
"""Characters of which one column is left at least: marks that combine, and those that are not shown."""
NO_TEXT = 4 * LONGEST
"""Characters without a place at which they could be shown in part."""
_FENCE = re.compile(r"( {0,12})(`{3,}|~{3,})\s*([^\s`]*)[^`]*")
_PREFIX = re.compile(
    r"(?P<quotes>(?: {0,3}> ?)*)(?P<indent> *)(?:(?P<head>#{1,6})(?= )|(?P<mark>[-*+]|\d{1,9}[.)])(?= ))?"
)
_TASK = re.compile(r"\[([ xX])\] ")
_RULE = re.compile(r" {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})")
_UNDERLINE = re.compile(r" {0,3}={3,}\s*")
"""The line below makes a heading of the one above it, which is on the screen already: it is drawn under it."""
_UNDECIDED = re.compile(r"\s*(?:>\s*)*(?:#{0,6}|[-*+]?|\d{0,9}[.)]?|`{1,2}|~{1,2}|[-*+] ?(?:\[[ xX]?\]?)?)\s*")
"""The beginning of a line by which it is not known yet what the line is."""
_WHOLE = re.compile(r"\s*(?:\||`{3}|~{3})")
"""Of a line that is known only when it has ended: of a table, or of a fence."""


@dataclass(frozen=True, slots=True)
class _Fence:
    marks: str
    language: str
    indent: int

    def ends_with(self, text: str) -> bool:
        stripped = text.strip()
        return len(stripped) >= len(self.marks) and not stripped.strip(self.marks[0])


class MarkdownRows:
    """One text, piece by piece. `at` is where it begins in what its rows name as their source.

    `fence`: it begins inside of one, whose first line this is.
    """

    def __init__(self, columns: int, *, at: int = 0, fence: str = "") -> None:
        self._columns = columns
        self._at = at
        """Where the line that is being written began."""
        self._open = ""
        """The end of the line that is being written, as far as it has not been put on rows."""
        self._length = 0
        """Of that line, with what is on rows."""
        self._rows: Rows | None = None
        """What has been put on rows of that line: None if nothing has."""
        self._style: Style = ""
        self._fence = _fence_of(fence)
        self._is_begun = False
        """Rows of the open line of code were given out."""
        self._table: list[str] = []
        self._table_at: list[int] = []
        """Where each of its lines began."""
        self._was_blank = True
        """The row before is empty, or there is none: a second one would say nothing."""

    def add(self, text: str) -> list[StyledLine]:
        """The text goes on; gives the rows that are finished by this."""
        *ended, rest = text.split("\n")
        finished: list[StyledLine] = []
        for piece in ended:
            self._open += piece
            self._length += len(piece) + 1
            finished += self._placed(self._end_line())
            self._at, self._length = self._at + self._length, 0
        self._open += rest
        self._length += len(rest)
        return finished + self._placed(self._go_on())

    def end(self) -> list[StyledLine]:
        """No more text comes, or something else will be shown in between: the rows that were held back."""
        is_open = bool(self._open or self._rows or self._is_begun)
        rows = [*(self._placed(self._end_line()) if is_open else ()), *self._end_table()]
        self._at, self._length = self._at + self._length, 0
        return rows

    def peek(self) -> list[StyledLine]:
        """What `end` would give now: all that is not finished. Costs what is held back, and changes nothing."""
        ahead = copy(self)
        ahead._rows = self._rows.copy() if self._rows else None
        ahead._table, ahead._table_at = list(self._table), list(self._table_at)
        return ahead.end()

    def _placed(self, rows: list[StyledLine]) -> list[StyledLine]:
        """Rows of the line that is being written, but for those of a table before it, which know their place."""
        return [row if row.source >= 0 else StyledLine(row.spans, self._at) for row in rows]

    @property
    def open_row(self) -> StyledLine:
        """What is known of the row that is being written, with its last words as they stand, cut to the width."""
        begun = self._rows.open_row.spans if self._rows else ()
        text = expanded(plain(self._open[: SEEN * self._columns]))
        return cut_line(StyledLine((*begun, Span(text, "code" if self._fence else self._style))), self._columns)

    # ── a line that is written ──

    def _go_on(self) -> list[StyledLine]:
        """Give out what can not change any more of the line that is being written."""
        if self._fence:
            return self._long_code()
        text = self._open
        if self._rows is None:
            if not text.strip() or _UNDECIDED.fullmatch(text) or _WHOLE.match(text):
                return []
            if _drawn(text):
                return []
            if self._shown_until() == 0:
                return []
            return [*self._end_table(), *self._begin()]
        return self._fill(self._shown_until())

    def _shown_until(self) -> int:
        """How much of the open text is shown for good. Without a blank for so long, it is no text with marks."""
        return len(self._open) if len(self._open) > NO_TEXT else complete_until(self._open)

    def _long_code(self) -> list[StyledLine]:
        """A line of code that is wider than the screen: what fills rows is given out."""
        if len(self._open) <= 2 * self._columns:
            return []
        *full, last = broken(expanded(plain(self._open)), self._columns, "code")
        self._open = last.text
        self._is_begun = True
        return full

    def _begin(self) -> list[StyledLine]:
        """The first words of a line say what it is."""
        text = expanded(plain(self._open))
        found = _PREFIX.match(text)
        assert found, "it matches nothing, too"
        first = [Span("│ ", "quote")] * found["quotes"].count(">") + [Span(found["indent"])]
        rest, at = list(first), found.end()
        self._style = "quote" if found["quotes"] else ""
        if found["head"]:
            self._style, at = "heading", at + 1
            first, rest = [*first[:-1], Span(found["head"] + " ", "dim")], first[:-1]
        elif mark := found["mark"]:
            at += 1
            task = _TASK.match(text, at)
            at = task.end() if task else at
            shown = ("☐" if task[1] == " " else "☑") if task else "•" if mark in "-*+" else mark
            first, rest = [*first, Span(f"{shown} ", "marker")], [*rest, Span(" " * (width(shown) + 1))]
        self._open = text[at:]
        self._rows = Rows(self._columns, first, rest)
        self._was_blank = False
        return self._fill(self._shown_until())

    def _fill(self, until: int) -> list[StyledLine]:
        if not until or self._rows is None:
            return []
        text, self._open = self._open[:until], self._open[until:]
        return self._rows.add(styled(expanded(plain(text)), self._style))

    # ── a line that has ended ──

    def _end_line(self) -> list[StyledLine]:
        text = self._open.rstrip("\r")
        if self._fence:
            return self._end_code(self._fence, text)
        if self._rows is None:
            if text.lstrip().startswith("|"):
                self._open = ""
                self._table.append(plain(text))
                self._table_at.append(self._at)
                return self._end_table() if len(self._table) >= TABLE_ROWS else []
            return [*self._end_table(), *self._whole_line(text)]
        full = [*self._fill(len(self._open)), *self._rows.end()]
        self._open, self._rows, self._style = "", None, ""
        return full

    def _whole_line(self, text: str) -> list[StyledLine]:
        """A line of which nothing has been shown."""
        if fence := _fence_of(text):
            self._open, self._was_blank, self._fence = "", False, fence
            return [StyledLine((Span(f"── {fence.language}".rstrip(), "dim"),))]
        if not text.strip():
            self._open = ""
            was_blank, self._was_blank = self._was_blank, True
            return [] if was_blank else [EMPTY]
        if (drawn := _drawn(text)) and not (drawn == "═" and self._was_blank):
            self._open, self._was_blank = "", False
            return [StyledLine((Span(drawn * min(self._columns, 40), "dim"),))]
        full = self._begin()
        assert self._rows
        full += [*self._fill(len(self._open)), *self._rows.end()]
        self._open, self._rows, self._style = "", None, ""
        return full

    def _end_code(self, fence: _Fence, text: str) -> list[StyledLine]:
        is_begun, self._is_begun, self._open = self._is_begun, False, ""
        if not is_begun and fence.ends_with(text):
            self._fence = None
            return [StyledLine((Span("──", "dim"),))]
        shown = expanded(plain(text))
        if not is_begun:
            shown = shown[min(fence.indent, len(shown) - len(shown.lstrip(" "))) :]
        if is_begun or len(text) > 2 * self._columns:  # as `_long_code` has begun it, or would have
            return broken(shown, self._columns, "code")
        return broken_line(coloured(shown, fence.language).spans, self._columns)

    def _end_table(self) -> list[StyledLine]:
        source, self._table = self._table, []
        starts, self._table_at = self._table_at, []
        if not source:
            return []
        self._was_blank = False
        return [StyledLine(row.spans, starts[row.source]) for row in table_lines(source, self._columns)]


def _fence_of(text: str) -> _Fence | None:
    found = _FENCE.fullmatch(text) if text else None
    return _Fence(found[2], plain(found[3]).lower(), len(found[1])) if found else None


def _drawn(text: str) -> str:
    """Of what a line is drawn that this stands for; '' if it is text."""
    if len(text) > NO_TEXT:
        return ""
    return "─" if _RULE.fullmatch(text) else "═" if _UNDERLINE.fullmatch(text) else ""


def markdown(text: str, columns: int) -> list[StyledLine]:
    """A whole text."""
    rows = MarkdownRows(columns)
    return [*rows.add(text), *rows.end()]
