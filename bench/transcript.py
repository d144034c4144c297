"""What the transcript of the terminal face costs: opening it, a delta in it, and a screen, however long it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from bench.report import Figure
from bench.rig import Options
from covey.client.view.inputs import MessagesLoaded, SessionOpened
from covey.client.view.view import View
from covey.protocol.events import MessageDelta, updated
from covey.protocol.messages import Finish, FinishPart, Message, Role, Text, TextPart
from covey.tui.transcript.shown import ShownTranscript

NOW = 1_800_000_000.0
COLUMNS, HEIGHT = 120, 40
ROUNDS = 5
DELTAS = 500
ALLOWED = 1.5
"""Noise of a shared machine. Whatever is rendered of more than a screen would be a hundred times above."""
ANSWER = (
    "The test reads the clock **twice**: once in `arrange`, and once in the assertion that follows it.\n\n" * 6
    + "- a list item with some words\n- another one\n\n```python\ndef f(x):\n    return x + 1  # why\n```\n\n"
)


def measure(options: Options) -> Iterator[Figure]:
    turns = options.size(5000, 500)
    short, long = _view(20), _view(turns)
    tokens = turns * len(ANSWER) // 4
    yield from _pair("open, one screen", short, long, _opened, 1e3, "ms", tokens)
    yield from _pair("a delta and its frame", short, long, _delta_cost(1), 1e6 / DELTAS, "us", tokens)
    yield from _pair("a frame in which nothing changed", short, long, _still, 1e6 / DELTAS, "us", tokens)
    begun, grown = _delta_cost(0), _delta_cost(200_000)
    first, last = min(begun(short) for _ in range(ROUNDS)), min(grown(short) for _ in range(ROUNDS))
    yield Figure("transcript: a delta in an open fence of 200 kB", last * 1e6 / DELTAS, "us")
    yield Figure("transcript: in one of 200 kB / in a new one", last / first, "x", 3.0)


def _pair(
    name: str, short: View, long: View, cost: Callable[[View], float], scale: float, unit: str, tokens: int
) -> Iterator[Figure]:
    """In turns, so that a busy neighbour meets both."""
    pairs = [(cost(short), cost(long)) for _ in range(ROUNDS)]
    first, last = min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
    yield Figure(f"transcript: {name}, {tokens:,} tokens", last * scale, unit)
    yield Figure(f"transcript: {name}, long / short", last / first, "x", ALLOWED)


def _view(turns: int) -> View:
    view = View()
    view.apply(SessionOpened("s"))
    load = next(iter(view.loads)).load
    messages = [each for number in range(turns) for each in _turn(number)]
    view.apply(MessagesLoaded(load, tuple(messages)))
    return view


def _turn(number: int) -> Iterator[Message]:
    yield _message(f"u{number}", "user", TextPart(data=Text(text=f"question {number}")))
    finish = FinishPart(data=Finish(reason="end_turn", time=1))
    yield _message(f"a{number}", "assistant", TextPart(data=Text(text=ANSWER)), finish)


def _message(message_id: str, role: Role, *parts: TextPart | FinishPart) -> Message:
    return Message(
        id=message_id,
        role=role,
        session_id="s",
        parts=parts,
        model="m",
        provider="p",
        created_at=1,
        updated_at=1,
        run_id="r",
    )


def _opened(view: View) -> float:
    before = time.process_time()
    transcript = ShownTranscript()
    transcript.sync(view, NOW)
    rows = transcript.rows(COLUMNS, HEIGHT)
    spent = time.process_time() - before
    assert any("return x + 1" in row.text for row in rows)
    return spent


def _still(view: View) -> float:
    transcript = ShownTranscript()
    transcript.sync(view, NOW)
    shown = transcript.rows(COLUMNS, HEIGHT)
    before = time.process_time()
    for _ in range(DELTAS):
        transcript.sync(view, NOW)
        assert all(one is other for one, other in zip(transcript.rows(COLUMNS, HEIGHT), shown, strict=True))
    return time.process_time() - before


def _delta_cost(length: int) -> Callable[[View], float]:
    """Each delta by itself, with a frame after it: that is more than any face draws."""

    def cost(view: View) -> float:
        begun = ("```python\n" + "value = compute(1, 'text')  # why\n" * (length // 34 + 1)) if length != 1 else ""
        view.event(updated(_message("new", "assistant", TextPart(data=Text(text=begun)))))
        transcript = ShownTranscript()
        transcript.sync(view, NOW)
        transcript.rows(COLUMNS, HEIGHT)
        at, spent = len(begun), 0.0
        for number in range(DELTAS):
            text = "word \n" if number % 10 == 0 else "word "
            view.event(updated(_delta(text, at)))
            at += len(text)
            before = time.process_time()
            transcript.sync(view, NOW)
            transcript.rows(COLUMNS, HEIGHT)
            spent += time.process_time() - before
        return spent

    return cost


def _delta(text: str, offset: int) -> MessageDelta:
    return MessageDelta(message_id="new", session_id="s", run_id="r", part=0, kind="text", offset=offset, delta=text)
