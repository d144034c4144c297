"""Readers of every kind: slow ones, those without deltas, those of one session, and whoever comes in the middle."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable

import pytest

from covey.feed import feed as feed_module
from covey.feed import merging
from covey.feed.entries import ENTRY_OVERHEAD
from covey.feed.feed import Feed
from covey.protocol.events import Presence, created, updated
from covey.protocol.messages import Message, ToolCall, ToolCallPart
from tests.feed.readers import Clock, Reader, delta, message, publish, stream, text, tick

pytestmark = pytest.mark.anyio


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
    assert len(fast.events) == 3004
    assert len(slow.events) <= merging.MERGE_ABOVE  # the last few come as they are
    assert slow.ids[-1] == fast.ids[-1] == ""
    assert [event_id for event_id in slow.ids if event_id] == ["1.1", "1.2"]


async def test_merging_never_moves_growth_past_a_whole_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MERGE_ABOVE", 2)
    feed = Feed(1, 0)
    reader = Reader(feed)
    call = ToolCallPart(data=ToolCall(id="c", name="bash", input="", finished=False))
    publish(feed, created(message("m")), created(message("n")))
    for number, letter in enumerate("abc"):
        feed.grow(delta("m", number, letter))
        feed.grow(delta("n", number, letter.upper()))
    publish(feed, updated(message("m", text("abc"), call)))
    for number, letter in enumerate("xyz"):
        feed.grow(delta("m", number, letter, part=1, kind="tool_input"))
    reader.take_all()
    seen = [(event.type, getattr(event.payload, "delta", "")) for event in reader.events]
    assert seen == [
        ("message", ""), ("message", ""), ("message", ""), ("message_delta", "a"), ("message", ""),
        ("message_delta", "ABC"), ("message_delta", "bc"), ("message", ""), ("message_delta", "xyz"),
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
        assert feed._bytes <= 20_000 + ENTRY_OVERHEAD + 1
    await asyncio.wait_for(waiting, 30)
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
    assert [getattr(event.payload, "text", None) for event in slow.events] == ["", "x" * 20, ""]
    publish(feed, updated(message("m", text("x" * 20), finished=True)))
    clock.fire()
    slow.take_all()
    with_deltas.take_all()
    assert slow.messages["m"] == with_deltas.messages["m"] == ["x" * 20, "end_turn"]
    assert len([event for event in with_deltas.events if event.type == "message"]) == 4


async def test_a_finished_message_is_not_published_again_by_a_late_timer() -> None:
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
    monkeypatch.setattr(merging, "MERGE_ABOVE", merge_above)
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


# ── readers of other sessions ──


async def test_an_event_costs_nothing_for_those_it_is_not_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rest: they are not asked, hold no part of the log, and lose nothing."""
    monkeypatch.setattr(feed_module, "LOG_BYTES", 5_000)
    feed = Feed(1, 0)
    readers = [Reader(feed, session_id=f"s{number % 50}") for number in range(200)]
    pushes: list[Reader] = []

    def pushing(reader: Reader) -> Callable[[], bool]:
        def push() -> bool:
            pushes.append(reader)
            reader.take_all()
            return reader.subscription.is_up_to_date

        return push

    waits = [asyncio.create_task(reader.subscription.wait(pushing(reader))) for reader in readers]
    await tick()
    monkeypatch.setattr(feed_module, "delta_frames", lambda entries: pytest.fail("encoded for nobody"))
    for number in range(100):
        publish(feed, created(message(f"other {number}", session_id="other", finished=True)))
        await tick()
        assert len(feed._log) <= 1
    assert pushes == []
    monkeypatch.undo()
    publish(feed, created(message("mine", session_id="s7", finished=True)))
    await tick()
    assert len(pushes) == 4 and {reader.subscription.session_id for reader in pushes} == {"s7"}
    feed.announce(updated(Presence(client_id="c", session_id="", attached=True)))
    await tick()
    assert len(pushes) == 4 + 200
    for reader in readers:
        mine = ["1.101"] if reader.subscription.session_id == "s7" else []
        assert reader.ids == [*mine, ""]
    feed.close()
    await asyncio.wait_for(asyncio.gather(*waits), 30)


async def test_growth_is_not_sent_whole_because_of_readers_of_another_session() -> None:
    feed = Feed(1, 0)
    clock = Clock(feed)
    Reader(feed, deltas=False, session_id="other")
    stream(feed, ["a", "b"])
    assert clock.timers == []


@pytest.mark.parametrize("seed", range(20))
async def test_whoever_rests_and_is_woken_at_any_moment_gets_everything_once(seed: int) -> None:
    chance = random.Random(seed)
    feed = Feed(1, 0)
    sessions = ["", "a", "b", "c"]
    readers = [Reader(feed, session_id=chance.choice(sessions)) for _ in range(12)]

    async def follow(reader: Reader, *, pushed: bool) -> None:
        def push() -> bool:
            if chance.random() < 0.3:
                return False  # its socket is full: only its task can go on
            reader.take()
            return reader.subscription.is_up_to_date

        while not feed.closed:
            if not reader.take():
                await reader.subscription.wait(push if pushed else None)
            for _ in range(chance.randrange(3)):
                await tick()
        reader.take_all()

    tasks = [asyncio.create_task(follow(reader, pushed=number % 2 == 0)) for number, reader in enumerate(readers)]
    published: list[str] = []
    for number in range(200):
        session_id = chance.choice(sessions[1:])
        publish(feed, created(message(str(number), session_id=session_id, finished=True)))
        published.append(session_id)
        if chance.random() < 0.5:
            chance.choice(readers).subscription.wake()  # as a heartbeat does
        for _ in range(chance.randrange(3)):
            await tick()
    feed.close()
    await asyncio.wait_for(asyncio.gather(*tasks), 30)
    for reader in readers:
        mine = reader.subscription.session_id
        assert reader.ids == [f"1.{seq}" for seq, owner in enumerate(published, 1) if mine in ("", owner)]
