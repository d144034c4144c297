"""The lines around a change, as view shows them: who made it need not view the file again. Pure."""

from __future__ import annotations

from collections.abc import Sequence

AROUND = 3
"""Lines before and after each change."""
LINES_LIMIT = 60
"""Of all places together: enough for what an edit writes, far less than the file."""
LINE_CHARACTERS = 300

Span = tuple[int, int]
"""The first of the changed lines, and the one after the last, counted from 0; both the same where lines are gone."""


def around(text: str, spans: Sequence[Span]) -> str:
    """The changed lines of a text and those around them, numbered; '' if there is nothing to show."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    shown = _merged([(max(0, start - AROUND), min(len(lines), end + AROUND)) for start, end in spans])
    places: list[str] = []
    left = LINES_LIMIT
    for start, end in shown:
        if left <= 0:
            places.append("[... more places were changed]")
            break
        cut = min(end, start + left)
        left -= cut - start
        numbered = [_numbered(number, lines[number]) for number in range(start, cut)]
        more = [f"[... {end - cut} more lines]"] if cut < end else []
        places.append("\n".join([*numbered, *more]))
    return "\n   ...\n".join(place for place in places if place)


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _numbered(number: int, line: str) -> str:
    line = line.rstrip("\r")
    cut = f"{line[:LINE_CHARACTERS]} [... the line goes on]" if len(line) > LINE_CHARACTERS else line
    return f"{number + 1:6}\t{cut}"
