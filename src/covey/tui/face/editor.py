"""A text that somebody edits: where the caret is, what is selected, and what can be undone. A value, and pure.

A token is one character (`TOKENS`) that stands for something longer, such as a paste: it is moved over, selected and
deleted as a whole, because it is one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from covey.lines.widths import TAB, clusters, width

FIRST_TOKEN, LAST_TOKEN = 0xF0000, 0xF0FFF
"""Private characters that nobody types: what comes from outside loses them (`typed`)."""
UNDO_STEPS = 200
"""Words and deletions that can be taken back."""

Labels = Callable[[str], str]
"""What a token looks like."""


def is_token(char: str) -> bool:
    return FIRST_TOKEN <= ord(char) <= LAST_TOKEN


def typed(text: str) -> str:
    """Text from outside as an editor takes it: no control characters but line ends and tabs, and no tokens."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii() and text.isprintable():
        return text
    return "".join(char for char in text if char in "\n\t" or (char >= " " and char != "\x7f" and not _is_odd(char)))


def _is_odd(char: str) -> bool:
    return is_token(char) or "\x80" <= char <= "\x9f" or "\ud800" <= char <= "\udfff"


@dataclass(frozen=True, slots=True)
class Editor:
    text: str = ""
    caret: int = 0
    anchor: int | None = None
    """Where the selection began; None: nothing is selected."""
    killed: str = ""
    """What the last cuts took, for `yank`."""
    column: int | None = None
    """Where moves up and down want to be."""
    past: tuple[tuple[str, int], ...] = ()
    future: tuple[tuple[str, int], ...] = ()
    grouping: str = ""
    """The kind of the last change: letters of a word are undone together."""

    @property
    def selection(self) -> tuple[int, int] | None:
        if self.anchor is None or self.anchor == self.caret:
            return None
        return min(self.anchor, self.caret), max(self.anchor, self.caret)

    @property
    def selected(self) -> str:
        return self.text[slice(*self.selection)] if self.selection else ""

    # ── changes ──

    def changed(self, text: str, caret: int, kind: str = "") -> Editor:
        if text == self.text:
            return replace(self, caret=caret, anchor=None, column=None)
        goes_on = kind != "" and kind == self.grouping
        past = self.past if goes_on else (*self.past, (self.text, self.caret))[-UNDO_STEPS:]
        return replace(self, text=text, caret=caret, anchor=None, column=None, past=past, future=(), grouping=kind)

    def insert(self, text: str) -> Editor:
        start, end = self.selection or (self.caret, self.caret)
        kind = "typing" if len(text) == 1 and not text.isspace() else ""
        return self.changed(self.text[:start] + text + self.text[end:], start + len(text), kind)

    def replace_range(self, start: int, end: int, text: str) -> Editor:
        return self.changed(self.text[:start] + text + self.text[end:], start + len(text))

    def delete(self, to: int, kind: str = "") -> Editor:
        """What is selected, else all between the caret and there."""
        start, end = self.selection or (min(self.caret, to), max(self.caret, to))
        return self.changed(self.text[:start] + self.text[end:], start, kind)

    def kill(self, to: int) -> Editor:
        start, end = self.selection or (min(self.caret, to), max(self.caret, to))
        return replace(self.delete(to), killed=self.text[start:end] or self.killed)

    def cleared(self) -> Editor:
        return self.changed("", 0)

    def undone(self) -> Editor:
        if not self.past:
            return self
        (text, caret), past = self.past[-1], self.past[:-1]
        future = (*self.future, (self.text, self.caret))
        return replace(self, text=text, caret=caret, anchor=None, past=past, future=future, grouping="")

    def redone(self) -> Editor:
        if not self.future:
            return self
        (text, caret), future = self.future[-1], self.future[:-1]
        past = (*self.past, (self.text, self.caret))
        return replace(self, text=text, caret=caret, anchor=None, past=past, future=future, grouping="")

    # ── moves ──

    def moved(self, to: int, *, selecting: bool = False) -> Editor:
        anchor = (self.caret if self.anchor is None else self.anchor) if selecting else None
        return replace(self, caret=max(0, min(to, len(self.text))), anchor=anchor, column=None, grouping="")

    def left_of(self) -> int:
        """Where the cluster before the caret begins."""
        line_start = self.text.rfind("\n", 0, self.caret) + 1
        if self.caret == line_start:
            return max(self.caret - 1, 0)
        last = self.caret - 1
        at = line_start
        for cluster, _ in clusters(self.text[line_start : self.caret]):
            last, at = at, at + len(cluster)
        return last

    def right_of(self) -> int:
        if self.caret >= len(self.text):
            return self.caret
        line_end = self.line_end()
        if self.caret == line_end:
            return self.caret + 1
        cluster, _ = next(iter(clusters(self.text[self.caret : min(line_end, self.caret + 64)])))
        return self.caret + len(cluster)

    def line_start(self) -> int:
        return self.text.rfind("\n", 0, self.caret) + 1

    def line_end(self) -> int:
        end = self.text.find("\n", self.caret)
        return len(self.text) if end < 0 else end

    def word_left(self) -> int:
        at = self.caret
        while at and not _is_word(self.text[at - 1]):
            at -= 1
        while at and _is_word(self.text[at - 1]):
            at -= 1
        return at

    def blank_left(self) -> int:
        """Where the word before the caret begins, as a shell counts words: by blanks."""
        at = self.caret
        while at and self.text[at - 1].isspace():
            at -= 1
        while at and not self.text[at - 1].isspace():
            at -= 1
        return at

    def word_right(self) -> int:
        at = self.caret
        while at < len(self.text) and not _is_word(self.text[at]):
            at += 1
        while at < len(self.text) and _is_word(self.text[at]):
            at += 1
        return at

    def vertical(self, step: int, columns: int, labels: Labels, *, selecting: bool = False) -> Editor | None:
        """A row further up or down, in the column where it began; None: there is no row."""
        rows = wrapped(self.text, columns, labels)
        number = row_of(rows, self.caret)
        if not 0 <= number + step < len(rows):
            return None
        column = self.column
        if column is None:
            column = _width(self.text[rows[number].start : self.caret], labels)
        target = rows[number + step]
        to = place_in(self.text, target, column, labels)
        return replace(self.moved(to, selecting=selecting), column=column)


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


NOTHING = Editor()

# ── rows on the screen ──


@dataclass(frozen=True, slots=True)
class TextRow:
    """From where to where of the text a row goes. The blank or line end after it is not on it."""

    start: int
    end: int


def no_labels(token: str) -> str:
    return "[…]"


@lru_cache(maxsize=8)
def wrapped(text: str, columns: int, labels: Labels = no_labels) -> tuple[TextRow, ...]:
    """The rows of a text, broken after a blank where there is one. The caret may stand behind the end of each."""
    rows: list[TextRow] = []
    start = 0
    for line in text.split("\n"):
        rows += _line_rows(line, start, max(columns, 2), labels)
        start += len(line) + 1
    return tuple(rows)


def _line_rows(line: str, offset: int, columns: int, labels: Labels) -> list[TextRow]:
    if len(line) < columns and line.isascii() and "\t" not in line:
        return [TextRow(offset, offset + len(line))]
    rows: list[TextRow] = []
    start = at = used = 0
    blank = -1
    for cluster, needed in cells(line, labels):
        if used + needed > columns and at > start:
            end = blank if blank > start else at
            rows.append(TextRow(offset + start, offset + end))
            used = _width(line[end:at], labels)
            start, blank = end, -1
        at += len(cluster)
        used += needed
        if cluster.isspace():
            blank = at
    return [*rows, TextRow(offset + start, offset + len(line))]


def cells(text: str, labels: Labels) -> list[tuple[str, int]]:
    """The clusters of a line with their columns; a token has those of its label."""
    found = []
    for cluster, columns in clusters(text):
        if cluster == "\t":
            columns = TAB
        elif is_token(cluster[0]):
            columns = width(labels(cluster[0]))
        found.append((cluster, columns))
    return found


def _width(text: str, labels: Labels) -> int:
    return sum(columns for _, columns in cells(text, labels))


def row_of(rows: tuple[TextRow, ...], caret: int) -> int:
    """The row that the caret stands on: where a line was broken, the later one."""
    low, high = 0, len(rows) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if rows[middle].start <= caret:
            low = middle
        else:
            high = middle - 1
    return low


def place_in(text: str, row: TextRow, column: int, labels: Labels) -> int:
    """The place of the text nearest to a column of a row."""
    at, used = row.start, 0
    for cluster, columns in cells(text[row.start : row.end], labels):
        if used + columns > column:
            break
        at, used = at + len(cluster), used + columns
    is_broken = at == row.end < len(text) and text[row.end] != "\n"
    return at - 1 if is_broken and at > row.start else at


def caret_column(text: str, row: TextRow, caret: int, labels: Labels) -> int:
    return _width(text[row.start : caret], labels)
