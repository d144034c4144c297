"""One ordered log of events for a workspace, in memory only as far as an attached client has not read it yet.

Each event is encoded once, and clients that stand at the same place get the very same bytes. A client is a cursor: a
slow one costs nothing but the log's length, which is bounded. A client that falls out of the log is disconnected and
resumes from the store by its last event id. One that has read everything rests: it has no place in the log, and costs
nothing until something is published that is for it.

Nothing is published here that the journal has not written, except growth of messages, what running calls print, and
facts of the moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from covey.feed.entries import FeedEntry, output_entry, whole_entry
from covey.feed.merging import delta_frames, whole_frames
from covey.feed.outputs import OutputTail
from covey.feed.resting import Resting
from covey.protocol.events import Event, MessageDelta, ToolOutputDelta, encode_event
from covey.protocol.growth import GrowingMessage
from covey.protocol.messages import Message
from covey.protocol.sse import EventId, frame

log = logging.getLogger(__name__)

LOG_BYTES = 16 * 1024 * 1024
"""What a workspace keeps for clients that have not read it: some seconds of a hundred fast models."""
SEND_BYTES = 256 * 1024
"""The most that is handed to one client at once: it bounds what a stalled socket can hold."""
BATCHES_KEPT = 64
"""Encoded batches kept for others who stand at the same place: together no more than the log itself may hold."""
WHOLE_INTERVAL_S = 0.033
"""How often a client without deltas gets a message that grows."""


@dataclass(slots=True)
class _Batch:
    data: bytes
    cursor: int


class Subscription:
    """One client's place in the log. `take` never waits; `wait` returns when there may be something to take."""

    __slots__ = ("_closed", "_feed", "_push", "_waiter", "cursor", "deltas", "session_id")

    def __init__(self, feed: Feed, cursor: int, *, deltas: bool, session_id: str) -> None:
        self._feed = feed
        self.cursor = cursor
        self.deltas = deltas
        self.session_id = session_id
        self._waiter: asyncio.Future[None] | None = None
        self._push: Callable[[], bool] | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        """The stream must end: the feed closed, the client left, or it fell out of the log."""
        return self._closed

    def take(self) -> bytes:
        """What this client has not been given yet, up to a bound; empty when it is up to date."""
        return b"" if self._closed else self._feed.take(self)

    @property
    def is_up_to_date(self) -> bool:
        """There is nothing to take, and nothing else to notice."""
        return self.cursor == self._feed.head and not (self._closed or self._feed.closed)

    async def wait(self, push: Callable[[], bool] | None = None) -> None:
        """Until there is something to take, or to notice. Meanwhile `push` is asked first: if it takes it, wait on."""
        if self.is_up_to_date:
            self._push = push
            self._waiter = asyncio.get_running_loop().create_future()
            self._feed.rest(self)
            try:
                await self._waiter
            finally:
                self._feed.rouse(self)

    def wake(self) -> None:
        """Have it look whether there is something to take, or to notice."""
        self._feed.pass_over(self)
        self.go_on()

    def go_on(self) -> None:
        """It rests, and stands where it is to read on: it is pushed what there is, or rests no more."""
        if self._waiter is None or self._waiter.done():
            return
        if self._push is None or not self._pushed(self._push):
            self._feed.rouse(self)
            self._waiter.set_result(None)

    def _pushed(self, push: Callable[[], bool]) -> bool:
        try:
            return push()
        except Exception:  # one client must not keep the others from being woken; its own task will see for itself
            log.exception("a client could not be written to")
            return False

    def close(self) -> None:
        self._closed = True
        self._feed.remove(self)
        self.wake()


class Feed:
    """The log of one workspace and everybody who reads it."""

    def __init__(self, epoch: int, last_seq: int) -> None:
        self.epoch = epoch
        self.last_seq = last_seq
        self.live: dict[str, GrowingMessage] = {}
        """Messages in progress, as published so far: what a client that attaches now must know first."""
        self._outputs: dict[OutputTail, None] = {}
        """What running calls have printed so far, in the order in which they began to."""
        self.on_event: Callable[[Event], None] = lambda event: None
        self._loop = asyncio.get_running_loop()
        self._log: list[FeedEntry] = []
        self._base = 0
        self._bytes = 0
        self._announced = 0
        """The head when readers were last woken: what comes after it, nobody has had a chance to read yet."""
        self._subscriptions: set[Subscription] = set()
        self._reading: set[Subscription] = set()
        """Those that do not rest: the log is kept as far as these have not read it."""
        self._resting: Resting[Subscription] = Resting()
        """The others."""
        self._readers: Counter[tuple[str, bool]] = Counter()
        """How many there are, by their session and by whether they take deltas."""
        self._batches: dict[tuple[int, bool, str], _Batch] = {}
        self._wake_due = False
        self._grown: set[str] = set()
        self._tick: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def head(self) -> int:
        """The place after the last entry."""
        return self._base + len(self._log)

    @property
    def readers(self) -> int:
        return len(self._subscriptions)

    # ── publishing ──

    def publish(self, seq: int, event: Event, encoded: bytes) -> None:
        """A durable event, as the journal has written it."""
        assert seq == self.last_seq + 1, f"event {seq} after {self.last_seq}"
        self.last_seq = seq
        message_id = ""
        if isinstance(event.payload, Message):
            message_id = event.payload.id
            self._follow(event.payload, gone=event.change == "deleted")
        if self._subscriptions:
            self._append(
                FeedEntry(event.session_id, frame=frame(encoded, EventId(self.epoch, seq)), message_id=message_id)
            )
        self.on_event(event)

    def grow(self, delta: MessageDelta) -> None:
        """A message in progress grew.

        What does not continue the message as it was published is not published either: a whole message before it was
        refused by the store, and the next one will contain everything.
        """
        live = self.live.get(delta.message_id)
        if live is None:
            return
        begun = live.message() if live.begin(delta) else None
        if live.grow(delta) is None:
            return
        if self._is_read(delta.session_id, deltas=True):
            if begun:  # a new part is a change of structure
                self._append(whole_entry(begun, "deltas"))
            self._append(FeedEntry(delta.session_id, delta=delta))
        if self._is_read(delta.session_id, deltas=False):
            self._grown.add(delta.message_id)
            if self._tick is None:
                self._tick = self._loop.call_later(WHOLE_INTERVAL_S, self._publish_whole)

    def open_output(self, tail: OutputTail) -> None:
        """A call begins to print: whoever attaches from now on gets the tail first."""
        self._outputs[tail] = None

    def show_output(self, tail: OutputTail, offset: int, data: bytes) -> None:
        """A running call has printed this: whole characters, at this place of all that it has printed."""
        entry = output_entry(tail, offset, data)
        if any(self._is_read(tail.session_id, deltas=deltas) for deltas in (True, False)):
            self._append(entry)

    def end_output(self, tail: OutputTail) -> None:
        """Nothing more comes: the call has its result, or none will ever come."""
        self._outputs.pop(tail, None)

    def announce(self, event: Event) -> None:
        """A fact of the moment, which nobody who comes later needs."""
        if self._subscriptions:
            self.announce_frame(frame(encode_event(event)), event.session_id)

    def announce_frame(self, data: bytes, session_id: str = "") -> None:
        """The same, as it is sent."""
        if self._subscriptions:
            self._append(FeedEntry(session_id, frame=data))

    def close(self) -> None:
        """End every stream, once it has been given what is in the log."""
        self._closed = True
        for subscription in list(self._subscriptions):
            subscription.wake()

    @property
    def closed(self) -> bool:
        return self._closed

    def _follow(self, message: Message, *, gone: bool) -> None:
        if gone or message.finish or message.role != "assistant":
            self.live.pop(message.id, None)
        else:
            self.live[message.id] = GrowingMessage(message)

    def _publish_whole(self) -> None:
        self._tick = None
        for message_id in self._grown:
            if live := self.live.get(message_id):
                self._append(whole_entry(live.message(), "whole"))
        self._grown.clear()

    def _append(self, entry: FeedEntry) -> None:
        self._log.append(entry)
        self._bytes += entry.size
        if not self._wake_due:
            self._wake_due = True
            self._loop.call_soon(self._wake)

    def _wake(self) -> None:
        """Once for all that was published in this turn of the loop: trim, then wake those who wait for any of it."""
        self._wake_due = False
        self._batches.clear()
        head, fresh = self.head, self._log[max(0, self._announced - self._base) :]
        due = self._resting.due({entry.session_id for entry in fresh})
        for subscription in due:
            if subscription.cursor < self._announced:
                subscription.cursor = self._announced
        self._trim(self._announced if due else head)
        for subscription in due:
            subscription.go_on()
        self._announced = head

    def _trim(self, unread: int) -> None:
        """Forget what is read by those who read, and before `unread`; and more, if that is too much."""
        read = min((subscription.cursor for subscription in self._reading), default=unread)
        drop = max(0, min(read, unread) - self._base)
        size = self._bytes - sum(entry.size for entry in self._log[:drop])
        while size > LOG_BYTES and self._base + drop < self._announced:
            size -= self._log[drop].size
            drop += 1
        if drop:
            del self._log[:drop]
            self._base += drop
            self._bytes = size
        for subscription in [s for s in self._reading if s.cursor < self._base]:
            subscription.close()

    def rest(self, subscription: Subscription) -> None:
        """It has read all that is for it, and waits."""
        self._reading.discard(subscription)
        self._resting.add(subscription)

    def pass_over(self, subscription: Subscription) -> None:
        """If it rests, what was published meanwhile was not for it: it would read on after that."""
        if subscription in self._resting:
            subscription.cursor = max(subscription.cursor, self._announced)

    def rouse(self, subscription: Subscription) -> None:
        """It reads on, if it was resting."""
        if subscription in self._resting:
            self.pass_over(subscription)
            self._resting.discard(subscription)
            self._reading.add(subscription)

    # ── reading ──

    def subscribe(self, *, deltas: bool, session_id: str = "") -> Subscription:
        """Start reading after the last entry."""
        subscription = Subscription(self, self.head, deltas=deltas, session_id=session_id)
        self._subscriptions.add(subscription)
        self._reading.add(subscription)
        self._readers[session_id, deltas] += 1
        return subscription

    def remove(self, subscription: Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
            self._reading.discard(subscription)
            self._resting.discard(subscription)
            kind = (subscription.session_id, subscription.deltas)
            self._readers[kind] -= 1
            if not self._readers[kind]:
                del self._readers[kind]
            if not self._subscriptions:
                self._base, self._bytes = self.head, 0
                self._log.clear()
                self._batches.clear()

    def _is_read(self, session_id: str, *, deltas: bool) -> bool:
        return ("", deltas) in self._readers or (session_id, deltas) in self._readers

    def in_progress(self, session_id: str = "") -> list[Message]:
        """The messages in progress, as published up to the head of the log."""
        messages = (live.message() for live in self.live.values())
        return [message for message in messages if session_id in ("", message.session_id)]

    def printed(self, session_id: str = "") -> list[ToolOutputDelta]:
        """What running calls have printed, as far as it is kept, up to the head of the log."""
        return [tail.delta() for tail in self._outputs if session_id in ("", tail.session_id)]

    def take(self, subscription: Subscription) -> bytes:
        data = b""
        while not data and subscription.cursor < self.head:  # what is not for this client is passed over
            key = (subscription.cursor, subscription.deltas, subscription.session_id)
            batch = self._batches.get(key)
            if batch is None:
                if len(self._batches) >= BATCHES_KEPT:
                    self._batches.clear()
                batch = self._batches[key] = self._batch(subscription)
            subscription.cursor = batch.cursor
            data = batch.data
        return data

    def _batch(self, subscription: Subscription) -> _Batch:
        """The bytes for everybody who stands where this client stands."""
        start = subscription.cursor - self._base
        end, size = start, 0
        while end < len(self._log) and size < SEND_BYTES:
            size += self._log[end].size_to_send
            end += 1
        entries: Iterable[FeedEntry] = self._log[start:end]
        if subscription.session_id:
            entries = [entry for entry in entries if entry.session_id in ("", subscription.session_id)]
        frames = delta_frames(entries) if subscription.deltas else whole_frames(entries)
        return _Batch(b"".join(frames), self._base + end)
