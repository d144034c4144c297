"""One answer of 50,000 words: the last ones may not cost more than the first ones."""

from __future__ import annotations

from collections.abc import Iterator

from bench.report import Figure
from bench.rig import Options, Rig, rig

GAP_S = 0.0003
"""Quick, but not so quick that all of them come in one read."""
ALLOWED = 1.25
"""Noise of a shared machine; anything that grows with the text would be far above."""
ROUNDS = 3


def measure(options: Options) -> Iterator[Figure]:
    words = options.size(50_000, 10_000)
    with rig(options) as made:
        costs = [_cost(made, words) for _ in range(ROUNDS)]
    first, last = min(cost[0] for cost in costs), min(cost[1] for cost in costs)
    yield Figure(f"long answer: CPU per word, first tenth of {words:,}", first, "us")
    yield Figure(f"long answer: CPU per word, last tenth of {words:,}", last, "us")
    yield Figure("long answer: last / first", last / first, "x", ALLOWED)


def _cost(made: Rig, words: int) -> tuple[float, float]:
    """Microseconds of server CPU for each word in the first and in the last tenth. The very first words do not count:
    they share the moment with the start of the run."""
    tenth = words // 10
    stream = made.stream()
    made.prompt(made.session(), f"chunks={words} gap={GAP_S}")
    marks: list[tuple[int, float]] = []
    seen = 0
    for goal in (100, tenth, words - tenth, words - 100):
        while seen < goal:
            seen += stream.receive().count(b"~")
        marks.append((seen, made.server.cpu_s()))
    while b'"run_complete"' not in stream.receive():
        pass
    stream.close()
    (start, cpu0), (head, cpu1), (tail, cpu2), (end, cpu3) = marks
    return (cpu1 - cpu0) * 1e6 / (head - start), (cpu3 - cpu2) * 1e6 / (end - tail)
