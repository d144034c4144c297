"""Places in a text, as language servers count them: lines from 0, columns in units of an encoding. Pure.

Only UTF-16 is offered, as every server has it, but a server may insist on another. One that counts otherwise than it
says is found out where it matters: before anything is written, the text at each of its ranges is compared with what
should be there.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

Encoding = Literal["utf-8", "utf-16", "utf-32"]
_UNITS: dict[Encoding, Callable[[str], int]] = {
    "utf-8": lambda char: len(char.encode("utf-8", "surrogatepass")),
    "utf-16": lambda char: 1 + (ord(char) > 0xFFFF),
    "utf-32": lambda char: 1,
}
"""How many units of a column a character takes."""

_LINE_END = re.compile(r"\r\n|\n|\r")
"""What ends a line to a language server; other characters that Python takes for line ends do not."""


class Position(NamedTuple):
    line: int
    character: int
    """Units from the beginning of the line."""

    def as_json(self) -> dict[str, int]:
        return {"line": self.line, "character": self.character}


class Range(NamedTuple):
    start: Position
    end: Position


class BadRange(Exception):
    """A server named a place that is not in the text."""


class LineIndex:
    """A text, and where its lines begin."""

    def __init__(self, text: str, encoding: Encoding = "utf-16") -> None:
        self.text = text
        self._units = _UNITS[encoding]
        self._starts = [0, *(end.end() for end in _LINE_END.finditer(text))]

    def line(self, number: int) -> str:
        """A line without its end; '' behind the last one."""
        if not 0 <= number < len(self._starts):
            return ""
        start = self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def offset(self, position: Position) -> int:
        """Where a position is, in code points. A column behind the end of its line is that end. Raises BadRange."""
        line, character = position
        if not 0 <= line < len(self._starts) or character < 0:
            raise BadRange(f"line {line + 1} is not in the text")
        content = self.line(line)
        if content.isascii():
            return self._starts[line] + min(character, len(content))
        units = at = 0
        while at < len(content) and units < character:
            units += self._units(content[at])
            at += 1
        if units > character:
            raise BadRange(f"a column of line {line + 1} is in the middle of a character")
        return self._starts[line] + at

    def position(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset) - 1
        before = self.text[self._starts[line] : offset]
        return Position(line, sum(map(self._units, before)))

    def between(self, given: Range) -> str:
        return self.text[self.offset(given.start) : self.offset(given.end)]


def read_position(given: Any) -> Position:
    """A position that a server sent. Raises BadRange if it is none."""
    match given:
        case {"line": int(line), "character": int(character)} if 0 <= line < 1 << 31 and 0 <= character < 1 << 31:
            return Position(line, character)
    raise BadRange("a position is none")


def read_range(given: Any) -> Range:
    match given:
        case {"start": start, "end": end}:
            found = Range(read_position(start), read_position(end))
            if found.start <= found.end:
                return found
    raise BadRange("a range is none")
