"""What was written, for cells of the screen: no padding, no breaks where a row ends, no gutter, no signs of ours."""

from __future__ import annotations

import re
from collections.abc import Sequence

from covey.lines.line import StyledLine
from covey.lines.source import origins
from covey.lines.widths import clusters, width
from covey.tui.transcript.pieces import Piece

_GUTTERS = {"prompt": 2, "thought": 4, "text": 4, "file": 4, "markdown": 2, "diff": 6}
"""Columns before the text, by kind of piece; of a diff, those of its number."""
_NUMBERS = re.compile(r"^ *\d+\t", re.MULTILINE)
"""Before the lines of a file, for the model."""
_GUTTER = re.compile(r"  [│┊] | *\d+ ")
"""What stands before a line that a folded item shows: a bar, or its number."""


def copied(piece: Piece, rows: Sequence[StyledLine], first: tuple[int, int], last: tuple[int, int]) -> str:
    """From one cell (row, column) of a piece to another, that one included."""
    if piece.kind == "gap":
        return ""
    if piece.kind == "picture":
        return piece.text
    if last[0] < len(rows) and last[1] >= width(rows[last[0]].text):
        last = last[0], -1
    texts: list[str] = []
    at = first[0]
    while at <= min(last[0], len(rows) - 1):
        end = _block_end(rows, at)
        begin = _block_begin(rows, at)
        columns = first[1] if at == first[0] else 0, last[1] if end > last[0] else -1
        if piece.kind == "head" or rows[at].source < 0:
            texts.append(_as_shown(rows[at], *columns))
            at += 1
            continue
        texts.append(_from_source(piece, rows, (begin, end), (at, columns[0]), (min(end - 1, last[0]), columns[1])))
        at = end
    text = "\n".join(texts)
    return _NUMBERS.sub("", text) if piece.kind == "file" else text


def _block_begin(rows: Sequence[StyledLine], at: int) -> int:
    """The first of the rows that show the same line."""
    while at > 0 and rows[at].source >= 0 and rows[at - 1].source == rows[at].source:
        at -= 1
    return at


def _block_end(rows: Sequence[StyledLine], at: int) -> int:
    end = at + 1
    while end < len(rows) and rows[at].source >= 0 and rows[end].source == rows[at].source:
        end += 1
    return end


def _as_shown(row: StyledLine, first: int, last: int) -> str:
    """A row of ours, such as a headline: as it is on the screen. A line in it keeps its indentation."""
    gutter = row.spans[0].text if len(row.spans) > 1 and _GUTTER.fullmatch(row.spans[0].text) else ""
    column, shown = 0, []
    for cluster, columns in clusters(row.text):
        if column >= max(first, width(gutter)) and (last < 0 or column <= last):
            shown.append(cluster)
        column += columns
    text = "".join(shown)
    return text.rstrip() if gutter else text.strip()


def _from_source(
    piece: Piece, rows: Sequence[StyledLine], block: tuple[int, int], first: tuple[int, int], last: tuple[int, int]
) -> str:
    """`last` may have the column -1: to the end of its row."""
    begin, end = block
    start = rows[begin].source
    stop = rows[end].source if end < len(rows) else piece.segment.end
    source = piece.text
    stop = stop if stop > start else piece.segment.end
    gutter = _GUTTERS.get(piece.kind, 0)
    is_whole = first[0] == begin and first[1] <= gutter and last[0] == end - 1 and last[1] < 0
    if is_whole:
        return source[start:stop].rstrip("\n")
    found = origins(rows[begin:end], source, start, stop, gutter)
    pieces = [
        place
        for number, row in enumerate(found, begin)
        for column, place in enumerate(row)
        if first[0] <= number <= last[0]
        and (number > first[0] or column >= first[1])
        and (number < last[0] or last[1] < 0 or column <= last[1])
        and place[0] < place[1]
    ]
    if not pieces:
        return ""
    reaches_end = last[0] == end - 1 and last[1] < 0
    starts = start if first[0] == begin and first[1] < gutter else pieces[0][0]
    return source[starts:stop].rstrip("\n") if reaches_end else source[starts : pieces[-1][1]]


def source_at(piece: Piece, rows: Sequence[StyledLine], row: int, column: int) -> int:
    """Which character of its source stands in a cell of a piece, or nearest before it in its row; -1: none does."""
    if not 0 <= row < len(rows) or rows[row].source < 0:
        return -1
    begin, end = _block_begin(rows, row), _block_end(rows, row)
    stop = rows[end].source if end < len(rows) else -1
    stop = stop if stop > rows[begin].source else piece.segment.end
    shown = origins(rows[begin:end], piece.text, rows[begin].source, stop, _GUTTERS.get(piece.kind, 0))[row - begin]
    before = [place[0] for place in shown[: column + 1] if place[0] < place[1]]
    return before[-1] if before else next((place[0] for place in shown if place[0] < place[1]), -1)


def cells_of(piece: Piece, rows: Sequence[StyledLine], start: int, end: int) -> dict[int, tuple[int, int]]:
    """The rows of a piece on which this part of its source is shown: each with its first column, and the one behind."""
    found: dict[int, tuple[int, int]] = {}
    at = 0
    while at < len(rows):
        last = _block_end(rows, at)
        begins, stops = rows[at].source, rows[last].source if last < len(rows) else -1
        stops = stops if stops > begins else piece.segment.end
        if 0 <= begins < end and stops > start:
            places = origins(rows[at:last], piece.text, begins, stops, _GUTTERS.get(piece.kind, 0))
            for number, row in enumerate(places, at):
                columns = [column for column, place in enumerate(row) if start <= place[0] < place[1] <= end]
                if columns:
                    found[number] = columns[0], columns[-1] + 1
        at = last
    return found
