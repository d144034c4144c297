"""Many tool calls in one answer: one of 128 may not cost more than one of 16, and one too many next to nothing."""

from __future__ import annotations

from collections.abc import Iterator

from bench.report import Figure
from bench.rig import Options, Rig, rig
from bench.wire import TERMINAL

FEW, MANY, TOO_MANY = 16, 128, 4096
"""The second is what is run of one answer at most (`lifecycle/reply.py`)."""
ALLOWED = 1.25
"""Noise of a shared machine; anything that grows with the number of calls would be far above."""
ALLOWED_DROPPED = 0.2
"""What is not run is still received and read."""
ROUNDS = 7


def measure(options: Options) -> Iterator[Figure]:
    rounds = options.size(ROUNDS, 3)
    with rig(options) as made:
        one, few, many, too_many = (
            min(_cost(made, count) for _ in range(rounds)) for count in (1, FEW, MANY, TOO_MANY)
        )
    of_few, of_many = (few - one) / (FEW - 1), (many - one) / (MANY - 1)
    dropped = (too_many - many) / (TOO_MANY - MANY)
    yield Figure(f"tool calls: CPU per call, {FEW} in an answer", of_few, "us")
    yield Figure(f"tool calls: CPU per call, {MANY} in an answer", of_many, "us")
    yield Figure(f"tool calls: one of {MANY} / one of {FEW}", of_many / of_few, "x", ALLOWED)
    yield Figure("tool calls: one too many / one that is run", dropped / of_many, "x", ALLOWED_DROPPED)


def _cost(made: Rig, calls: int) -> float:
    """Microseconds of server CPU for a run whose first answer has so many calls."""
    stream = made.stream()
    session_id = made.session()
    before = made.server.cpu_s()
    made.prompt(session_id, f"calls={calls}")
    stream.until(TERMINAL)
    stream.close()
    return (made.server.cpu_s() - before) * 1e6
