"""Short turns: what one costs the server, and whether it costs more in a session with a long past."""

from __future__ import annotations

from collections.abc import Iterator

from bench.report import Figure
from bench.rig import Options, Rig, rig
from bench.wire import TERMINAL, Stream

ALLOWED_MS = 7.0
EARLY = 30
"""So many turns the model sees where the cost is measured: at the beginning of a session, and after its summary."""
LATE = 2_000
ALLOWED = 1.5
"""Turns that the model does not see may not count; the rest is noise of a shared machine."""
BETWEEN_SUMMARIES = 100
"""Turns on the way to the late ones. They are not measured, and cost less if the model sees few of them."""
SAMPLE = 20
ROUNDS = 5


def measure(options: Options) -> Iterator[Figure]:
    rounds, late = options.size(ROUNDS, 2), options.size(LATE, 400)
    with rig(options) as made:
        stream = made.stream()
        fresh = min(_cost(made, stream, [made.session() for _ in range(SAMPLE)]) for _ in range(rounds))
        yield Figure("turns: CPU of a short one, first of its session", fresh, "ms", ALLOWED_MS)
        session_id = made.session()
        _take(made, stream, [session_id] * EARLY)
        early = _best(made, stream, session_id, rounds)
        for _ in range(0, late, BETWEEN_SUMMARIES):
            _take(made, stream, [session_id] * BETWEEN_SUMMARIES)
            _summarise(made, stream, session_id)
        _take(made, stream, [session_id] * EARLY)
        after = _best(made, stream, session_id, rounds)
        stream.close()
    yield Figure(f"turns: CPU of turn {EARLY}", early, "ms")
    yield Figure(f"turns: CPU of turn {late:,}, {EARLY} after a summary", after, "ms")
    yield Figure(f"turns: turn {late:,} / turn {EARLY}", after / early, "x", ALLOWED)


def _best(made: Rig, stream: Stream, session_id: str, rounds: int) -> float:
    """The cheapest of some rounds, of which each begins with as many visible turns as the one before it ended with."""
    return min(_cost(made, stream, [session_id] * SAMPLE) for _ in range(rounds))


def _cost(made: Rig, stream: Stream, session_ids: list[str]) -> float:
    """Milliseconds of server CPU for each turn, of one in each of these sessions."""
    before = made.server.cpu_s()
    _take(made, stream, session_ids)
    return (made.server.cpu_s() - before) * 1e3 / len(session_ids)


def _take(made: Rig, stream: Stream, session_ids: list[str]) -> None:
    for session_id in session_ids:
        made.prompt(session_id, "chunks=5")
        stream.until(TERMINAL)
        stream.forget()


def _summarise(made: Rig, stream: Stream, session_id: str) -> None:
    made.caller.call("POST", f"{made.agent}/sessions/{session_id}/summarize", {})
    stream.until(TERMINAL)
    stream.forget()
