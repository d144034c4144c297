"""Hunks of a patch → the changed text of a file. Pure.

A hunk is found by its lines: exactly, or but for blanks at their ends. What was found at several places is refused,
unless a line above it (`@@`) says where to look: the first place after that is meant.
"""

from __future__ import annotations

from collections.abc import Sequence

from covey.tools.base import ToolFailed
from covey.tools.patch import Hunk
from covey.tools.replacement import nearest

_SHOWN_PLACES = 10


def apply_hunks(text: str, hunks: Sequence[Hunk], name: str) -> str:
    """The text after all of them, in their order: each is looked for after the one before it. Raises ToolFailed."""
    lines = text.split("\n")
    ends_with_break = lines[-1] == ""
    if ends_with_break:
        lines.pop()
    file = _File(lines, name)
    for number, hunk in enumerate(hunks, 1):
        file.apply(hunk, f"Change {number} of {len(hunks)}" if len(hunks) > 1 else "The change")
    after = "\n".join(file.finished())
    return f"{after}\n" if after and (ends_with_break or not text) else after


class _File:
    """The lines of a file, and how far they were worked on."""

    def __init__(self, lines: list[str], name: str) -> None:
        self._lines = lines
        self._bare = [line.rstrip() for line in lines]
        self._name = name
        self._done: list[str] = []
        self._next = 0
        """The first line that nothing has been done about."""
        self._ending = "\r" if lines and lines[0].endswith("\r") else ""

    def apply(self, hunk: Hunk, which: str) -> None:
        start = self._anchored(hunk, which)
        old = [line.rstrip() for line in hunk.old]
        place = self._place(old, start, hunk, which)
        self._done += self._lines[self._next : place]
        for mark, text in hunk.lines:
            if mark == "+":
                self._done.append(text + self._ending)
                continue
            if mark == " ":
                self._done.append(self._lines[place])  # as it is in the file
            place += 1
        self._next = place

    def finished(self) -> list[str]:
        return self._done + self._lines[self._next :]

    def _anchored(self, hunk: Hunk, which: str) -> int:
        """The line after the last of its anchors."""
        start = self._next
        for anchor in filter(str.strip, hunk.anchors):
            later = range(start, len(self._lines))
            found = next((n for n in later if self._bare[n] == anchor.rstrip()), None)
            if found is None:  # its indentation, and what follows a name, are often left out
                found = next((n for n in later if _begins(self._bare[n].strip(), anchor.strip())), None)
            if found is None:
                raise self._failed(which, f"the line after @@, {anchor.strip()!r}, is not in {self._rest}", [anchor])
            start = found + 1
        return start

    def _place(self, old: list[str], start: int, hunk: Hunk, which: str) -> int:
        if not old:  # nothing but new lines: after the anchor, else at the end
            return start if any(map(str.strip, hunk.anchors)) and not hunk.at_end else len(self._lines)
        if hunk.at_end:
            start = max(start, len(self._lines) - len(old))
        places = self._places(old, start)
        if not places:
            where = "at the end of the file" if hunk.at_end else f"in {self._rest}"
            raise self._failed(which, f"its lines are not {where}", hunk.old)
        is_led = any(map(str.strip, hunk.anchors))
        if len(places) > 1 and not is_led:
            numbers = ", ".join(str(place + 1) for place in places[:_SHOWN_PLACES])
            raise self._failed(
                which,
                f"its lines are there more than once, on lines {numbers}: add more lines around it, or @@ with a line "
                "above it such as the head of its function",
            )
        return places[0]

    def _places(self, old: list[str], start: int) -> list[int]:
        """Where the lines begin. Joined and searched as one text: that takes linear time, whatever they are."""
        whole = "\n".join(["", *self._bare[start:], ""])
        piece = "\n".join(["", *old, ""])
        places: list[int] = []
        position = counted = 0
        line = start
        while len(places) <= _SHOWN_PLACES and (position := whole.find(piece, position)) >= 0:
            line += whole.count("\n", counted, position)
            counted = position
            places.append(line)
            position += 1
        return places

    @property
    def _rest(self) -> str:
        return f"{self._name} after line {self._next}" if self._next else self._name

    def _failed(self, which: str, why: str, wanted: Sequence[str] = ()) -> ToolFailed:
        hint = nearest(self._lines, "\n".join(wanted)) if any(map(str.strip, wanted)) else ""
        return ToolFailed(f"{which} of {self._name} cannot be made: {why}. Nothing was changed. {hint}".rstrip())


def _begins(line: str, words: str) -> bool:
    """Whether a line begins with these words: `class B` begins `class B:`, and not `class Bird:`."""
    following = line[len(words) : len(words) + 1]
    return line.startswith(words) and not (words[-1:].isidentifier() and following.isidentifier())
