"""Keys with what they do, as rows of an ask. Pure."""

from __future__ import annotations

from covey.lines.line import Span, StyledLine
from covey.lines.widths import width
from covey.tui.face.keys import KeyTable


def key_spans(keys: KeyTable, *intents: tuple[str, str]) -> list[Span]:
    spans: list[Span] = []
    for intent, words in intents:
        spans += [Span(keys.shown(intent), "key"), Span(f" {words}   ")]
    return spans


def flowed(spans: list[Span], columns: int) -> list[StyledLine]:
    """Keys with their words, as many on a row as fit; a key stays with its word."""
    rows: list[StyledLine] = []
    row: list[Span] = []
    used = 0
    for key, words in zip(spans[::2], spans[1::2], strict=True):
        needed = width(key.text) + width(words.text.rstrip())
        if row and used + needed > columns:
            rows.append(StyledLine(tuple(row)))
            row, used = [], 0
        # The blanks after the last word of a row would be cut with a sign that something is missing.
        room = max(columns - used - width(key.text), width(words.text.rstrip()))
        row += [key, Span(words.text[:room], words.style)]
        used += width(key.text) + width(words.text)
    return [*rows, StyledLine(tuple(row))]
