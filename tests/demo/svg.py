"""Rows of a terminal → a picture that every browser shows, and in which text can be selected."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from covey.lines.widths import clusters, width

CELL, ROW, MARGIN, FONT_PX = 8.4, 18, 14, 14
FONT = "'DejaVu Sans Mono', Menlo, Consolas, 'Noto Sans Mono CJK JP', monospace"
GROUNDS = {"dark": ("#16181d", "#d6d8dc"), "light": ("#fdfdfb", "#24262b")}
_LEVELS = (0, 95, 135, 175, 215, 255)

Row = list[tuple[str, str]]


def picture(rows: Sequence[Row], columns: int, theme: str) -> str:
    ground, ink = GROUNDS[theme]
    wide, high = columns * CELL + 2 * MARGIN, len(rows) * ROW + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high}" width="{wide:.0f}" height="{high}">',
        f'<rect width="100%" height="100%" rx="8" fill="{ground}"/>',
        f'<g font-family="{FONT}" font-size="{FONT_PX}" fill="{ink}" style="white-space:pre">',
        *(_row(row, MARGIN + (number + 0.75) * ROW) for number, row in enumerate(rows)),
        "</g></svg>",
    ]
    return "\n".join(line for line in lines if line) + "\n"


def _row(row: Row, y: float) -> str:
    """Each piece of one style stands where its column is, so that no font can push it away."""
    pieces, column = [], 0
    for style, chars in groupby(row, key=lambda cell: cell[1]):
        text = "".join(char for char, _ in chars)
        if ground := _ground(style):
            box = f'x="{MARGIN + column * CELL:.1f}" y="{y - 0.75 * ROW:.1f}" width="{width(text) * CELL:.1f}"'
            pieces.append(f'<rect {box} height="{ROW}" fill="{ground}"/>')
        if shown := text.strip():  # a browser may drop blanks at the ends, and would stretch the rest over them
            x, length = MARGIN + (column + width(text) - width(text.lstrip())) * CELL, width(shown) * CELL
            fit = (
                f' textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs"' if len(list(clusters(shown))) > 1 else ""
            )
            pieces.append(f'<text x="{x:.1f}" y="{y:.1f}"{_look(style)}{fit}>{_unbroken(shown)}</text>')
        column += width(text)
    return "".join(pieces)


def _unbroken(text: str) -> str:
    """Several blanks in a row stay several."""
    return escape(text).replace("  ", "\u00a0\u00a0")


def _look(style: str) -> str:
    codes = style.split(";") if style else []
    look = ""
    if "5" in codes[1:2] or "38" in codes:
        look += f' fill="{_colour(int(codes[codes.index("38") + 2]))}"'
        codes = codes[: codes.index("38")]
    look += ' font-weight="bold"' if "1" in codes else ""
    look += ' font-style="italic"' if "3" in codes else ""
    return look + (' text-decoration="underline"' if "4" in codes else "")


def _ground(style: str) -> str:
    """The colour behind the text; '' if it has none of its own."""
    codes = style.split(";")
    return _colour(int(codes[codes.index("48") + 2])) if "48" in codes else ""


def _colour(number: int) -> str:
    """Of the 256 of a terminal: 16 to 231 are a cube, then come greys."""
    if number >= 232:
        return "#" + f"{8 + (number - 232) * 10:02x}" * 3
    rest = number - 16
    red, green, blue = rest // 36, rest // 6 % 6, rest % 6
    return f"#{_LEVELS[red]:02x}{_LEVELS[green]:02x}{_LEVELS[blue]:02x}"
