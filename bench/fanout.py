"""One workspace, many clients: how much gets through, and what it costs.

Three patterns. A burst: one answer of 2,000 words as fast as they come; words that pile up on the way are merged into
one delta, so what counts is when everybody has the whole text. A flood: 2,000 words in many sessions at once, more than
can be handled, each a frame of its own: the most frames that get through. Paced: one word at a time, and the server's
CPU for each frame that reached a client. A bare broadcast is measured beside them.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
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
FLOOD_SESSIONS = 50
FLOOD_GAP_S = 0.02
"""50 sessions with 50 words a second each: 2,500 words a second, 500,000 deliveries to 200 clients."""
PACE_S = 0.005
"""Between two words of the paced pattern: slow enough that none are merged."""
ROUNDS = 3


@dataclass(frozen=True)
class Result:
    seen: Seen
    cpu_s: float
    started_at: float
    clients: int
    words: int

    @property
    def whole_s(self) -> float:
        """From the prompt to the moment when every client has every word."""
        return self.seen.last_at - self.started_at

    @property
    def words_per_s(self) -> float:
        return self.clients * self.words / self.whole_s

    @property
    def frames_per_s(self) -> float:
        return self.seen.frames / (self.seen.last_at - self.seen.first_at)

    @property
    def cpu_us(self) -> float:
        """Server CPU for each frame that reached a client."""
        return self.cpu_s * 1e6 / self.seen.frames


def measure(options: Options) -> Iterator[Figure]:
    paced_words = options.size(400, 100)
    with rig(options) as made:
        for clients in (1, COMPARED) if options.quick else CROWDS:
            with crowd(made, clients) as watchers:
                yield from _burst(made, watchers, clients)
        with crowd(made, COMPARED) as watchers:
            flood = _fastest(_covey(made, watchers, COMPARED, FLOOD_SESSIONS, FLOOD_GAP_S) for _ in range(ROUNDS))
            paced = _middle([_covey(made, watchers, COMPARED, 1, PACE_S, paced_words) for _ in range(ROUNDS)])
        with _bare_server(made.place) as (process, watchers):
            watchers.open(COMPARED)
            bare = _fastest(_bare(process, watchers, WORDS, 0) for _ in range(ROUNDS))
            bare_paced = _middle([_bare(process, watchers, paced_words, PACE_S) for _ in range(ROUNDS)])
    yield from _flood_figures(flood, bare)
    yield Figure(f"paced, {COMPARED} clients: server CPU per frame", paced.cpu_us, "us")
    yield Figure("paced, bare broadcast: CPU per frame", bare_paced.cpu_us, "us")
    yield Figure("paced, bare broadcast / Covey", bare_paced.cpu_us / paced.cpu_us, "x", 0.5, "at_least")
    yield Figure("bytes on the wire for a short delta", paced.seen.delta_bytes, "B", 200)


def _burst(made: Rig, watchers: Crowd, clients: int) -> Iterator[Figure]:
    name = f"burst, {clients} client{'s' if clients > 1 else ''}"
    best = min((_covey(made, watchers, clients, 1, 0) for _ in range(ROUNDS)), key=lambda result: result.whole_s)
    note = f"{best.words_per_s:,.0f} words/s in {best.seen.frames / clients:.0f} frames each"
    yield Figure(f"{name}: prompt -> everybody has all", best.whole_s * 1e3, "ms", note=note)
    yield Figure(f"{name}: server CPU per word delivered", best.cpu_s * 1e6 / (clients * WORDS), "us")


def _flood_figures(flood: Result, bare: Result) -> Iterator[Figure]:
    note = f"{flood.seen.frames / flood.seen.reads:.1f} frames a read"
    yield Figure(f"flood, {COMPARED} clients: frames delivered", flood.frames_per_s, "1/s", 230_000, "at_least", note)
    yield Figure("flood: server CPU per frame", flood.cpu_us, "us")
    yield Figure(f"bare broadcast, {COMPARED} clients: frames delivered", bare.frames_per_s, "1/s")
    yield Figure("flood, Covey / bare broadcast", flood.frames_per_s / bare.frames_per_s, "x", 0.5, "at_least")


def _covey(made: Rig, watchers: Crowd, clients: int, sessions: int, gap_s: float, words: int = WORDS) -> Result:
    ids = [made.session() for _ in range(sessions)]

    def start() -> None:
        for session_id in ids:
            made.prompt(session_id, f"chunks={words // sessions} gap={gap_s}")

    return _watched(made.server, watchers, clients, words, start, runs=sessions)


def _bare(process: Process, watchers: Crowd, words: int, gap_s: float) -> Result:
    def start() -> None:
        pipe = process.popen.stdin
        assert pipe
        pipe.write(f"{words} {gap_s}\n")
        pipe.flush()

    return _watched(process, watchers, COMPARED, words, start)


def _watched(
    server: Process, watchers: Crowd, clients: int, words: int, start: Callable[[], None], runs: int = 1
) -> Result:
    before, started_at = server.cpu_s(), time.perf_counter()
    watchers.start_watching(runs)
    start()
    seen = watchers.seen()
    if seen.words != words or not seen.same:
        raise RuntimeError(f"text was lost: {seen.words} of {words} words, the same everywhere: {seen.same}")
    return Result(seen, server.cpu_s() - before, started_at, clients, words)


def _fastest(results: Iterator[Result]) -> Result:
    return max(results, key=lambda result: result.frames_per_s)


def _middle(results: list[Result]) -> Result:
    middle = statistics.median_low([result.cpu_us for result in results])
    return next(result for result in results if result.cpu_us == middle)


@contextlib.contextmanager
def _bare_server(place: Path) -> Iterator[tuple[Process, Crowd]]:
    with (
        running([sys.executable, "-m", "bench.raw_broadcast"], place / "raw.log") as process,
        running([sys.executable, "-m", "bench.loader"], place / "loader.log") as loader,
    ):
        yield process, Crowd(loader, process.port, "any")
