"""A cell of the transcript by what is written there, so that a selection outlives another width of the screen."""

from __future__ import annotations

from dataclasses import dataclass

from covey.tui.transcript.copying import cells_of, source_at
from covey.tui.transcript.course import Course
from covey.tui.transcript.window import RowName, RowSpot, Window


@dataclass(frozen=True, slots=True)
class TranscriptPoint:
    """A cell of the transcript, which stays the same while the screen moves over it."""

    item: str
    """The key of the item that is there."""
    row: RowName
    column: int


@dataclass(frozen=True, slots=True)
class TextAnchor:
    """What is written in a cell: a character of the text that its rows were made of. -1: a row of ours."""

    point: TranscriptPoint
    source: int


def anchored(point: TranscriptPoint, window: Window, course: Course) -> TextAnchor:
    """While the rows are still those that it was pointed at in."""
    spot = window.resolve(point.row)
    if spot is None:
        return TextAnchor(point, -1)
    return TextAnchor(point, source_at(course.piece(spot.spot), window.rows_at(spot.spot), spot.row, point.column))


def placed(anchor: TextAnchor, window: Window, course: Course) -> TranscriptPoint:
    """Where that is among the rows of now."""
    point = anchor.point
    spot = window.resolve(point.row)
    if spot is None or anchor.source < 0:
        return point
    piece = course.piece(spot.spot)
    cells = cells_of(piece, window.rows_at(spot.spot), anchor.source, anchor.source + 1)
    if not cells:
        return point
    row, (column, _) = next(iter(cells.items()))
    return TranscriptPoint(point.item, window.name(RowSpot(spot.entry, spot.piece, row)), column)
