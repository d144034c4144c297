"""Short turns: what one costs the server, and whether a long past, or clients of other sessions, make it cost more."""

from __future__ import annotations

from collections.abc import Iterator

from bench.report import Figure
from bench.rig import Options, Rig, rig
from bench.wire import TERMINAL, Stream

ALLOWED_MS = 7.0
EARLY = 30
"""So many turns the model sees where the cost is measured: at the beginning of a session, and after its summary."""
LATE = 2_000
ALLOWED_LATE = 1.5
"""Turns that the model does not see may not count; the rest is noise of a shared machine."""
BETWEEN_SUMMARIES = 100
"""Turns on the way to the late ones. They are not measured, and cost less if the model sees few of them."""
ELSEWHERE = 200
"""Clients that follow another session."""
ALLOWED_ELSEWHERE = 1.25
SAMPLE = 20
ROUNDS = 5


def measure(options: Options) -> Iterator[Figure]:
    rounds = options.size(ROUNDS, 3)
    with rig(options) as made:
        stream = made.stream()
        yield from _short(made, stream, rounds)
        yield from _late(made, stream, rounds, options.size(LATE, 400))
        stream.close()


def _short(made: Rig, stream: Stream, rounds: int) -> Iterator[Figure]:
    """Each in a session of its own."""

    def cheapest() -> float:
        return min(_cost(made, stream, [made.session() for _ in range(SAMPLE)]) for _ in range(rounds))

    alone = cheapest()
    yield Figure("turns: CPU of a short one", alone, "ms", ALLOWED_MS)
    other = made.session()
    others = [made.stream(other) for _ in range(ELSEWHERE)]
    beside = cheapest()
    yield Figure(f"turns: {ELSEWHERE} clients of another session / none", beside / alone, "x", ALLOWED_ELSEWHERE)
    for each in others:
        each.close()


def _late(made: Rig, stream: Stream, rounds: int, late: int) -> Iterator[Figure]:
    """A session at its beginning and one with a long past, by turns: the model sees as much of both."""
    young, old = made.session(), made.session()
    for _ in range(0, late, BETWEEN_SUMMARIES):
        _take(made, stream, [old] * BETWEEN_SUMMARIES)
        _summarise(made, stream, old)
    _take(made, stream, [young, old] * EARLY)
    costs = [(_cost(made, stream, [young] * SAMPLE), _cost(made, stream, [old] * SAMPLE)) for _ in range(rounds)]
    first, last = (min(each) for each in zip(*costs, strict=True))
    yield Figure(f"turns: CPU of turn {EARLY}", first, "ms")
    yield Figure(f"turns: CPU of turn {late:,}, {EARLY} after a summary", last, "ms")
    yield Figure(f"turns: turn {late:,} / turn {EARLY}", last / first, "x", ALLOWED_LATE)


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
