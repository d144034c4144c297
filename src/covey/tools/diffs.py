"""The difference of two texts as a unified diff, in bounded time and space. For people to look at, not to apply."""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_TEXT_LIMIT = 50_000
"""Characters: more than anybody reads before answering, and it is stored with the message."""
_COMPARED_LIMIT = 4_000_000
"""Lines before times lines after that are compared: well below a second. A rewrite of more than some 2,000 lines is
shown as one block that goes and one that comes."""

Opcode = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]


@dataclass(frozen=True, slots=True)
class Diff:
    text: str
    additions: int
    removals: int
    spans: tuple[tuple[int, int], ...] = ()
    """Where the text after differs: the first changed line and the one after the last, counted from 0."""


def unified(before: str, after: str, name: str) -> Diff:
    matcher = _Matcher(_lines(before), _lines(after))
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    text = "".join(_hunks(matcher)) if changes else ""
    if len(text) > _TEXT_LIMIT:
        text = text[: text.rfind("\n", 0, _TEXT_LIMIT) + 1] + "... the rest of the diff is left out\n"
    return Diff(
        text=f"--- {name}\n+++ {name}\n{text}" if text else "",
        additions=sum(new_end - new_start for _, _, _, new_start, new_end in changes),
        removals=sum(old_end - old_start for _, old_start, old_end, _, _ in changes),
        spans=tuple((new_start, new_end) for _, _, _, new_start, new_end in changes),
    )


class _Matcher(difflib.SequenceMatcher[str]):
    """Looks only between the lines that both texts begin and end with, and only if that is not too much."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        super().__init__()
        self.old = old
        self.new = new

    def get_opcodes(self) -> list[Opcode]:
        old, new = self.old, self.new
        shorter = min(len(old), len(new))
        head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
        tail = next((i for i in range(shorter - head) if old[-1 - i] != new[-1 - i]), shorter - head)
        old_end, new_end = len(old) - tail, len(new) - tail
        return [
            ("equal", 0, head, 0, head),
            *_compare(old, head, old_end, new, new_end),
            ("equal", old_end, len(old), new_end, len(new)),
        ]


def _compare(old: list[str], start: int, old_end: int, new: list[str], new_end: int) -> list[Opcode]:
    if (old_end - start) * (new_end - start) > _COMPARED_LIMIT:
        return [("replace", start, old_end, start, new_end)]
    opcodes = difflib.SequenceMatcher(None, old[start:old_end], new[start:new_end]).get_opcodes()
    return [(tag, start + a, start + b, start + c, start + d) for tag, a, b, c, d in opcodes]


def _hunks(matcher: _Matcher) -> Iterator[str]:
    for group in matcher.get_grouped_opcodes():
        _, old_start, _, new_start, _ = group[0]
        _, _, old_end, _, new_end = group[-1]
        yield f"@@ -{_range(old_start, old_end)} +{_range(new_start, new_end)} @@\n"
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (" " + _ended(line) for line in matcher.old[a:b])
            else:
                yield from ("-" + _ended(line) for line in matcher.old[a:b])
                yield from ("+" + _ended(line) for line in matcher.new[c:d])


def _range(start: int, end: int) -> str:
    # An empty range is named by the line before it: so says the format.
    return f"{start + 1 if end > start else start},{end - start}"


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    # Only "\n" ends a line for an editor; str.splitlines would also split at form feeds and the like.
    return list(io.StringIO(text, newline="\n"))
