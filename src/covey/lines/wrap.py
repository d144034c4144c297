"""Long lines → rows of a given width. Pure, and linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import copy
from itertools import groupby

from covey.lines.line import Span, Style, StyledLine
from covey.lines.widths import clusters, width

_TOKENS = re.compile(
    r"\s+|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
    r"\U00020000-\U0003fffd]|[^\s\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60"
    r"\uffe0-\uffe6\U00020000-\U0003fffd]+"
)
"""Blanks, words, and single characters of scripts that are written without blanks."""
NARROWEST = 8
"""Columns that text gets at least, however deep it is indented: fewer cannot be read."""


class Rows:
    """Fills rows with what is added to it. A row that is full does not change any more."""

    def __init__(self, columns: int, first: Iterable[Span] = (), rest: Iterable[Span] = ()) -> None:
        self._rest = tuple(rest)
        self._indent = sum(width(span.text) for span in self._rest)
        self._columns = max(columns, self._indent + NARROWEST)
        self._row: list[Span] = list(first)
        self._used = sum(width(span.text) for span in self._row)
        self._is_begun = False
        """There is text on the row beside its indentation."""
        self._word: list[Span] = []
        self._word_width = 0
        self._blank = Span("")
        """Before the word; it is dropped where a row ends."""

    def add(self, spans: Iterable[Span]) -> list[StyledLine]:
        """Put more text after what is there; gives the rows that are full now."""
        full: list[StyledLine] = []
        for span in spans:
            for token in _TOKENS.findall(span.text):
                if token.isspace():
                    full += self._end_word()
                    self._blank = Span(self._blank.text + token, span.style, span.link)
                elif _stands_alone(token):
                    full += self._end_word()
                    self._put_token(token, span)
                    full += self._end_word()
                else:
                    self._put_token(token, span)
        return full

    def end(self) -> list[StyledLine]:
        """No more text: the last rows, which may be one without text."""
        return [*self._end_word(), self._take()]

    @property
    def open_row(self) -> StyledLine:
        """The row that is being filled, with the word that may still go on."""
        return StyledLine((*self._row, self._blank, *self._word))

    def copy(self) -> Rows:
        """One that goes its own way from here."""
        made = copy(self)
        made._row, made._word = list(self._row), list(self._word)
        return made

    def _put_token(self, token: str, span: Span) -> None:
        self._word.append(Span(token, span.style, span.link))
        self._word_width += width(token)

    def _end_word(self) -> list[StyledLine]:
        if not self._word:
            return []
        full: list[StyledLine] = []
        blank = width(self._blank.text)
        if self._is_begun and self._used + blank + self._word_width > self._columns:
            full.append(self._take())
        elif blank:
            self._row.append(self._blank)
            self._used += blank
        for span in self._word:
            full += self._place(span)
        self._word, self._word_width, self._blank = [], 0, Span("")
        return full

    def _place(self, span: Span) -> Iterator[StyledLine]:
        """A word that is wider than a row is taken apart where the row ends."""
        needed = width(span.text)
        if self._used + needed > self._columns:
            begun: list[str] = []
            for cluster, columns in clusters(span.text):
                if self._used + columns > self._columns and (self._is_begun or begun):
                    self._row.append(Span("".join(begun), span.style, span.link))
                    yield self._take()
                    begun = []
                begun.append(cluster)
                self._used += columns
            span, needed = Span("".join(begun), span.style, span.link), 0
        self._row.append(span)
        self._used += needed
        self._is_begun = True

    def _take(self) -> StyledLine:
        row = StyledLine(_joined(self._row))
        self._row, self._used, self._is_begun = list(self._rest), self._indent, False
        return row


def _joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same in as few pieces as there can be."""
    joined: list[Span] = []
    for (style, link), same in groupby(spans, key=lambda span: (span.style, span.link)):
        joined.append(Span("".join(span.text for span in same), style, link))
    return tuple(joined)


def _stands_alone(token: str) -> bool:
    return len(token) == 1 and not token.isascii() and width(token) == 2


def wrap(
    spans: Iterable[Span], columns: int, first: Iterable[Span] = (), rest: Iterable[Span] = ()
) -> list[StyledLine]:
    """The rows of a text; `first` comes before the first row, `rest` before every other."""
    rows = Rows(columns, first, rest)
    return [*rows.add(spans), *rows.end()]


def broken(text: str, columns: int, style: Style) -> list[StyledLine]:
    """The rows of a text in which every blank counts, such as code: it is cut wherever a row ends."""
    return broken_line((Span(text, style),), columns)


def broken_line(spans: Iterable[Span], columns: int) -> list[StyledLine]:
    """The same for text with several styles."""
    spans = tuple(spans)
    if sum(width(span.text) for span in spans) <= columns:
        return [StyledLine(spans)]
    rows: list[StyledLine] = []
    row: list[Span] = []
    used = 0
    for span in spans:
        begun: list[str] = []
        for cluster, needed in clusters(span.text):
            if used + needed > columns and (row or begun):
                rows.append(StyledLine((*row, Span("".join(begun), span.style, span.link))))
                row, begun, used = [], [], 0
            begun.append(cluster)
            used += needed
        if begun:
            row.append(Span("".join(begun), span.style, span.link))
    return [*rows, StyledLine(tuple(row))]
