"""From what is on a row back to the text that it was made of, so that what is copied is what was written.

Rows show a line of the source without its marks, with blanks for tabs, behind a gutter, and wrapped. Nothing of that is
written down while it is rendered: where somebody selects, the characters of the rows are found again in the source.
"""

from __future__ import annotations

from collections.abc import Sequence

from covey.lines.line import StyledLine
from covey.lines.widths import clusters

AHEAD = 8
"""Characters that may stand between two that are shown next to each other: marks, such as those around a link."""

Piece = tuple[int, int]
"""From where to where in the source."""


def origins(rows: Sequence[StyledLine], source: str, start: int, end: int, gutter: int = 0) -> list[list[Piece]]:
    """For each row, the piece of `source` that each of its columns shows.

    The rows show what is between `start` and `end`. What stands for nothing in the source, such as the first `gutter`
    columns, has an empty piece there.
    """
    at = start
    found: list[list[Piece]] = []
    for row in rows:
        pieces: list[Piece] = []
        for cluster, columns in clusters(row.text):
            near = _near(cluster, source, at, end) if len(pieces) >= gutter else -1
            if near < 0:
                pieces += [(at, at)] * columns
            elif source[near] == "\t" != cluster:
                pieces += [(near, near + 1)] * columns  # it stays open: the next blank may be of the same tab
                at = near
            else:
                pieces += [(near, near + len(cluster))] * columns
                at = near + len(cluster)
        found.append(pieces)
    return found


def _near(cluster: str, source: str, at: int, end: int) -> int:
    """Where this is next, -1 if it is not near. A blank may only fill: it is not looked for behind words."""
    if cluster != " ":
        return source.find(cluster, at, min(at + AHEAD + len(cluster), end))
    for near in range(at, min(at + AHEAD, end)):
        if source[near] in " \t":
            return near
        if source[near].isalnum():
            break
    return -1
