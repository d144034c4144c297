"""A long text in segments that are rendered one by one: where each ends depends on nothing that comes after it.

So a text of any length costs what is looked at of it, and one that grows keeps all its segments but the last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LINES = 80
"""After so many, a segment ends at the next good place: about two screens."""
LONGEST = 8192
"""Characters after which it ends wherever it is, in the middle of a word if need be."""
_FENCE = re.compile(r" {0,12}(`{3,}|~{3,})[^`\n]*")


@dataclass(frozen=True, slots=True)
class Segment:
    start: int
    end: int
    """Behind its last character. Of the last segment of a text it moves while the text grows."""
    fence: str = ""
    """The first line of the fence in whose middle it begins."""


def more_segments(text: str, known: list[Segment], *, is_markdown: bool) -> list[Segment]:
    """All segments of a text; those known but the last are taken as they are. Looks only at what comes after them."""
    done = known[:-1]
    start, fence = (known[-1].start, known[-1].fence) if known else (0, "")
    while found := _end(text, start, fence, is_markdown=is_markdown):
        end, inside = found
        done.append(Segment(start, end, fence))
        start, fence = end, inside
    return [*done, Segment(start, len(text), fence)]


def _end(text: str, start: int, fence: str, *, is_markdown: bool) -> tuple[int, str] | None:
    """Where the segment ends that begins here, and the fence that goes on after it. None: it has not ended yet."""
    at, lines = start, 0
    last: tuple[int, str] | None = None
    while (end := text.find("\n", at, start + LONGEST)) >= 0:
        line, at, lines = text[at:end], end + 1, lines + 1
        if is_markdown:
            fence = _after(line, fence)
        last = at, fence
        if lines >= LINES and (not is_markdown or fence or not line.strip() or lines >= 2 * LINES):
            return last
    if len(text) - start < LONGEST:
        return None
    return last or (_blank_before(text, start, start + LONGEST), fence)


def _after(line: str, fence: str) -> str:
    """The fence after this line: the one it opens, the one it goes on, or none."""
    found = _FENCE.fullmatch(line)
    if not fence:
        return line if found else ""
    marks = fence.strip()
    marks = marks[: len(marks) - len(marks.lstrip(marks[0]))]
    closing = line.strip()
    is_end = len(closing) >= len(marks) and not closing.strip(marks[0])
    return "" if is_end else fence


def fences(text: str) -> list[tuple[int, int, str]]:
    """The fences of Markdown: from where to where each goes with its marks, and what is in it."""
    found: list[tuple[int, int, str]] = []
    at = begun = 0
    fence, code = "", list[str]()
    for line in text.split("\n"):
        before, fence = fence, _after(line, fence)
        if fence and not before:
            begun, code = at, []
        elif fence:
            code.append(line)
        elif before:
            found.append((begun, at + len(line), "\n".join(code)))
        at += len(line) + 1
    return [*found, (begun, len(text), "\n".join(code))] if fence else found


def last_code(text: str) -> str:
    """What is in the last fence of Markdown; '' if it has none."""
    return next((code for _, _, code in reversed(fences(text))), "")


def _blank_before(text: str, start: int, end: int) -> int:
    """After the last blank before the end, if it is near; else the end."""
    blank = text.rfind(" ", max(start, end - 200), end)
    return blank + 1 if blank > start else end
