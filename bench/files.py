"""Finding a file by a few letters: what the list costs, and what a key that is pressed costs."""

from __future__ import annotations

import asyncio
import resource
import statistics
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from bench.processes import scratch
from bench.report import Figure
from bench.rig import Options
from covey.tools.file_index import FileIndex
from covey.tools.processes import LocalProcesses

WORDS = ("file", "index", "store", "server", "engine", "client", "model", "tools", "route", "message", "session")
QUERIES = ("e", "fi", "fin", "fidx", "file_index", "storeserver", "tools/fi", "message99.py", "qzx")
"""Short and long ones, words and initials, one with a directory, and one that fits nothing."""


def measure(options: Options) -> Iterator[Figure]:
    for count in (1_000, 100_000):
        with scratch() as place:
            _plant(place, count)
            yield from asyncio.run(_measured(place, count, options.size(5, 2)))


def _plant(place: Path, count: int) -> None:
    names = cycle(f"{one}_{two}" for one in WORDS for two in WORDS)
    for number, name in enumerate(islice(names, count)):
        directory = place / WORDS[number % 11] / f"{WORDS[number // 11 % 11]}{number // 1000}"
        if number % 1000 < 121:
            directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{name}{number}.py").touch()


async def _measured(place: Path, count: int, rounds: int) -> list[Figure]:
    index = FileIndex(place, LocalProcesses(), "covey-bench")
    children, own = _children_s(), time.process_time()
    found = await index.search("", 1)
    assert found.is_complete and found.matches
    listing = [
        Figure(f"{count:,} files: list, CPU of the process", (_children_s() - children) * 1000, "ms"),
        Figure(f"{count:,} files: list, CPU of the server", (time.process_time() - own) * 1000, "ms"),
    ]
    costs: list[float] = []
    held: list[float] = []
    for query in QUERIES * rounds:
        cost, longest = await _one(index, query)
        costs.append(cost)
        held.append(longest)
    await index.aclose()
    return [
        *listing,
        Figure(f"{count:,} files: CPU per query, median", statistics.median(costs), "ms"),
        Figure(f"{count:,} files: CPU per query, worst", max(costs), "ms"),
        Figure(f"{count:,} files: the loop is held, median of the longest", statistics.median(held), "ms"),
    ]


async def _one(index: FileIndex, query: str) -> tuple[float, float]:
    """CPU of one query, and the longest time in which nobody else could go on; in ms."""
    longest = 0.0

    async def others() -> None:
        nonlocal longest
        before = time.perf_counter()
        while True:
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, before = max(longest, now - before), now

    watching = asyncio.create_task(others())
    await asyncio.sleep(0)
    began = time.process_time()
    await index.search(query, 50)
    cost = time.process_time() - began
    watching.cancel()
    index._narrowed = None  # each query from the beginning, as if it were pasted
    return cost * 1000, longest * 1000


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
