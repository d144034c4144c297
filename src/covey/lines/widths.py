"""How many columns of a terminal a text takes. What is drawn as one character (a cluster) is never taken apart.

The tables are those of the running Python. Columns of characters that terminals disagree about (ambiguous ones) are
counted as one, as terminals do unless they are set up otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from unicodedata import category, east_asian_width

from covey.lines.line import Span, StyledLine

TAB = 4
"""Columns from one tab stop to the next: as wide as most code is indented."""
_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"
_WIDE_WHEN_NEW = ((0x1F300, 0x1F64F), (0x1F680, 0x1F6FF), (0x1F900, 0x1FAFF), (0x20000, 0x3FFFD))
"""Blocks whose characters are wide, also those that this Python does not know yet. Of others it would guess wrong."""


def width(text: str) -> int:
    """The columns that a text takes, which has neither tabs nor control characters."""
    return len(text) if text.isascii() else sum(columns for _, columns in clusters(text))


def clusters(text: str) -> Iterator[tuple[str, int]]:
    """What is drawn as one character, one after the other, each with its columns."""
    if text.isascii():
        for char in text:
            yield char, 1
        return
    at = 0
    while at < len(text):
        end, columns = _cluster(text, at)
        yield text[at:end], columns
        at = end


def _cluster(text: str, at: int) -> tuple[int, int]:
    """Where the cluster that begins here ends, and its columns."""
    columns, end = _columns(text[at]), at + 1
    if _is_flag_half(text[at]) and text[end : end + 1] and _is_flag_half(text[end]):
        return end + 1, 2
    while end < len(text):
        char = text[end]
        if char == _JOINER and columns == 2 and end + 1 < len(text):
            end += 2
        elif char == _EMOJI_STYLE:
            columns, end = max(columns, 2), end + 1
        elif 0x1F3FB <= ord(char) <= 0x1F3FF and columns == 2:
            end += 1
        elif _joins(char):
            columns, end = columns + _columns(char), end + 1
        else:
            break
    return end, columns


def _is_flag_half(char: str) -> bool:
    return 0x1F1E6 <= ord(char) <= 0x1F1FF


@lru_cache(maxsize=4096)
def _joins(char: str) -> bool:
    """It is drawn on, or together with, the character before it."""
    return category(char) in ("Mn", "Me", "Mc") or _is_medial(char) or char in ("\u200c", _JOINER)


def _is_medial(char: str) -> bool:
    """The second or third letter of a Korean syllable."""
    return 0x1160 <= ord(char) <= 0x11FF or 0xD7B0 <= ord(char) <= 0xD7FB


@lru_cache(maxsize=4096)
def _columns(char: str) -> int:
    kind = category(char)
    if kind in ("Mn", "Me", "Cf", "Cc") or _is_medial(char):
        return 0
    if kind == "Cn":
        return 2 if any(first <= ord(char) <= last for first, last in _WIDE_WHEN_NEW) else 1
    return 2 if east_asian_width(char) in "WF" else 1


def expanded(text: str, column: int = 0) -> str:
    """The text with spaces instead of tabs, if it begins in this column."""
    if "\t" not in text:
        return text
    done: list[str] = []
    for piece in text.split("\t"):
        done.append(piece)
        column += width(piece)
        done.append(" " * (fill := TAB - column % TAB))
        column += fill
    return "".join(done[:-1])


def head(text: str, columns: int) -> str:
    """As much of the beginning as fits. Looks at no more than that."""
    if text.isascii():
        return text[: max(columns, 0)]
    end = 0
    for cluster, needed in clusters(text):
        if needed > columns:
            break
        columns -= needed
        end += len(cluster)
    return text[:end]


def cut(text: str, columns: int) -> str:
    """The text, or its beginning and a mark that there is more. A text much too long is not measured to its end."""
    begun = head(text, columns)
    return text if len(begun) == len(text) else head(text, columns - 1) + "…" * (columns > 0)


def cut_line(line: StyledLine, columns: int) -> StyledLine:
    """The same for a line."""
    spans: list[Span] = []
    for span in line.spans:
        if len(head(span.text, columns)) < len(span.text):
            spans.append(Span(cut(span.text, columns), span.style, span.link))
            break
        spans.append(span)
        columns -= width(span.text)
    return StyledLine(tuple(spans), line.source)
