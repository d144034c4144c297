"""Marks on rows: what is selected, what was found, which item is meant. A row without a mark stays the same object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from covey.lines.line import Span, Style, StyledLine
from covey.lines.widths import clusters, width
from covey.tui.transcript.window import RowSpot


@dataclass(frozen=True, slots=True)
class MarkedRange:
    """Columns of a row, from one to the one before another, and how they look."""

    first: int
    end: int
    style: Style


def found_in(row: StyledLine, words: str, style: Style) -> list[MarkedRange]:
    """Where the words stand on this row, whatever their case."""
    words = words.strip()
    if not words:
        return []
    text, wanted = row.text, words.lower()
    lowered = text.lower()
    if len(lowered) != len(text):  # there are letters that become two: their places would be wrong
        lowered, wanted = text, words
    found: list[MarkedRange] = []
    at = lowered.find(wanted)
    while at >= 0:
        first = width(text[:at])
        found.append(MarkedRange(first, first + width(text[at : at + len(wanted)]), style))
        at = lowered.find(wanted, at + len(wanted))
    return found


def marked(row: StyledLine, ranges: Sequence[MarkedRange]) -> StyledLine:
    """The row with these looks over its own; later ones win."""
    if not ranges:
        return row
    spans: list[Span] = []
    column = 0
    for span in row.spans:
        if span.picture:
            spans.append(span)
            column += len(span.text)
            continue
        for cluster, columns in clusters(span.text):
            style = next((r.style for r in reversed(ranges) if r.first <= column < r.end), span.style)
            if spans and (spans[-1].style, spans[-1].link) == (style, span.link):
                spans[-1] = Span(spans[-1].text + cluster, style, span.link)
            else:
                spans.append(Span(cluster, style, span.link))
            column += columns
    return StyledLine(tuple(spans), row.source)


def meant(row: StyledLine) -> StyledLine:
    """A row of the item that the keyboard is on: its first column says so."""
    first, *rest = row.spans or (Span(" "),)
    begun = first.text[:1]
    mark = Span("▎", "accent") if begun in ("", " ", "┃") else Span(begun, "selected")
    return StyledLine((mark, Span(first.text[1:], first.style, first.link), *rest), row.source)


class RowMarker:
    """Puts marks on rows; a row with the same marks as before is the same object as before."""

    def __init__(self, kept: int = 500) -> None:
        self._kept = kept
        self._known: dict[RowSpot, tuple[StyledLine, list[MarkedRange], bool, StyledLine]] = {}

    def mark(self, spot: RowSpot, row: StyledLine, marks: list[MarkedRange], *, is_meant: bool) -> StyledLine:
        if not marks and not is_meant:
            return row
        known = self._known.get(spot)
        if known and known[0] is row and known[1:3] == (marks, is_meant):
            return known[3]
        made = marked(row, marks)
        made = meant(made) if is_meant else made
        if len(self._known) > self._kept:
            self._known.clear()
        self._known[spot] = row, marks, is_meant, made
        return made
