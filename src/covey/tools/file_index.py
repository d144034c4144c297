"""The files of a workspace, to be found by a few letters: for mentions, while somebody types.

A process of its own lists them, without those that ignore files leave out. The list is used until it is some seconds
old, and while a newer one is made: a key that is pressed never waits for a walk, except for the very first. One query
looks at the list in slices, and lets everybody else go on in between.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covey.tools.fuzzy import Match, Ranking, fold
from covey.tools.processes import Completed, Processes
from covey.tools.search import look

log = logging.getLogger(__name__)

SLICE = 1_000
CLOSE_SLICE = 50
"""Names between two moments at which others may go on: those that are looked at, and those that are looked at closely.
Either takes well below a millisecond, a few with a long query."""
FRESH_S = 5.0
"""A list that is younger is not made again."""
REST = 20
"""A list that took long to make is used so many times longer: at most a twentieth of a core is spent on lists."""
LIST_S = 60.0
"""How long a walk may take, after which what it has found is used."""
LIMIT = 200
"""Names that one query gives at most."""

_OUTPUT_LIMIT = 64 * 1024 * 1024
"""Bytes of a list. The process keeps to a bound of its own; names in other scripts are written longer."""


@dataclass(frozen=True, slots=True)
class FileMatches:
    matches: tuple[Match, ...]
    is_complete: bool
    """False: there are more files than are listed, or some could not be looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class _Listing:
    """Paths from the root of the workspace in the order of their length, and as they are compared."""

    paths: list[str]
    folded: list[str]
    is_complete: bool
    until: float
    """When it is too old."""


class FileIndex:
    """One workspace's files. `denied` are the rules of what nobody may look at, asked for with each new list."""

    def __init__(
        self,
        root: Path,
        processes: Processes,
        tag: str,
        denied: Callable[[], Sequence[str]] = tuple,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._processes = processes
        self._tag = tag
        self._denied = denied
        self._clock = clock
        self._listing: _Listing | None = None
        self._making: asyncio.Task[None] | None = None
        self._narrowed: tuple[_Listing, str, list[int]] | None = None
        """What fitted the last query: if the next one goes on from it, nothing else can fit."""

    async def search(self, query: str, limit: int) -> FileMatches:
        """The likeliest files, the best first. Without a query those with the shortest paths."""
        if self._listing is None or self._clock() >= self._listing.until:
            self._renew()
        if self._listing is None and self._making is not None:
            await asyncio.wait([self._making])
        listing = self._listing
        if listing is None:
            return FileMatches((), is_complete=False)
        ranking = Ranking(query, min(limit, LIMIT))
        places = self._narrow(listing, ranking.query)
        for start in range(0, len(places), SLICE):
            chosen = ranking.select(listing.folded, places[start : start + SLICE])
            for first in range(0, len(chosen), CLOSE_SLICE):
                ranking.take(listing.paths, listing.folded, chosen[first : first + CLOSE_SLICE])
                await asyncio.sleep(0)
            await asyncio.sleep(0)
        if ranking.query and ranking.survivors is not None:
            self._narrowed = (listing, ranking.query, ranking.survivors)
        return FileMatches(tuple(ranking.best()), listing.is_complete)

    def expire(self) -> None:
        """Files have come or gone: the next query has a new list made, and still uses the old one."""
        if self._listing is not None:
            self._listing = _Listing(self._listing.paths, self._listing.folded, self._listing.is_complete, 0.0)

    def forget(self) -> None:
        """Nobody has asked for long: give the memory back."""
        self._listing = self._narrowed = None

    async def aclose(self) -> None:
        if self._making is not None:
            self._making.cancel()
            await asyncio.wait([self._making])
        self.forget()

    def _narrow(self, listing: _Listing, query: str) -> Sequence[int]:
        if self._narrowed is not None:
            known, before, places = self._narrowed
            if known is listing and query.startswith(before):
                return places
        return range(len(listing.paths))

    def _renew(self) -> None:
        if self._making is None:
            self._making = asyncio.get_running_loop().create_task(self._make())
            self._making.add_done_callback(self._made)

    def _made(self, task: asyncio.Task[None]) -> None:
        self._making = None
        if not task.cancelled() and (error := task.exception()):
            log.warning("the files of %s could not be listed: %s", self._root, error)

    async def _make(self) -> None:
        began = self._clock()
        request: dict[str, Any] = {
            "operation": "names",
            "base": str(self._root),
            "top": str(self._root),
            "seconds": LIST_S - 2,
            "denied": [rule for rule in self._denied() if rule.startswith("view:")],
        }
        done = await look(self._processes, request, self._tag, LIST_S, _OUTPUT_LIMIT)
        paths: list[str] = []
        folded: list[str] = []
        is_complete = not done.timed_out
        for found in _lines(done):
            if isinstance(found, list):
                paths += found
                folded += map(fold, found)
            elif "summary" in found:
                is_complete = is_complete and not any(found["summary"].values())
            await asyncio.sleep(0)
        now = self._clock()
        self._listing = _Listing(paths, folded, is_complete, now + max(FRESH_S, REST * (now - began)))


def _lines(done: Completed) -> Iterator[Any]:
    """What the process has said, line by line: parsing all at once would keep everybody waiting."""
    start = 0
    while (end := done.output.find("\n", start)) >= 0:
        try:
            yield json.loads(done.output[start:end])
        except ValueError:  # where too much output was left out
            log.warning("a list of files is not whole")
        start = end + 1
