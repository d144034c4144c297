"""A delta costs a face the same, however long the session is that it shows."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.report import Figure
from bench.rig import Options
from covey.client.view.inputs import MessagesLoaded, SessionOpened
from covey.client.view.view import View
from covey.protocol.events import MessageDelta, updated
from covey.protocol.messages import Finish, FinishPart, Message, Text, TextPart

DELTAS = 20_000
ROUNDS = 5
ALLOWED = 1.25
"""Noise of a shared machine; anything that grows with the history would be a thousand times above."""


def measure(options: Options) -> Iterator[Figure]:
    short, long = 100, options.size(100_000, 10_000)
    views = {count: _view(count) for count in (short, long)}
    costs: dict[int, list[float]] = {short: [], long: []}
    for number in range(ROUNDS):  # in turns, so that a busy neighbour meets both
        for count, view in views.items():
            costs[count].append(_cost(view, number))
    first, last = min(costs[short]), min(costs[long])
    yield Figure(f"view: CPU per delta after {short} messages", first, "us")
    yield Figure(f"view: CPU per delta after {long:,} messages", last, "us")
    yield Figure("view: long / short", last / first, "x", ALLOWED)


def _view(count: int) -> View:
    view = View()
    view.apply(SessionOpened("s"))
    load = next(iter(view.loads)).load
    view.apply(MessagesLoaded(load, tuple(_message(f"m{number}", finished=True) for number in range(count))))
    return view


def _cost(view: View, number: int) -> float:
    """Microseconds for each delta of a new answer."""
    message_id = f"new{number}"
    view.event(updated(_message(message_id, finished=False)))
    deltas = [
        updated(
            MessageDelta(
                message_id=message_id, session_id="s", run_id="r", part=0, kind="text", offset=5 * each, delta="word "
            )
        )
        for each in range(DELTAS)
    ]
    before = time.process_time()
    for delta in deltas:
        view.event(delta)
    spent = time.process_time() - before
    found = view.conversation.messages.get(message_id)
    assert found and len(found.text) == 5 * DELTAS
    return spent * 1e6 / DELTAS


def _message(message_id: str, *, finished: bool) -> Message:
    text = TextPart(data=Text(text="some words" if finished else ""))
    parts = (text, FinishPart(data=Finish(reason="end_turn", time=1))) if finished else (text,)
    return Message(
        id=message_id,
        role="assistant",
        session_id="s",
        parts=parts,
        model="m",
        provider="p",
        created_at=1,
        updated_at=1,
        run_id="r",
    )
