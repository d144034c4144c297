"""The feed: one order for everybody, each event encoded once, and a slow reader costs nobody anything."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.feed.readers import Reader, delta, message, text

from covey.feed import feed as feed_module
from covey.feed.feed import Feed
from covey.protocol.events import Event, Presence, created, encode_event, updated
from covey.protocol.messages import Message, ToolCall, ToolCallPart

pytestmark = pytest.mark.anyio


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
    """One turn of the loop: what was published is told to whoever waits."""
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


# ── order ──


async def test_all_readers_get_all_events_in_one_order_with_ids_without_gaps() -> None:
    feed = Feed(7, 41)
    readers = [Reader(feed), Reader(feed, deltas=False)]
    publish(feed, created(message("a")), created(message("b")), updated(message("a", finished=True)))
    for reader in readers:
        reader.take_all()
        assert reader.ids == ["7.42", "7.43", "7.44"]
        assert [event.payload.id for event in reader.events] == ["a", "b", "a"]
    assert feed.last_seq == 44


async def test_a_number_that_is_not_the_next_one_is_a_bug_and_is_refused() -> None:
    feed = Feed(1, 5)
    event = created(message("a"))
    for wrong in (5, 7):
        with pytest.raises(AssertionError):
            feed.publish(wrong, event, encode_event(event))


async def test_who_subscribes_gets_what_follows_and_nothing_from_before() -> None:
    feed = Feed(1, 0)
    first = Reader(feed)
    publish(feed, created(message("a")))
    second = Reader(feed)
    publish(feed, created(message("b")))
    first.take_all()
    second.take_all()
    assert first.ids == ["1.1", "1.2"]
    assert second.ids == ["1.2"]


async def test_facts_of_the_moment_have_no_id_and_do_not_count() -> None:
    feed = Feed(1, 0)
    reader = Reader(feed)
    feed.announce(updated(Presence(client_id="c", session_id="", attached=True)))
    publish(feed, created(message("a")))
    reader.take_all()
    assert reader.ids == ["", "1.1"]


async def test_growth_of_a_message_that_is_not_in_progress_is_not_told() -> None:
    feed = Feed(1, 0)
    reader = Reader(feed)
    feed.grow(delta("unknown", 0, "x"))
    publish(feed, created(message("m")), updated(message("m", finished=True)))
    feed.grow(delta("m", 0, "late"))
    reader.take_all()
    assert [event.type for event in reader.events] == ["message", "message"]
    assert feed.live == {}


# ── cost ──


async def test_clients_at_the_same_place_get_the_very_same_bytes() -> None:
    feed = Feed(1, 0)
    readers = [feed.subscribe(deltas=True) for _ in range(50)]
    stream(feed, ["Hel", "lo"])
    await tick()
    first, *others = [reader.take() for reader in readers]
    assert first.count(b"data: ") == 3
    assert all(other is first for other in others)


async def test_each_event_is_encoded_once_however_many_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = 0

    def counting(event: Event) -> bytes:
        nonlocal encoded
        encoded += 1
        return encode_event(event)

    monkeypatch.setattr(feed_module, "encode_event", counting)
    feed = Feed(1, 0)
    readers = [Reader(feed, session_id=session_id) for session_id in ("", "s") for _ in range(15)]
    publish(feed, created(message("m")))
    for number in range(400):
        feed.grow(delta("m", number, "x"))
        if number % 7 == 0:
            await tick()
            for reader in readers:
                reader.take_all()
    for reader in readers:
        reader.take_all()
        assert reader.messages["m"] == ["x" * 400]
    assert encoded == 400


async def test_without_readers_nothing_is_kept_and_nothing_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed(1, 0)
    reader = Reader(feed)
    stream(feed, ["a"])
    await tick()
    reader.take_all()
    reader.subscription.close()
    assert feed._batches == {}
    monkeypatch.setattr(feed_module, "encode_event", lambda event: pytest.fail("encoded for nobody"))
    feed.grow(delta("m", 1, "b"))
    feed.announce(updated(Presence(client_id="c", session_id="", attached=True)))
    feed.publish(feed.last_seq + 1, created(message("n")), b"{}")
    await tick()
    assert (feed.readers, feed._log, feed._bytes, feed._batches) == (0, [], 0, {})
    assert [known.text for known in feed.in_progress()] == ["ab", ""]


async def test_what_everybody_has_read_is_forgotten() -> None:
    feed = Feed(1, 0)
    fast, slow = Reader(feed), Reader(feed)
    for number in range(100):
        publish(feed, created(message(str(number), finished=True)))
        fast.take_all()
        await tick()
    assert len(feed._log) == 100
    slow.take_all()
    publish(feed, created(message("last", finished=True)))
    await tick()
    assert len(feed._log) == 1
    assert feed._bytes == feed._log[0].size
    assert feed.live == {}


async def test_batches_for_readers_at_many_places_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "SEND_BYTES", 1)
    feed = Feed(1, 0)
    readers = [Reader(feed) for _ in range(3)]
    publish(feed, *(created(message(str(number), finished=True)) for number in range(500)))
    await tick()
    for reader in readers:
        reader.take_all()
        assert len(reader.ids) == 500
        assert len(feed._batches) <= feed_module.BATCHES_KEPT


async def test_one_take_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "SEND_BYTES", 10_000)
    feed = Feed(1, 0)
    reader = Reader(feed)
    publish(feed, *(created(message(str(number), text("x" * 1000), finished=True)) for number in range(100)))
    sizes = []
    while data := reader.take():
        sizes.append(len(data))
    assert len(reader.ids) == 100
    assert max(sizes) < 10_000 + 2_000


# ── waking ──


async def test_one_turn_of_the_loop_is_told_in_one_go() -> None:
    feed = Feed(1, 0)
    reader = Reader(feed)
    waiting = asyncio.create_task(reader.subscription.wait())
    await tick()
    for number in range(10):
        publish(feed, created(message(str(number))))
    assert not waiting.done()
    await asyncio.wait_for(waiting, 5)
    reader.take()
    assert len(reader.ids) == 10


async def test_nobody_sleeps_through_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """Published before the wait, while it begins, or after it: it returns all the same."""
    feed = Feed(1, 0)
    reader = Reader(feed)
    for turns in range(4):
        publisher = asyncio.create_task(_publish_after(feed, turns))
        while not reader.take():
            await asyncio.wait_for(reader.subscription.wait(), 5)
        await publisher
    assert len(reader.ids) == 4


async def _publish_after(feed: Feed, turns: int) -> None:
    for _ in range(turns):
        await tick()
    publish(feed, created(message(f"after {turns}")))


async def test_a_wait_that_was_cancelled_leaves_the_feed_working() -> None:
    feed = Feed(1, 0)
    reader = Reader(feed)
    waiting = asyncio.create_task(reader.subscription.wait())
    await tick()
    waiting.cancel()
    await asyncio.wait({waiting})
    publish(feed, created(message("a")))
    await tick()
    reader.take_all()
    assert reader.ids == ["1.1"]


async def test_closing_wakes_everybody_and_lets_them_read_to_the_end() -> None:
    feed = Feed(1, 0)
    idle, behind = Reader(feed), Reader(feed)
    waiting = asyncio.create_task(idle.subscription.wait())
    await tick()
    publish(feed, created(message("last words")))
    feed.close()
    await asyncio.wait_for(waiting, 5)
    for reader in (idle, behind):
        assert not reader.subscription.closed
        reader.take_all()
        assert reader.ids == ["1.1"]
        await asyncio.wait_for(reader.subscription.wait(), 5)  # a closed feed is never waited for


# ── slow readers ──


async def test_a_slow_reader_gets_the_same_text_in_fewer_events() -> None:
    feed = Feed(1, 0)
    slow, fast = Reader(feed), Reader(feed)
    pieces = random.Random(3).choices(["wörd ", "👋", "\n", '"quoted" '], k=3000)
    publish(feed, created(message("m")))
    offsets = [0, 0]
    for number, piece in enumerate(pieces):
        part = number % 2 if number > 1000 else 0
        feed.grow(delta("m", offsets[part], piece, part=part))
        offsets[part] += len(piece)
        if number == 2000:
            publish(feed, created(message("between", finished=True)))
        fast.take_all()
    slow.take_all()
    fast.take_all()
    assert slow.messages == fast.messages
    assert len(fast.events) == 3002
    assert len(slow.events) <= feed_module.MERGE_ABOVE  # the last few come as they are
    assert slow.ids[-1] == fast.ids[-1] == ""
    assert [event_id for event_id in slow.ids if event_id] == ["1.1", "1.2"]


async def test_merging_never_moves_growth_past_a_whole_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "MERGE_ABOVE", 2)
    feed = Feed(1, 0)
    reader = Reader(feed)
    call = ToolCallPart(data=ToolCall(id="c", name="bash", input="", finished=False))
    publish(feed, created(message("m")), created(message("n")))
    for number, letter in enumerate("abc"):
        feed.grow(delta("m", number, letter))
        feed.grow(delta("n", number, letter.upper()))
    publish(feed, updated(message("m", text("abc"), call)))
    for number, letter in enumerate("xyz"):
        feed.grow(delta("m", number, letter, part=1))
    reader.take_all()
    told = [(event.type, getattr(event.payload, "delta", "")) for event in reader.events]
    assert told == [
        ("message", ""), ("message", ""), ("message_delta", "abc"), ("message_delta", "ABC"), ("message", ""),
        ("message_delta", "xyz"),
    ]  # fmt: skip
    assert reader.messages == {"m": ["abc", "xyz"], "n": ["ABC"]}


async def test_who_falls_out_of_the_log_is_closed_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "LOG_BYTES", 20_000)
    feed = Feed(1, 0)
    stalled, reading = Reader(feed), Reader(feed)
    waiting = asyncio.create_task(_until_closed(stalled))
    publish(feed, created(message("m")))
    for number in range(200):
        feed.grow(delta("m", number, "x"))
        reading.take_all()
        await tick()
        assert feed._bytes <= 20_000 + feed_module.ENTRY_OVERHEAD + 1
    await asyncio.wait_for(waiting, 5)
    assert stalled.subscription.closed
    assert stalled.subscription.take() == b""
    assert not reading.subscription.closed
    assert reading.messages["m"] == ["x" * 200]
    assert feed.readers == 1


async def _until_closed(reader: Reader) -> None:
    """A client that never takes anything, and only learns that it has been closed."""
    while not reader.subscription.closed:
        reader.subscription._waiter = asyncio.get_running_loop().create_future()
        await reader.subscription._waiter


async def test_one_event_larger_than_the_log_disconnects_nobody_who_keeps_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "LOG_BYTES", 20_000)
    feed = Feed(1, 0)
    stalled = Reader(feed)
    publish(feed, created(message("before", finished=True)))
    await tick()
    reading = Reader(feed)
    publish(feed, created(message("huge", text("x" * 50_000), finished=True)))
    await tick()
    assert not reading.subscription.closed
    reading.take_all()
    assert reading.messages["huge"] == ["x" * 50_000, "end_turn"]
    publish(feed, created(message("after", finished=True)))
    await tick()
    assert stalled.subscription.closed
    assert feed._bytes <= 20_000


# ── whole messages ──


async def test_without_deltas_growth_comes_as_whole_messages_at_most_each_33_ms() -> None:
    feed = Feed(1, 0)
    clock = Clock(feed)
    reader = Reader(feed, deltas=False)
    stream(feed, ["one ", "two "])
    stream(feed, ["other"], "n")
    assert [delay for delay, _ in clock.timers] == [0.033]
    reader.take_all()
    assert reader.messages == {"m": [], "n": []}
    clock.fire()
    reader.take_all()
    assert reader.messages == {"m": ["one two "], "n": ["other"]}
    assert reader.ids == ["1.1", "1.2", "", ""]
    assert clock.timers == []
    feed.grow(delta("m", 8, "three"))
    clock.fire()
    reader.take_all()
    assert reader.messages["m"] == ["one two three"]
    assert not [event for event in reader.events if event.type == "message_delta"]


async def test_a_whole_message_that_a_later_one_replaces_is_not_sent() -> None:
    feed = Feed(1, 0)
    clock = Clock(feed)
    slow, with_deltas = Reader(feed, deltas=False), Reader(feed)
    stream(feed, ["x"])
    for number in range(1, 20):
        feed.grow(delta("m", number, "x"))
        clock.fire()
    publish(feed, created(message("n", finished=True)))
    slow.take_all()
    assert [event.payload.text for event in slow.events] == ["", "x" * 20, ""]
    publish(feed, updated(message("m", text("x" * 20), finished=True)))
    clock.fire()
    slow.take_all()
    with_deltas.take_all()
    assert slow.messages["m"] == with_deltas.messages["m"] == ["x" * 20, "end_turn"]
    assert len([event for event in with_deltas.events if event.type == "message"]) == 3


async def test_a_finished_message_is_not_told_again_by_a_late_timer() -> None:
    feed = Feed(1, 0)
    clock = Clock(feed)
    reader = Reader(feed, deltas=False)
    stream(feed, ["x"])
    publish(feed, updated(message("m", text("x"), finished=True)))
    clock.fire()
    reader.take_all()
    assert reader.ids == ["1.1", "1.2"]


# ── filters and snapshots ──


async def test_a_filtered_reader_gets_its_session_and_what_belongs_to_none() -> None:
    feed = Feed(1, 0)
    reader, everything = Reader(feed, session_id="a"), Reader(feed)
    publish(feed, created(message("1", session_id="a")), created(message("2", session_id="b")))
    feed.grow(delta("1", 0, "mine", session_id="a"))
    feed.grow(delta("2", 0, "yours", session_id="b"))
    feed.announce(updated(Presence(client_id="c", session_id="", attached=True)))
    reader.take_all()
    everything.take_all()
    assert reader.messages == {"1": ["mine"]}
    assert reader.events[-1].type == "presence"
    assert everything.messages == {"1": ["mine"], "2": ["yours"]}
    assert [known.id for known in feed.in_progress("b")] == ["2"]


async def test_a_filtered_reader_goes_on_behind_much_that_is_not_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "SEND_BYTES", 1000)
    feed = Feed(1, 0)
    reader = Reader(feed, session_id="a")
    publish(feed, *(created(message(str(n), session_id="b")) for n in range(50)), created(message("x", session_id="a")))
    feed.close()
    assert reader.take(), "whoever sees an empty take and a closed feed leaves without the last words"
    assert list(reader.messages) == ["x"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("merge_above", [0, 512])
async def test_whoever_comes_at_any_moment_ends_with_the_same_texts(
    seed: int, merge_above: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each point of a random history a client of each kind arrives, and reads when it likes."""
    monkeypatch.setattr(feed_module, "MERGE_ABOVE", merge_above)
    chance = random.Random(seed)
    feed = Feed(1, 0)
    clock = Clock(feed)
    writers = [Writer(feed, str(number), chance) for number in range(3)]
    readers: list[Reader] = []
    for _ in range(120):
        chance.choice(writers).act()
        readers += [Reader(feed, deltas=True), Reader(feed, deltas=False)]
        for reader in chance.sample(readers, k=min(10, len(readers))):
            reader.take()
        if chance.random() < 0.2:
            clock.fire()
        if chance.random() < 0.5:
            await tick()
    for writer in writers:
        writer.finish()
    late = [Reader(feed), Reader(feed, deltas=False)]
    final = {writer.message_id: [*writer.parts, "end_turn"] for writer in writers}
    for reader in readers:
        reader.take_all()
        known = {message_id: final[message_id] for message_id in reader.messages}
        assert reader.messages == known
    assert readers[0].messages == final
    assert all(reader.messages == {} for reader in late)


class Writer:
    """One message that grows by deltas and now and then changes its structure, as a turn would do it."""

    def __init__(self, feed: Feed, message_id: str, chance: random.Random) -> None:
        self.message_id = message_id
        self.parts: list[str] = []
        self._feed = feed
        self._chance = chance
        self._letters = itertools.cycle("añ語👋")
        publish(feed, created(self._whole()))

    def _whole(self, *, finished: bool = False) -> Message:
        return message(self.message_id, *(text(part) for part in self.parts), finished=finished)

    def act(self) -> None:
        if self._chance.random() < 0.15:
            self.parts.append("")
            publish(self._feed, updated(self._whole()))
            return
        part = self._chance.randrange(len(self.parts) + 1) if self._chance.random() < 0.3 else len(self.parts) - 1
        part = max(part, 0)
        if part == len(self.parts):
            self.parts.append("")
        piece = next(self._letters) * self._chance.randint(1, 3)
        self._feed.grow(delta(self.message_id, len(self.parts[part]), piece, part=part))
        self.parts[part] += piece

    def finish(self) -> None:
        publish(self._feed, updated(self._whole(finished=True)))
