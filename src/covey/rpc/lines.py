"""Bytes as they come → lines, with a bound. Pure; a byte is looked at once, however long its line is."""

from __future__ import annotations


class TooLong:
    """In the place of a line that was longer than the bound: all of it has been dropped."""


class LineSplitter:
    """For one stream. Keeps at most one line that has not ended, and of one that is too long nothing."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._length = 0
        self._is_dropping = False

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """The lines that end in `data`, without those that are empty."""
        *ended, rest = data.split(b"\n")
        lines = [line for piece in ended if (line := self._end(piece))]
        self._add(rest)
        return lines

    def _add(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length > self._limit:
            self._pieces.clear()
            self._is_dropping = True
        elif piece:
            self._pieces.append(piece)

    def _end(self, piece: bytes) -> bytes | TooLong:
        self._add(piece)
        line = TooLong() if self._is_dropping else b"".join(self._pieces).strip()
        self._pieces.clear()
        self._length, self._is_dropping = 0, False
        return line
