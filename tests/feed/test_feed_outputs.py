"""What running calls print, as readers of every kind get it: in order, once, and bounded for those who are slow."""

from __future__ import annotations

import random

import pytest

from covey.feed import feed as feed_module
from covey.feed import outputs as outputs_module
from covey.feed.entries import ENTRY_OVERHEAD
from covey.feed.feed import Feed
from covey.feed.outputs import TAIL_BYTES
from covey.protocol.events import created
from tests.feed.readers import Printer, Reader, message, printed_end, publish, stream, tick

pytestmark = pytest.mark.anyio


async def test_what_a_call_prints_comes_in_order_and_without_ids_to_every_kind_of_reader() -> None:
    feed = Feed(1, 0)
    readers = [Reader(feed), Reader(feed, deltas=False), Reader(feed, session_id="s")]
    printer = Printer(feed)
    for piece in ("one\n", "zwö\n", "👋\n"):
        printer.print(piece)
        for reader in readers:
            reader.take_all()
    for reader in readers:
        assert [(piece.offset, piece.delta) for piece in reader.outputs["c"]] == [
            (0, "one\n"),
            (4, "zwö\n"),
            (9, "👋\n"),
        ]
        assert reader.ids == ["", "", ""]
        assert {event.type for event in reader.events} == {"tool_output"}
    first = readers[0].outputs["c"][0]
    assert (first.session_id, first.run_id, first.message_id) == ("s", "r", "m")
    assert feed.last_seq == 0


async def test_readers_of_another_session_get_nothing_and_nothing_is_kept_for_them() -> None:
    feed = Feed(1, 0)
    other = Reader(feed, session_id="other")
    Printer(feed).print("x")
    assert feed._log == []
    other.take_all()
    assert other.events == []
    assert feed.printed("other") == []


async def test_several_pieces_of_one_call_are_one_event_for_whoever_reads_later() -> None:
    feed = Feed(1, 0)
    readers = [Reader(feed), Reader(feed, deltas=False)]
    printer = Printer(feed)
    for number in range(100):
        printer.print(f"{number}\n")
    for reader in readers:
        reader.take_all()
        assert [piece.delta for piece in reader.outputs["c"]] == ["".join(f"{number}\n" for number in range(100))]


async def test_merging_never_moves_what_was_printed_past_another_event() -> None:
    feed = Feed(1, 0)
    readers = [Reader(feed), Reader(feed, deltas=False)]
    printer, neighbour = Printer(feed, "c"), Printer(feed, "d")
    for letter in "ab":
        printer.print(letter)
        neighbour.print(letter.upper())
    publish(feed, created(message("result", finished=True)))
    printer.print("x")
    printer.print("y")
    for reader in readers:
        reader.take_all()
        seen = [(event.type, getattr(event.payload, "delta", "")) for event in reader.events]
        assert seen == [("tool_output", "ab"), ("tool_output", "AB"), ("message", ""), ("tool_output", "xy")]


async def test_two_calls_that_print_at_the_same_time_are_kept_apart() -> None:
    feed = Feed(1, 0)
    slow, fast = Reader(feed), Reader(feed)
    printers = {call: Printer(feed, call) for call in "cd"}
    for number in range(50):
        for call, printer in printers.items():
            printer.print(f"{call}{number} ")
        fast.take_all()
    for reader in (slow, fast, Reader(feed)):
        reader.take_all()
        for call in printers:
            assert reader.output(call) == "".join(f"{call}{number} " for number in range(50))


async def test_a_slow_reader_gets_the_end_and_how_much_is_missing_before_it() -> None:
    feed = Feed(1, 0)
    slow, fast = Reader(feed), Reader(feed)
    printer = Printer(feed)
    pieces = ["é" * 5000 + "\n" for _ in range(100)]
    for piece in pieces:
        printer.print(piece)
        fast.take_all()
        await tick()
    slow.take_all()
    whole = "".join(pieces)
    assert fast.output("c") == whole and fast.dropped("c") == 0 and len(fast.outputs["c"]) == 100
    assert whole.endswith(slow.output("c"))
    assert len(slow.outputs["c"]) == 1
    assert TAIL_BYTES - 4 < len(slow.output("c").encode()) <= TAIL_BYTES
    assert slow.dropped("c") + len(slow.output("c").encode()) == len(whole.encode())


async def test_what_was_dropped_before_it_came_here_is_counted_for_every_reader() -> None:
    feed = Feed(1, 0)
    slow, fast = Reader(feed), Reader(feed)
    printer = Printer(feed)
    for number in range(4):
        printer.print(f"piece {number} ", dropped=1000 * number)
        fast.take_all()
        await tick()
    late = Reader(feed)
    slow.take_all()
    assert [piece.dropped for piece in fast.outputs["c"]] == [0, 1000, 2000, 3000]
    assert fast.output("c") == "piece 0 piece 1 piece 2 piece 3 "
    assert slow.output("c") == late.output("c") == "piece 3 "
    assert slow.dropped("c") == late.dropped("c") == 6000 + 3 * len("piece 0 ")


async def test_a_reader_that_stalls_costs_the_places_of_what_was_printed_and_not_its_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feed_module, "LOG_BYTES", 200_000)
    feed = Feed(1, 0)
    stalled, fast = Reader(feed), Reader(feed)
    printer = Printer(feed)
    for _ in range(300):
        printer.print("x" * 10_000)
        fast.take_all()
        await tick()
    assert feed._bytes <= 300 * ENTRY_OVERHEAD + TAIL_BYTES
    assert printer.tail.size <= TAIL_BYTES
    assert not stalled.subscription.closed
    publish(feed, created(message("after", finished=True)))
    stalled.take_all()
    assert stalled.ids[-1] == "1.1", "nothing durable was lost to it"
    assert stalled.dropped("c") + len(stalled.output("c")) == 3_000_000


async def test_the_text_of_many_short_calls_counts_for_the_length_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "LOG_BYTES", 200_000)
    feed = Feed(1, 0)
    stalled, fast = Reader(feed), Reader(feed)
    for number in range(30):
        printer = Printer(feed, str(number))
        printer.print("x" * 10_000)
        printer.end()
        fast.take_all()
        await tick()
    assert stalled.subscription.closed
    assert feed._bytes <= 200_000


@pytest.mark.parametrize("before", [0, TAIL_BYTES])
async def test_one_take_is_bounded_however_many_calls_print(before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where what comes takes the place of what was kept, and costs nothing."""
    monkeypatch.setattr(feed_module, "SEND_BYTES", 30_000)
    feed = Feed(1, 0)
    printers = [Printer(feed, str(number)) for number in range(20)]
    for printer in printers:
        printer.print("x" * before)
    reader = Reader(feed)
    for _ in range(3):
        for printer in printers:
            printer.print("x" * 10_000)
    sizes = []
    while data := reader.take():
        sizes.append(len(data))
    assert max(sizes) < 30_000 + 12_000
    assert all(reader.output(str(number)) == "x" * (before + 30_000) for number in range(20))


async def test_whoever_comes_in_the_middle_gets_the_tail_and_then_what_follows() -> None:
    feed = Feed(1, 0)
    printer = Printer(feed)
    printer.print("before ")
    late = Reader(feed)
    printer.print("after")
    late.take_all()
    assert [(piece.offset, piece.delta) for piece in late.outputs["c"]] == [(0, "before "), (7, "after")]
    printer.print("é" * TAIL_BYTES)
    (tail,) = feed.printed("s")
    assert tail.offset == tail.dropped > 0
    assert TAIL_BYTES - 2 < len(tail.delta.encode()) <= TAIL_BYTES
    assert printed_end(tail) == printer.tail.end


async def test_the_tail_is_gone_with_the_end_of_the_call_but_not_for_those_who_have_not_read_it() -> None:
    feed = Feed(1, 0)
    slow = Reader(feed)
    printer = Printer(feed)
    printer.print("all of it")
    printer.end()
    publish(feed, created(message("result", finished=True)))
    assert feed.printed() == []
    slow.take_all()
    assert slow.output("c") == "all of it"
    assert [event.type for event in slow.events] == ["tool_output", "message"]
    printer.end()


async def test_readers_at_the_same_place_get_the_very_same_bytes() -> None:
    feed = Feed(1, 0)
    readers = [feed.subscribe(deltas=True) for _ in range(20)]
    Printer(feed).print("x" * 1000)
    await tick()
    first, *others = [reader.take() for reader in readers]
    assert first.count(b"data: ") == 1
    assert all(other is first for other in others)


@pytest.mark.parametrize("seed", range(10))
async def test_whoever_reads_at_any_moment_can_account_for_every_byte(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls begin, print, lose something and end; messages grow in between; readers of each kind come and read."""
    monkeypatch.setattr(outputs_module, "TAIL_BYTES", 200)
    monkeypatch.setattr(feed_module, "SEND_BYTES", 500)
    chance = random.Random(seed)
    feed = Feed(1, 0)
    stream(feed, ["text"])
    printers = {str(number): Printer(feed, str(number)) for number in range(4)}
    readers: list[Reader] = [Reader(feed)]
    for _ in range(200):
        call = chance.choice(list(printers))
        letters = chance.choice("añ語👋") * chance.randint(1, 60)
        printers[call].print(letters, dropped=chance.choice([0, 0, 0, 17]))
        if chance.random() < 0.1:
            publish(feed, created(message(f"{len(feed._log)}", finished=True)))
        if chance.random() < 0.2:
            readers.append(Reader(feed, deltas=chance.random() < 0.5, session_id=chance.choice(["", "s"])))
        for reader in chance.sample(readers, k=min(3, len(readers))):
            reader.take()
        if chance.random() < 0.5:
            await tick()
    readers.append(Reader(feed))
    for reader in readers:
        reader.take_all()
        for call, printer in printers.items():
            if pieces := reader.outputs.get(call):
                assert printed_end(pieces[-1]) == printer.tail.end
