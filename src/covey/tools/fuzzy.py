"""Names that somebody may mean by a few letters, the likeliest first. Pure.

A name that begins with what was typed comes before one of whose words that are the first letters, that before one that
holds it somewhere, and last comes a name that has the letters in this order. Among equals the shorter path comes first.
Neither case nor accents matter.

Names are given in the order of their length, in slices, so that whoever gives them can do something else in between.
For that reason a kind that has enough names is not looked for any more: those to come are longer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from typing import assert_never

QUERY_CHARS = 100
"""More than anybody types to find a file."""
LOOSE_LIMIT = 500
"""Names kept whose letters are only in the right order: of these the most compact are the likeliest."""

GAP = 4
"""How many letters in between are forgiven for one that begins a word."""
CLOSE_LOOKS = 2_000
"""Names that are looked at closely, once there are enough: of the others only those that begin with the query count."""

_STARTS = re.compile(r"(?:^|(?<=[^\w]|_))\w|(?<=[a-z0-9])[A-Z]|(?<=[A-Za-z])[0-9]")
"""Where words begin, in `file_index`, `fileIndex`, `file-index`, `file.index` and `file2`."""


class MatchKind(IntEnum):
    """How well a name fits, the best first. The first six look at the name of the file, or at a part of the path."""

    EXACT = 0
    PREFIX = 1
    WORDS = 2
    INSIDE = 3
    PATH_WORDS = 4
    PATH_INSIDE = 5
    LOOSE = 6
    PATH_LOOSE = 7


@dataclass(frozen=True, slots=True)
class Match:
    path: str
    places: tuple[int, ...]
    """Which characters of the path were typed, as code points."""


def fold(text: str) -> str:
    """As names are compared: without case and accents."""
    if text.isascii():
        return text.lower()
    return "".join(_fold_character(character) for character in text)


def _fold_character(character: str) -> str:
    decomposed = unicodedata.normalize("NFKD", character).casefold()
    return "".join(c for c in decomposed if not unicodedata.combining(c))


class Ranking:
    """One query over many names."""

    def __init__(self, query: str, limit: int) -> None:
        self.query = fold("".join(query.split()))[:QUERY_CHARS]
        self._limit = limit
        self._in_path = "/" in self.query
        self._found: list[list[tuple[int, str]]] = [[] for _ in MatchKind]
        self._in_order = re.compile("".join(f"[^{re.escape(c)}]*+{re.escape(c)}" for c in self.query)).match
        self._begins_word = _word_start(self.query[:1]).search
        self.classified = 0
        """Names that were looked at closely: what a query costs."""
        self.survivors: list[int] | None = []
        """Names with the letters in order: a longer query need not look at others. None: not all were looked for."""

    def select(self, folded: Sequence[str], places: Iterable[int]) -> list[int]:
        """Which of these names are worth a close look. They come in the order of their length."""
        query, tail, needed = self.query, f"/{self.query}", self._needed()
        if not query:
            return list(islice(places, self._limit - len(self._found[MatchKind.EXACT])))
        if needed <= MatchKind.PREFIX:
            chosen = [
                p for p in places if folded[p].endswith(query) and (folded[p] == query or folded[p].endswith(tail))
            ]
        elif needed <= MatchKind.WORDS:
            chosen = [p for p in places if tail in folded[p] or folded[p].startswith(query)]
        else:
            in_order, last = self._in_order, query[-1]
            chosen = [p for p in places if last in folded[p] and in_order(folded[p])]
        if needed <= MatchKind.WORDS:
            self.survivors = None
        elif self.survivors is not None:
            self.survivors += chosen
        return chosen

    def take(self, paths: Sequence[str], folded: Sequence[str], chosen: Iterable[int]) -> None:
        """Look closely at names that were selected, in that order."""
        for place in chosen:
            self._classify(paths[place], folded[place])

    def _needed(self) -> int:
        """Up to which kind names are still looked for; those of this very kind that are still to come are too long."""
        total = 0
        for kind in list(MatchKind)[MatchKind.PREFIX :]:
            total += len(self._found[kind])
            if total >= self._limit:
                return min(kind, MatchKind.WORDS) if self.classified >= CLOSE_LOOKS else kind
        return len(MatchKind)

    def _classify(self, path: str, folded: str) -> None:
        self.classified += 1
        if not self.query:
            self._put(MatchKind.EXACT, 0, path)
            return
        start = 0 if self._in_path else folded.rfind("/") + 1
        name = folded[start:]
        at = name.find(self.query)
        if name == self.query:
            self._put(MatchKind.EXACT, 0, path)
        elif at == 0 or (at > 0 and self._in_path and name[at - 1] == "/"):
            self._put(MatchKind.PREFIX, at, path)
        elif (found := self._words(path, folded, start)) is not None:
            self._put(MatchKind.WORDS, 0, path)
        elif at > 0:
            self._put(MatchKind.INSIDE, 0, path)
        elif start and (found := self._words(path, folded, 0)) is not None:
            self._put(MatchKind.PATH_WORDS, 0, path)
        elif self.query in folded:
            self._put(MatchKind.PATH_INSIDE, 0, path)
        elif found := _compact(folded, self.query, start):
            self._put(MatchKind.LOOSE, _looseness(path, folded, found), path)
        elif found := _compact(folded, self.query, 0):
            self._put(MatchKind.PATH_LOOSE, _looseness(path, folded, found), path)

    def _put(self, kind: MatchKind, looseness: int, path: str) -> None:
        limit = max(self._limit, LOOSE_LIMIT) if kind >= MatchKind.LOOSE else self._limit
        if len(self._found[kind]) < limit:
            self._found[kind].append((looseness, path))

    def _words(self, path: str, folded: str, start: int) -> tuple[int, ...] | None:
        """Where the query is, if each of its letters begins a word or follows the letter before."""
        if path.isascii() and not self._begins_word(path, start):
            return None  # most are sorted out by this, at a fraction of the cost
        starts = _word_starts(path, folded, start)
        if self._in_path:
            starts = sorted({*starts, *(place for place, c in enumerate(folded) if c == "/")})
        return _chain(folded, starts, self.query)

    def best(self) -> list[Match]:
        """The likeliest names. For each, where the query is."""
        chosen: list[tuple[MatchKind, str]] = []
        for kind in MatchKind:
            rows = self._found[kind]
            if kind >= MatchKind.LOOSE:
                rows = sorted(rows, key=lambda row: (row[0], len(row[1]), row[1]))
            chosen += [(kind, path) for _, path in rows]
        return [Match(path, self._places(kind, path)) for kind, path in chosen[: self._limit]]

    def _places(self, kind: MatchKind, path: str) -> tuple[int, ...]:
        if not self.query:
            return ()
        folded = fold(path)
        start = 0 if self._in_path else folded.rfind("/") + 1
        match kind:
            case MatchKind.EXACT:
                found = _run(len(folded) - len(self.query), self.query)
            case MatchKind.PREFIX | MatchKind.INSIDE:
                found = _run(folded.find(self.query, start), self.query)
            case MatchKind.PATH_INSIDE:
                found = _run(folded.find(self.query), self.query)
            case MatchKind.WORDS | MatchKind.PATH_WORDS:
                found = self._words(path, folded, start if kind is MatchKind.WORDS else 0) or ()
            case MatchKind.LOOSE | MatchKind.PATH_LOOSE:
                found = _compact(folded, self.query, start if kind is MatchKind.LOOSE else 0)
            case _:
                assert_never(kind)
        return _unfolded(path, folded, found)


def _word_start(letter: str) -> re.Pattern[str]:
    """Finds a word of an ASCII path that begins with this letter."""
    begins = rf"(?:^|(?<=[\W_]))(?i:{re.escape(letter)})"
    if letter.isalpha():
        return re.compile(rf"{begins}|(?<=[a-z0-9]){letter.upper()}")
    return re.compile(rf"{begins}|(?<=[A-Za-z]){re.escape(letter)}" if letter.isdigit() else re.escape(letter))


def _word_starts(path: str, folded: str, start: int = 0) -> list[int]:
    seen = path if len(path) == len(folded) else folded
    return [found.start() for found in _STARTS.finditer(seen, start)]


def _looseness(path: str, folded: str, places: tuple[int, ...]) -> int:
    """How far the letters are apart. One that begins a word makes up for a gap."""
    starts = _word_starts(path, folded, places[0])
    return places[-1] - places[0] - GAP * len(set(starts).intersection(places))


def _run(start: int, query: str) -> tuple[int, ...]:
    return tuple(range(start, start + len(query)))


def _chain(text: str, starts: Sequence[int], query: str) -> tuple[int, ...] | None:
    """Places of the query's letters, each the start of a word or right after the one before; the first such places."""
    paths: dict[int, tuple[int, ...]] = {place: (place,) for place in starts if text[place] == query[0]}
    for letter in query[1:]:
        going: dict[int, tuple[int, ...]] = {}
        for place, before in paths.items():
            following = place + 1
            if following < len(text) and text[following] == letter:
                going.setdefault(following, (*before, following))
        if paths:
            first, before = next(iter(paths.items()))
            for start in starts:
                if start > first and text[start] == letter:
                    going.setdefault(start, (*before, start))
        paths = dict(sorted(going.items()))
    return next(iter(paths.values()), None)


def _compact(text: str, query: str, start: int) -> tuple[int, ...]:
    """Places of the letters in this order: from the first end that is possible, backwards. () if there are none."""
    end = start - 1
    for letter in query:
        end = text.find(letter, end + 1)
        if end < 0:
            return ()
    places = [end]
    for letter in reversed(query[:-1]):
        end = text.rfind(letter, start, end)
        places.append(end)
    return tuple(reversed(places))


def _unfolded(path: str, folded: str, places: tuple[int, ...]) -> tuple[int, ...]:
    """Places in a folded path as places in the path itself: a letter may have become two, an accent none."""
    if len(path) == len(folded) and path.isascii():
        return places
    origins = [number for number, character in enumerate(path) for _ in _fold_character(character)]
    return tuple(dict.fromkeys(origins[place] for place in places))
