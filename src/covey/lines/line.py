"""A line as a value: pieces of text, each with a style that is named by its meaning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from covey.lines.pictures import PictureRow

Style = Literal[
    "",
    "dim",
    "strong",
    "emphasis",
    "struck",
    "heading",
    "marker",
    "quote",
    "link",
    "code",
    "keyword",
    "string",
    "number",
    "comment",
    "added",
    "removed",
    "success",
    "warning",
    "error",
    "tool",
    "key",
    "border",
    "bar",
    "accent",
    "selected",
    "found",
]
"""What a piece of text is. A theme says how it looks; without one it looks like any other text."""
STYLES: tuple[Style, ...] = get_args(Style)


@dataclass(frozen=True, slots=True)
class Span:
    text: str
    style: Style = ""
    link: str = ""
    """Where this leads to: a URL, or a place in the workspace (`src/a.py:12`), of which a face makes one. Not shown."""
    picture: PictureRow | None = None
    """A row of a picture, in the place of the blanks that the text is."""


@dataclass(frozen=True, slots=True)
class StyledLine:
    """What stands on one row. It has no line end in it, and may be wider than any screen: see `wrap` and `cut_line`."""

    spans: tuple[Span, ...] = ()
    source: int = field(default=-1, compare=False)
    """Where the line that it shows, alone or with other rows, begins in the text that it was made of. -1: in none."""

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


EMPTY = StyledLine()


def line(*pieces: str | Span) -> StyledLine:
    """A line of these pieces; a mere string has no style."""
    return StyledLine(tuple(piece if isinstance(piece, Span) else Span(piece) for piece in pieces if piece != ""))
