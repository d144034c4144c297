"""What commands list on stdout: rows and sentences as wide as the terminal. Elsewhere a line stays one, and whole."""

from __future__ import annotations

import re
import sys

from covey.cli.screen import columns_of, wrapped
from covey.lines.plain_text import plain
from covey.lines.widths import cut, expanded, width

LEAST = 16
"""Columns of a text that is cut: fewer do not tell it from others."""
BELOW = 4
"""Columns by which what has no room on its row is indented below it."""


def row(before: str, text: str, after: str = "") -> str:
    """One row of a list. Of a text that does not fit between what is around it, the beginning is shown, and a sign."""
    if not sys.stdout.isatty():
        return f"{before}{text}{after}"
    columns = columns_of(sys.stdout) - width(after)
    room = columns - width(before)
    if room < min(width(text), LEAST):
        indent = len(before) - len(before.lstrip()) + BELOW
        return f"{_by_columns(before, indent)}\n{' ' * indent}{cut(text, max(columns - indent, LEAST))}{after}"
    return f"{before}{cut(text, room)}{after}"


def _by_columns(text: str, indent: int) -> str:
    """The beginning of a row that is too wide alone: what has no room goes on below, a column at a time."""
    first, *others = re.split(r" {2,}", text.strip())
    rows = [" " * (indent - BELOW) + first]
    for column in others:
        longer = f"{rows[-1]}  {column}"
        if width(longer) < columns_of(sys.stdout):
            rows[-1] = longer
        else:
            rows.append(" " * indent + column)
    return "\n".join(map(sentences, rows))


def sentences(text: str) -> str:
    """Lines of which every word counts: those that do not fit go on below, indented."""
    if not sys.stdout.isatty():
        return text
    return "\n".join(piece.text for each in text.split("\n") for piece in wrapped(each, columns_of(sys.stdout)))


def literal(text: str) -> str:
    """Lines of which every blank counts, such as a command: one that does not fit goes on below, in its own column."""
    if not sys.stdout.isatty():
        return text
    from covey.lines.wrap import broken  # late: most lists have none

    rows: list[str] = []
    for each in map(expanded, text.split("\n")):
        indent = " " * (len(each) - len(each.lstrip()))
        room = max(columns_of(sys.stdout) - len(indent), LEAST)
        rows += [indent + piece.text for piece in broken(each[len(indent) :], room, "")]
    return "\n".join(rows)


def headed(text: str) -> str:
    """A first line in words, and below it such lines."""
    head, line_end, body = text.partition("\n")
    return sentences(head) + line_end + literal(body)


def room_beside(taken: int) -> int:
    """Columns that are left in a row of which so many are taken; elsewhere there is room for everything."""
    return max(columns_of(sys.stdout) - taken, 0) if sys.stdout.isatty() else sys.maxsize


def tell(text: str) -> None:
    """Print what a command has done, in whole words."""
    print(sentences(plain(text)))


def padded(text: str, columns: int) -> str:
    """In a column as wide as this, however wide its characters are."""
    return text + " " * (columns - width(text))
