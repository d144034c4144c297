"""Rows of pieces, kept while they are looked at: nothing is rendered twice as long as it stays on the screen.

What is kept is bounded by what is shown, and not by what there is. A row that has not changed is the very same object.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from covey.lines.line import Span, StyledLine
from covey.lines.markdown import MarkdownRows
from covey.lines.widths import cut_line, width
from covey.tui.transcript.look import MARGIN, Look, linked, piece_rows
from covey.tui.transcript.pieces import Piece, PieceKey

KEPT_ROWS = 2000
"""Some ten screens: going back and forth among them costs nothing."""


@dataclass(slots=True)
class _Rendered:
    piece: Piece
    rows: list[StyledLine]
    markdown: MarkdownRows | None = None
    """Of Markdown: what goes on where the piece ended when it was last looked at."""
    finished: list[StyledLine] = field(default_factory=list)


class Renderings:
    """The rows of pieces for one look. A piece that grows costs what it has grown by."""

    def __init__(self, kept_rows: int = KEPT_ROWS) -> None:
        self._look = Look(80)
        self._kept_rows = kept_rows
        self._known: dict[PieceKey, _Rendered] = {}
        """Those used last are at the end."""
        self._count = 0

    @property
    def row_count(self) -> int:
        """Of all that are kept."""
        return self._count

    def set_look(self, look: Look) -> None:
        if look != self._look:
            self._look = look
            self.clear()

    def clear(self) -> None:
        self._known.clear()
        self._count = 0

    def rows(self, piece: Piece) -> list[StyledLine]:
        key = piece.key
        known = self._known.pop(key, None)
        before = len(known.rows) if known else 0
        if known is None or not _shows_the_same(known.piece, piece):
            known = self._rendered(piece, known)
        self._known[key] = known
        self._count += len(known.rows) - before
        return known.rows

    def forget(self) -> None:
        """Let go of what was not looked at for the longest time. Call it when a screen is done."""
        while self._count > self._kept_rows and len(self._known) > 1:
            oldest = next(iter(self._known))
            self._count -= len(self._known.pop(oldest).rows)

    def _rendered(self, piece: Piece, known: _Rendered | None) -> _Rendered:
        if piece.kind == "markdown":
            return self._markdown(piece, known)
        rows = self._fitting(piece_rows(piece, self._look))
        return _Rendered(piece, _same(known.rows, rows) if known else rows)

    def _markdown(self, piece: Piece, known: _Rendered | None) -> _Rendered:
        """Finished rows stay; only what is new is read, and only what is open is rendered anew."""
        start, end = piece.segment.start, piece.segment.end
        if known and known.markdown and piece.text.startswith(known.piece.text) and end >= known.piece.segment.end:
            rows, fed, finished = known.markdown, known.piece.segment.end, known.finished
        else:
            rows, fed, finished = MarkdownRows(self._look.text, at=start, fence=piece.segment.fence), start, []
        finished += self._placed(rows.add(piece.text[fed:end]))
        shown = [*finished, *self._placed(rows.peek())]
        return _Rendered(piece, _same(known.rows, shown) if known else shown, rows, finished)

    def _placed(self, rows: list[StyledLine]) -> list[StyledLine]:
        margin = Span(MARGIN)
        placed = [
            StyledLine((margin, *linked(row.spans, self._look)), row.source) if row.spans else row for row in rows
        ]
        return self._fitting(placed)

    def _fitting(self, rows: list[StyledLine]) -> list[StyledLine]:
        """On a screen that is narrower than text can be, what does not fit is cut."""
        columns = self._look.columns
        return [row if width(row.text) <= columns else cut_line(row, columns) for row in rows]


def _shows_the_same(before: Piece, piece: Piece) -> bool:
    """Of a text, only what is between the ends of the piece counts."""
    if piece.kind == "gap":
        return True
    if piece.kind == "head":
        return before == piece
    if (before.kind, before.segment, before.place, before.is_open) != (
        piece.kind,
        piece.segment,
        piece.place,
        piece.is_open,
    ):
        return False
    if piece.kind == "prompt" and before.item != piece.item:  # what is known of it may stand beside it
        return False
    start, end = piece.segment.start, piece.segment.end
    return before.text is piece.text or before.text[start:end] == piece.text[start:end]


def _same(before: list[StyledLine], rows: list[StyledLine]) -> list[StyledLine]:
    """The rows, with the objects from before where they are equal."""
    return [
        old if old is row or (old == row and old.source == row.source) else row
        for old, row in zip(before, rows, strict=False)
    ] + rows[len(before) :]
