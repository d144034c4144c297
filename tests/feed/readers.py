"""A client of the feed for tests: reads frames, keeps what it was sent, and puts messages together again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from covey.feed.feed import Feed, Subscription
from covey.feed.outputs import OutputTail
from covey.protocol.events import (
    DeltaKind,
    Event,
    MessageDelta,
    ToolOutputDelta,
    created,
    decode_event,
    encode_event,
)
from covey.protocol.messages import Finish, FinishPart, Message, Part, Text, TextPart, ToolCallPart, ToolResultPart
from covey.protocol.sse import FrameDecoder


def message(message_id: str, *parts: Part, session_id: str = "s", finished: bool = False) -> Message:
    if finished:
        parts = (*parts, FinishPart(data=Finish(reason="end_turn", time=1)))
    return Message(
        id=message_id, role="assistant", session_id=session_id, parts=parts, model="m", provider="p", created_at=1,
        updated_at=1, run_id="r",
    )  # fmt: skip


def text(value: str) -> TextPart:
    return TextPart(data=Text(text=value))


def delta(
    message_id: str, offset: int, value: str, *, part: int = 0, session_id: str = "s", kind: DeltaKind = "text"
) -> MessageDelta:
    return MessageDelta(
        message_id=message_id, session_id=session_id, run_id="r", part=part, kind=kind, offset=offset, delta=value
    )


def publish(feed: Feed, *events: Event) -> None:
    for event in events:
        feed.publish(feed.last_seq + 1, event, encode_event(event))


def stream(feed: Feed, pieces: list[str], message_id: str = "m") -> None:
    """A message that begins and grows."""
    publish(feed, created(message(message_id)))
    offset = 0
    for piece in pieces:
        feed.grow(delta(message_id, offset, piece))
        offset += len(piece)


async def tick() -> None:
    """One turn of the loop: what was published reaches those who wait."""
    await asyncio.sleep(0)


class Clock:
    """In the place of the feed's loop: timers fire when the test says so."""

    def __init__(self, feed: Feed) -> None:
        self.timers: list[tuple[float, Callable[[], Any]]] = []
        self.call_soon = feed._loop.call_soon
        feed._loop = self  # type: ignore[assignment] # all that the feed uses of it

    def call_later(self, delay: float, call: Callable[[], Any]) -> object:
        self.timers.append((delay, call))
        return call

    def fire(self) -> None:
        timers, self.timers = self.timers, []
        for _, call in timers:
            call()


class Reader:
    """What one client knows: the text of each part of each message, from whole messages and from deltas."""

    def __init__(self, feed: Feed, *, deltas: bool = True, session_id: str = "") -> None:
        self.subscription: Subscription = feed.subscribe(deltas=deltas, session_id=session_id)
        self.ids: list[str] = []
        self.events: list[Event] = []
        self.messages: dict[str, list[str]] = {}
        self.outputs: dict[str, list[ToolOutputDelta]] = {}
        """By call: what it printed, as it came."""
        self._decoder = FrameDecoder()
        for printed in feed.printed(session_id):
            self._take_output(printed)
        for known in feed.in_progress(session_id):
            self._take_message(known)

    def take(self) -> bytes:
        data = self.subscription.take()
        for frame in self._decoder.feed(data):
            event = decode_event(frame.data)
            assert event is not None
            self.ids.append(frame.id)
            self.events.append(event)
            if isinstance(event.payload, Message):
                self._take_message(event.payload)
            elif isinstance(event.payload, MessageDelta):
                self._take_delta(event.payload)
            elif isinstance(event.payload, ToolOutputDelta):
                self._take_output(event.payload)
        return data

    def take_all(self) -> None:
        while self.take():
            pass

    def _take_message(self, known: Message) -> None:
        self.messages[known.id] = [part_text(part) for part in known.parts]

    def _take_delta(self, growth: MessageDelta) -> None:
        parts = self.messages[growth.message_id]
        if growth.part == len(parts):
            parts.append("")
        assert growth.offset == len(parts[growth.part]), "a hole, or something sent twice"
        parts[growth.part] += growth.delta

    def _take_output(self, output: ToolOutputDelta) -> None:
        seen = self.outputs.setdefault(output.tool_call_id, [])
        assert output.offset == output.dropped + (printed_end(seen[-1]) if seen else 0), "a hole that nobody counted"
        seen.append(output)

    def output(self, call_id: str) -> str:
        """What it was sent of all that a call has printed."""
        return "".join(piece.delta for piece in self.outputs.get(call_id, ()))

    def dropped(self, call_id: str) -> int:
        return sum(piece.dropped for piece in self.outputs.get(call_id, ()))


def printed_end(output: ToolOutputDelta) -> int:
    return output.offset + len(output.delta.encode())


class Printer:
    """A running call that prints."""

    def __init__(self, feed: Feed, call_id: str = "c", session_id: str = "s") -> None:
        self.tail = OutputTail(session_id, "r", "m", call_id)
        self._feed = feed
        feed.open_output(self.tail)

    def print(self, text: str, *, dropped: int = 0) -> None:
        self._feed.show_output(self.tail, self.tail.end + dropped, text.encode())

    def end(self) -> None:
        self._feed.end_output(self.tail)


def part_text(part: Part) -> str:
    match part:
        case TextPart(data=data):
            return data.text
        case ToolCallPart(data=call):
            return call.input
        case ToolResultPart(data=result):
            return result.content
        case FinishPart(data=finish):
            return finish.reason
    raise AssertionError(part)
