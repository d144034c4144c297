"""How long a person waits: for the 202, for the first word, for each further word, and for a cancel to take hold."""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.loader_client import crowd
from bench.report import Figure, best_round, percentile
from bench.rig import Options, Rig, prompt_body, rig
from bench.wire import DELTA, TERMINAL, Stream

STAMP = re.compile(rb'"delta":"~(\d+)"')
ROUNDS = 3
FSYNCS = 50
CHUNK_GAP_S = 0.02
CROWD = 200


def measure(options: Options) -> Iterator[Figure]:
    with rig(options) as made:
        samples = options.size(150, 40)
        yield from _prompts(made, samples)
        yield from _cancels(made, options.size(60, 20))
        yield from _chunks(made, 1, options.size(200, 60), target_ms=1.0)
        yield from _chunks(made, CROWD, options.size(200, 60), target_ms=7.0)


def _prompts(made: Rig, samples: int) -> Iterator[Figure]:
    stream = made.stream()
    rounds, syncs = [], []
    for _ in range(ROUNDS):
        syncs.append(_fsyncs(made.place))
        rounds.append([_prompt(made, stream) for _ in range(samples)])
    stream.close()
    accepted = best_round([[sample[0] for sample in samples] for samples in rounds])
    asked = best_round([[sample[1] for sample in samples] for samples in rounds])
    first = best_round([[sample[2] for sample in samples] for samples in rounds])
    synced = statistics.median(best_round(syncs))
    yield _median("prompt -> 202", accepted, 1.6, f"a bare fsync takes {synced:.2f} ms")
    yield _high("prompt -> 202", accepted)
    yield _median("prompt -> first delta", first, 6.0)
    yield _high("prompt -> first delta", first)
    yield _median("  of which prompt -> request at the model", asked)


def _prompt(made: Rig, stream: Stream) -> tuple[float, float, float]:
    """Milliseconds until the 202, until the model was asked, and until its first word is here."""
    body = prompt_body(made.session(), "chunks=1 stamp=1")
    stream.forget()
    start = time.perf_counter()
    made.caller.send("POST", made.agent, body)
    status, data = made.caller.receive()
    accepted = time.perf_counter()
    if status != 202:
        raise RuntimeError(f"{status} {data!r}")
    first = stream.until(DELTA)
    stream.until(TERMINAL)
    stamp = STAMP.search(stream.data)
    assert stamp
    return (accepted - start) * 1e3, int(stamp[1]) / 1e6 - start * 1e3, (first - start) * 1e3


def _fsyncs(place: Path) -> list[float]:
    """What the disk itself takes for two pages, in a file that has its size already: what a store's log looks like."""
    descriptor = os.open(place / "fsync", os.O_WRONLY | os.O_CREAT)
    os.pwrite(descriptor, bytes(8192 * FSYNCS), 0)
    os.fsync(descriptor)
    times = []
    for number in range(FSYNCS):
        os.pwrite(descriptor, bytes(8192), number * 8192)
        start = time.perf_counter()
        os.fdatasync(descriptor)
        times.append((time.perf_counter() - start) * 1e3)
    os.close(descriptor)
    return times


def _cancels(made: Rig, samples: int) -> Iterator[Figure]:
    stream = made.stream()
    rounds = [[_cancel(made, stream) for _ in range(samples)] for _ in range(ROUNDS)]
    stream.close()
    times = best_round(rounds)
    yield _median("cancel -> terminal event", times, 1.5)
    yield _high("cancel -> terminal event", times)


def _cancel(made: Rig, stream: Stream) -> float:
    session_id = made.session()
    stream.forget()
    made.prompt(session_id, "chunks=1000 gap=0.02")
    stream.until(DELTA)
    start = time.perf_counter()
    made.caller.send("POST", f"{made.agent}/sessions/{session_id}/cancel")
    ended = stream.until(TERMINAL)
    made.caller.receive()
    return (ended - start) * 1e3


def _chunks(made: Rig, clients: int, chunks: int, target_ms: float) -> Iterator[Figure]:
    rounds = []
    with crowd(made, clients) as watchers:
        for _ in range(ROUNDS):
            watchers.start_watching(stamps=True)
            made.prompt(made.session(), f"chunks={chunks} gap={CHUNK_GAP_S} stamp=1")
            rounds.append(watchers.seen().latencies_ms)
    times = best_round(rounds)
    name = f"chunk -> client, {clients} client{'s' if clients > 1 else ''}"
    yield _median(name, times, target_ms)
    yield _high(name, times)


def _median(name: str, times: Sequence[float], target: float | None = None, note: str = "") -> Figure:
    return Figure(f"{name}, median", statistics.median(times), "ms", target, note=note)


def _high(name: str, times: Sequence[float]) -> Figure:
    return Figure(f"{name}, p99", percentile(times, 0.99), "ms")
