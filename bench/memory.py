"""What the server holds: idle, for each session and each client, and after a thousand clients have come and gone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from bench.loader_client import crowd
from bench.report import Figure
from bench.rig import Options, Rig, rig

CROWD = 200
SETTLE_S = 0.5
"""For the server to notice who left."""


def measure(options: Options) -> Iterator[Figure]:
    with rig(options) as made:
        idle = made.server.memory_mb()
        yield Figure("memory, idle", idle, "MB", 55)
        sessions = options.size(500, 100)
        for _ in range(sessions):
            made.session()
        yield Figure("memory per session", (made.server.memory_mb() - idle) * 1024 / sessions, "kB")
        before = made.server.memory_mb()
        with crowd(made, CROWD) as watchers:
            watchers.start_watching()
            made.prompt(made.session(), "chunks=500 gap=0.002")
            watchers.seen()
            crowded = made.server.memory_mb()
        yield Figure(f"memory with {CROWD} clients", crowded, "MB", 120)
        yield Figure("memory per client", (crowded - before) * 1024 / CROWD, "kB")
    with rig(options) as made:
        yield from _coming_and_going(made, options.size(5, 2))


def _coming_and_going(made: Rig, crowds: int) -> Iterator[Figure]:
    """Crowds of 200 clients come, see an answer, and leave; after the first one nothing may grow."""
    _visit(made)
    memory, latency = made.server.memory_mb(), _latency_ms(made)
    for _ in range(crowds):
        _visit(made)
    yield Figure(
        f"memory after {crowds * CROWD:,} clients came and left",
        made.server.memory_mb() - memory,
        "MB",
        5,
        note="grown by",
    )
    yield Figure("chunk -> client, before they came", latency, "ms")
    yield Figure("chunk -> client, after they left", _latency_ms(made), "ms")


def _visit(made: Rig) -> None:
    with crowd(made, CROWD) as watchers:
        watchers.start_watching()
        made.prompt(made.session(), "chunks=50 gap=0.005")
        watchers.seen()
    time.sleep(SETTLE_S)


def _latency_ms(made: Rig) -> float:
    with crowd(made, 1) as watcher:
        watcher.start_watching(stamps=True)
        made.prompt(made.session(), "chunks=100 gap=0.01 stamp=1")
        return statistics.median(watcher.seen().latencies_ms)
