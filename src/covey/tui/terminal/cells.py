"""A row as cells: what stands in each column. Pure; whatever others wrote is made plain on its way into a cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal
from unicodedata import east_asian_width

from covey.lines.line import Span, StyledLine
from covey.lines.plain_text import plain
from covey.lines.theme import Theme
from covey.lines.widths import clusters, expanded, width

if TYPE_CHECKING:
    from covey.lines.pictures import PictureRow
    from covey.tui.terminal.pictures import Pictures

LONGEST_LINK = 2048
"""Terminals take no longer ones."""
PLACEHOLDER = "\U0010eeee"
"""The character that stands for a cell of a picture, in terminals that know it."""
_SCHEMES = ("http://", "https://", "mailto:", "file://")


@dataclass(frozen=True, slots=True)
class Pen:
    """How a cell looks: the parameters of SGR, and where it leads to."""

    code: str = ""
    link: str = ""
    picture: int = 0
    """Of which picture this is a cell, where one is drawn over blanks."""


NO_PEN = Pen()
Cell = tuple[str, Pen]
"""The cluster that begins here; '' is the second column of the one before."""
BLANK: Cell = (" ", NO_PEN)


@dataclass(frozen=True, slots=True)
class DrawnPiece:
    """Text with one look. None of its characters moves the cursor."""

    text: str
    pen: Pen


def pieces(line: StyledLine, theme: Theme, has_links: bool, pictures: Pictures = "") -> Iterator[DrawnPiece]:
    column = 0
    for span in line.spans:
        if span.picture and pictures:
            column += len(span.text)
            yield _of_picture(span.picture, pictures)
            continue
        text = expanded(plain(span.text).replace("\n", " "), column)
        if text:
            column += width(text)
            yield DrawnPiece(text, _pen(span, theme, has_links))


def _of_picture(shown: PictureRow, pictures: Pictures) -> DrawnPiece:
    from covey.tui.terminal.pictures import colour, placeholders  # late: few screens have one

    if pictures == "iterm":
        return DrawnPiece(" " * shown.picture.columns, Pen(picture=shown.picture.id))
    return DrawnPiece(placeholders(shown), Pen(colour(shown.picture)))


def _pen(span: Span, theme: Theme, has_links: bool) -> Pen:
    return _the_pen(theme.codes.get(span.style, ""), span.link if has_links else "")


@lru_cache(maxsize=1024)
def _the_pen(code: str, link: str) -> Pen:
    """One object for each look, so that cells are compared fast."""
    if not link.startswith(_SCHEMES) or len(link) > LONGEST_LINK:
        return Pen(code)
    # In an address whatever is no printable ASCII is written as its bytes, so it cannot end the sequence.
    safe = "".join(c if "!" <= c <= "~" else "".join(f"%{b:02X}" for b in c.encode("utf-8", "replace")) for c in link)
    return Pen(code, safe)


def cells(line: StyledLine, theme: Theme, has_links: bool, columns: int, pictures: Pictures = "") -> list[Cell]:
    """Exactly as many as the screen has columns. A wide character that does not fit at the end is a blank."""
    row: list[Cell] = []
    for piece in pieces(line, theme, has_links, pictures):
        if piece.text.isascii():
            row += [(char, piece.pen) for char in piece.text[: columns - len(row)]]
        else:
            for cluster, needed in clusters(piece.text):
                if needed == 0:
                    continue  # a mark without anything to stand on: no terminal agrees with another on those
                if len(row) + needed > columns:
                    break
                row.append((cluster, piece.pen))
                row += [("", piece.pen)] * (needed - 1)
        if len(row) >= columns:
            break
    return row + [BLANK] * (columns - len(row))


Certainty = Literal["sure", "ambiguous", "disputed"]


@lru_cache(maxsize=2048)
def certainty(cluster: str) -> Certainty:
    """Whether terminals give it the same columns.

    Ambiguous ones (lines, arrows, Cyrillic) are narrow unless somebody has set up his terminal otherwise; whatever
    consists of several characters, or is an emoji, each terminal counts by a table of its own.
    """
    if cluster.isascii() or cluster[0] == PLACEHOLDER:
        return "sure"
    if len(cluster) > 1:
        return "disputed"
    kind = east_asian_width(cluster)
    if kind in ("W", "F"):
        return "sure" if "\u2e80" <= cluster <= "\uffe6" or cluster >= "\U00020000" else "disputed"
    return "ambiguous" if kind == "A" else "sure"


def is_border(cluster: str) -> bool:
    """A line or corner of a frame: it has to stand exactly below the one above."""
    return "\u2500" <= cluster <= "\u259f"
