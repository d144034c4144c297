"""The feed: one order for everybody, each event encoded once, and nobody sleeps through one."""

from __future__ import annotations

import asyncio

import pytest

from covey.feed import entries
from covey.feed import feed as feed_module
from covey.feed.feed import Feed
from covey.protocol.events import Event, Presence, created, encode_event, updated
from tests.feed.readers import Reader, delta, message, publish, stream, text, tick

pytestmark = pytest.mark.anyio


# ── order ──


async def test_all_readers_get_all_events_in_one_order_with_ids_without_gaps() -> None:
    feed = Feed(7, 41)
    readers = [Reader(feed), Reader(feed, deltas=False)]
    publish(feed, created(message("a")), created(message("b")), updated(message("a", finished=True)))
    for reader in readers:
        reader.take_all()
        assert reader.ids == ["7.42", "7.43", "7.44"]
        assert [getattr(event.payload, "id", "") for event in reader.events] == ["a", "b", "a"]
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


async def test_growth_of_a_message_that_is_not_in_progress_is_not_published() -> None:
    feed = Feed(1, 0)
    reader = Reader(feed)
    feed.grow(delta("unknown", 0, "x"))
    publish(feed, created(message("m")), updated(message("m", finished=True)))
    feed.grow(delta("m", 0, "late"))
    reader.take_all()
    assert [event.type for event in reader.events] == ["message", "message"]
    assert feed.live == {}


async def test_growth_that_does_not_continue_the_message_as_published_is_not_published() -> None:
    """The store has refused a whole message for good: what grows in it is published by the next one."""
    feed = Feed(1, 0)
    reader = Reader(feed)
    publish(feed, created(message("m", text("a"))))
    feed.grow(delta("m", 0, "{", part=1, kind="tool_input"))
    feed.grow(delta("m", 0, "b", part=2))
    feed.grow(delta("m", 5, "c"))
    feed.grow(delta("m", 1, "d"))
    reader.take_all()
    assert reader.messages == {"m": ["ad"]}
    assert [event.type for event in reader.events] == ["message", "message_delta"]
    assert feed.in_progress() == [message("m", text("ad"))]


# ── what a client with deltas can rely on ──


async def test_a_part_that_begins_is_published_by_a_whole_message_before_it_grows() -> None:
    feed = Feed(1, 0)
    with_deltas, without = Reader(feed), Reader(feed, deltas=False)
    publish(feed, created(message("m")))
    feed.grow(delta("m", 0, "so "))
    feed.grow(delta("m", 0, "Hel", part=1))
    feed.grow(delta("m", 3, "lo", part=1))
    with_deltas.take_all()
    without.take_all()
    seen = [(event.type, len(getattr(event.payload, "parts", ()))) for event in with_deltas.events]
    growth = ("message_delta", 0)
    assert seen == [("message", 0), ("message", 1), growth, ("message", 2), growth, growth]
    assert with_deltas.ids[1:] == [""] * 5
    assert [event.type for event in without.events] == ["message"], "the rest comes as whole messages in time"


# ── cost ──


async def test_clients_at_the_same_place_get_the_very_same_bytes() -> None:
    feed = Feed(1, 0)
    readers = [feed.subscribe(deltas=True) for _ in range(50)]
    stream(feed, ["Hel", "lo"])
    await tick()
    first, *others = [reader.take() for reader in readers]
    assert first.count(b"data: ") == 4
    assert all(other is first for other in others)


async def test_each_event_is_encoded_once_however_many_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = 0

    def counting(event: Event) -> bytes:
        nonlocal encoded
        encoded += 1
        return encode_event(event)

    for module in (feed_module, entries):
        monkeypatch.setattr(module, "encode_event", counting)
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
    assert encoded == 401  # and the message once more, when its text began


async def test_without_readers_nothing_is_kept_and_nothing_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed(1, 0)
    reader = Reader(feed)
    stream(feed, ["a"])
    await tick()
    reader.take_all()
    reader.subscription.close()
    assert feed._batches == {}
    for module in (feed_module, entries):
        monkeypatch.setattr(module, "encode_event", lambda event: pytest.fail("encoded for nobody"))
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


async def test_one_turn_of_the_loop_is_published_in_one_go() -> None:
    feed = Feed(1, 0)
    reader = Reader(feed)
    waiting = asyncio.create_task(reader.subscription.wait())
    await tick()
    for number in range(10):
        publish(feed, created(message(str(number))))
    assert not waiting.done()
    await asyncio.wait_for(waiting, 30)
    reader.take()
    assert len(reader.ids) == 10


async def test_nobody_sleeps_through_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """Published before the wait, while it begins, or after it: it returns all the same."""
    feed = Feed(1, 0)
    reader = Reader(feed)
    for turns in range(4):
        publisher = asyncio.create_task(_publish_after(feed, turns))
        while not reader.take():
            await asyncio.wait_for(reader.subscription.wait(), 30)
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
    await asyncio.wait_for(waiting, 30)
    for reader in (idle, behind):
        assert not reader.subscription.closed
        reader.take_all()
        assert reader.ids == ["1.1"]
        await asyncio.wait_for(reader.subscription.wait(), 30)  # a closed feed is never waited for
