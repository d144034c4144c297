"""One answer to many clients: how much gets through, and what it costs.

Two patterns. A burst: 2,000 words as fast as they come; words that pile up are merged into one delta, so both words and
frames are counted. Paced: each word is a delta of its own, and what counts is the server's CPU for each one delivered.
A bare broadcast is measured beside both.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.loader import Seen
from bench.loader_client import Crowd, crowd
from bench.processes import Process, running
from bench.report import Figure
from bench.rig import Options, Rig, rig

WORDS = 2000
CROWDS = (1, 10, 100, 200, 500)
COMPARED = 200
"""The size at which the targets are set and the bare broadcast is measured."""
PACE_S = 0.005
"""Between two words of the paced pattern: slow enough that none are merged."""
ROUNDS = 3


@dataclass(frozen=True)
class Result:
    seen: Seen
    cpu_s: float
    clients: int
    words: int

    @property
    def seconds(self) -> float:
        return max(self.seen.last_at - self.seen.first_at, 1e-6)

    @property
    def per_s(self) -> float:
        return self.clients * self.words / self.seconds

    @property
    def frames_per_s(self) -> float:
        return self.seen.frames / self.seconds

    @property
    def cpu_us(self) -> float:
        """Server CPU for each frame that reached a client."""
        return self.cpu_s * 1e6 / self.seen.frames


def measure(options: Options) -> Iterator[Figure]:
    bursts: dict[int, Result] = {}
    with rig(options) as made:
        for clients in (10, COMPARED) if options.quick else CROWDS:
            with crowd(made, clients) as watchers:
                best = max((_covey(made, watchers, clients, WORDS, 0) for _ in range(ROUNDS)), key=lambda r: r.per_s)
            bursts[clients] = best
            yield from _burst_figures(best)
        with crowd(made, COMPARED) as watchers:
            words = options.size(400, 100)
            paced = _middle([_covey(made, watchers, COMPARED, words, PACE_S) for _ in range(ROUNDS)])
        with _raw(made.place) as (process, raw_crowd):
            raw_crowd.open(COMPARED)
            raw = max((_bare(process, raw_crowd, WORDS, 0) for _ in range(ROUNDS)), key=lambda r: r.per_s)
            raw_paced = _middle([_bare(process, raw_crowd, words, PACE_S) for _ in range(ROUNDS)])
    burst = bursts[COMPARED]
    yield Figure(f"bare broadcast, {COMPARED} clients", raw.per_s, "1/s")
    yield Figure("deliveries, Covey / bare broadcast", burst.per_s / raw.per_s, "x", 0.5, "at_least")
    yield Figure("frames, Covey / bare broadcast", burst.frames_per_s / raw.frames_per_s, "x")
    yield Figure(f"paced, {COMPARED} clients: server CPU per frame", paced.cpu_us, "us", note="each word its own frame")
    yield Figure("paced, bare broadcast: CPU per frame", raw_paced.cpu_us, "us")
    yield Figure("paced, bare broadcast / Covey", raw_paced.cpu_us / paced.cpu_us, "x", 0.5, "at_least")
    yield Figure("bytes on the wire for a short delta", paced.seen.size / paced.seen.frames, "B", 200)


def _burst_figures(result: Result) -> Iterator[Figure]:
    crowd_name = f"{result.clients} client{'s' if result.clients > 1 else ''}"
    target = 230_000.0 if result.clients == COMPARED else None
    note = f"{result.frames_per_s:,.0f} frames/s, {result.seen.frames / result.clients:.0f} frames each"
    yield Figure(f"burst to {crowd_name}: words delivered", result.per_s, "1/s", target, "at_least", note)
    cost = result.cpu_s * 1e6 / (result.clients * result.words)
    yield Figure(f"burst to {crowd_name}: server CPU per word", cost, "us", note=f"{result.cpu_us:.2f} us per frame")


def _covey(made: Rig, watchers: Crowd, clients: int, words: int, gap_s: float) -> Result:
    session_id = made.session()
    return _watched(
        made.server, watchers, clients, words, lambda: made.prompt(session_id, f"chunks={words} gap={gap_s}")
    )


def _bare(process: Process, watchers: Crowd, words: int, gap_s: float) -> Result:
    def start() -> None:
        pipe = process.popen.stdin
        assert pipe
        pipe.write(f"{words} {gap_s}\n")
        pipe.flush()

    return _watched(process, watchers, COMPARED, words, start)


def _watched(server: Process, watchers: Crowd, clients: int, words: int, start: Callable[[], None]) -> Result:
    before = server.cpu_s()
    watchers.start_watching()
    start()
    seen = watchers.seen()
    if seen.words != words or not seen.same:
        raise RuntimeError(f"text was lost: {seen.words} of {words} words, the same everywhere: {seen.same}")
    return Result(seen, server.cpu_s() - before, clients, words)


def _middle(results: list[Result]) -> Result:
    middle = statistics.median_low([result.cpu_us for result in results])
    return next(result for result in results if result.cpu_us == middle)


@contextlib.contextmanager
def _raw(place: Path) -> Iterator[tuple[Process, Crowd]]:
    with (
        running([sys.executable, "-m", "bench.raw_broadcast"], place / "raw.log") as process,
        running([sys.executable, "-m", "bench.loader"], place / "loader.log") as loader,
    ):
        yield process, Crowd(loader, process.port, "any")
