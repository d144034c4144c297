"""Text that comes in pieces."""

from __future__ import annotations

JOIN_AT = 1024
"""So many small strings are kept at most: each takes fifty bytes beside its text."""


class Pieces:
    """Text that only grows: a piece costs what it is long, and all of them little more memory than the text."""

    __slots__ = ("_chunks", "_recent")

    def __init__(self) -> None:
        self._chunks: list[str] = []
        self._recent: list[str] = []

    def append(self, text: str) -> None:
        self._recent.append(text)
        if len(self._recent) == JOIN_AT:
            self._chunks.append("".join(self._recent))
            self._recent.clear()

    def __str__(self) -> str:
        """All of it. Asked for again, it is not put together again."""
        if self._recent or len(self._chunks) > 1:
            self._chunks = ["".join((*self._chunks, *self._recent))]
            self._recent.clear()
        return self._chunks[0] if self._chunks else ""

    def __bool__(self) -> bool:
        return bool(self._chunks or self._recent)
