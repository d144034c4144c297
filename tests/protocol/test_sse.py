"""Bytes to frames, however the network cuts them."""

from __future__ import annotations

import time
from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from covey.protocol.sse import KEEP_ALIVE, EventId, Frame, FrameDecoder, frame, preamble

STREAM = (
    preamble(1000)
    + frame('{"text":"naïve 👍"}'.encode(), EventId(7, 1842))
    + KEEP_ALIVE
    + frame(b'{"delta":1}')
    + b": comment\r\nid: 7.1843\r\ndata: first\r\ndata: second: line\r\n\r\n"
    + b"event: ignored\nid:7.1844\ndata:no space\n\n"
    + b"data\n\n"
)
FRAMES = [
    Frame("7.1842", '{"text":"naïve 👍"}'),
    Frame("", '{"delta":1}'),
    Frame("7.1843", "first\nsecond: line"),
    Frame("7.1844", "no space"),
    Frame("", ""),
]


def test_frames_as_bytes() -> None:
    assert preamble(1000) == b"retry: 1000\n\n"
    assert frame(b"{}", EventId(7, 1842)) == b"id: 7.1842\ndata: {}\n\n"
    assert frame(b"{}") == b"data: {}\n\n"


def decoded(*chunks: bytes) -> list[Frame]:
    decoder = FrameDecoder()
    return [found for chunk in chunks for found in decoder.feed(chunk)]


def test_a_stream_in_one_piece() -> None:
    assert decoded(STREAM) == FRAMES


def test_a_stream_byte_by_byte() -> None:
    assert decoded(*(STREAM[i : i + 1] for i in range(len(STREAM)))) == FRAMES


@pytest.mark.parametrize("width", range(2, 12))
def test_a_stream_in_equal_pieces(width: int) -> None:
    assert decoded(*(STREAM[i : i + width] for i in range(0, len(STREAM), width))) == FRAMES


def test_a_stream_cut_at_every_point() -> None:
    """Also inside of characters of several bytes, between CR and LF, and inside of field names."""
    for cut in range(len(STREAM) + 1):
        assert decoded(STREAM[:cut], b"", STREAM[cut:]) == FRAMES, f"cut at {cut}: {STREAM[:cut][-10:]!r}"


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
@settings(derandomize=True, database=None, deadline=None)
def test_a_stream_cut_at_random_points(cuts: list[int]) -> None:
    ends = [0, *sorted(cuts), len(STREAM)]
    assert decoded(*(STREAM[a:b] for a, b in pairwise(ends))) == FRAMES


def test_the_last_id_is_kept_across_frames_without_one() -> None:
    decoder = FrameDecoder()
    assert decoder.last_id == ""
    decoder.feed(frame(b"1", EventId(1, 5)) + frame(b"2") + KEEP_ALIVE)
    assert decoder.last_id == "1.5"
    decoder.feed(b"id: 1.6\n")
    assert decoder.last_id == "1.5", "an event counts once it is whole"
    assert decoder.feed(b"data: 3\n\n") == [Frame("1.6", "3")]
    assert decoder.last_id == "1.6"
    assert decoder.feed(frame(b"4")) == [Frame("", "4")], "an id is that of its own event only"


def test_an_event_without_data_is_none() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(b"id: 1.5\n\n\n\n: only a comment\n\nevent: nothing\n\n") == []
    assert decoder.last_id == ""


def test_an_event_that_never_ends_is_never_returned() -> None:
    assert decoded(b"data: half") == []
    assert decoded(b"data: half\n") == []


@pytest.mark.parametrize(
    ("line", "retry_ms"),
    [
        (b"retry: 2500", 2500),
        (b"retry:0", 0),
        (b"retry: -1", None),
        (b"retry: 1.5", None),
        (b"retry: soon", None),
        (b"retry:", None),
        ("retry: ²".encode(), None),
        ("retry: ٣".encode(), None),
        (b"retry: 999999999", 999_999_999),
        (b"retry: 1000000000", None),
        (b"retry: " + b"9" * 10_000, None),
        (b"event: 2500", None),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_how_long_to_wait_is_only_taken_from_a_sane_number(line: bytes, retry_ms: int | None) -> None:
    decoder = FrameDecoder()
    assert decoder.feed(line + b"\n\n") == []
    assert decoder.retry_ms == retry_ms


def test_bytes_that_are_not_text_do_not_end_the_stream() -> None:
    assert decoded(b"data: a\xff\xfeb\n\ndata: c\n\n") == [Frame("", "a\ufffd\ufffdb"), Frame("", "c")]


def test_a_long_line_in_small_pieces_is_joined_once() -> None:
    """A line of 4 MB in pieces of 64 bytes: copied anew with each piece, it would be 125 GB."""
    piece = b"x" * 64
    decoder = FrameDecoder()
    decoder.feed(b"data: ")
    began = time.process_time()
    for _ in range(65_536):
        decoder.feed(piece)
    (found,) = decoder.feed(b"\n\n")
    assert len(found.data) == 64 * 65_536
    assert time.process_time() - began < 10.0


@pytest.mark.parametrize("event_id", [EventId(0, 0), EventId(7, 1842), EventId(10**17, 10**17)])
def test_an_event_id_comes_back_as_it_was(event_id: EventId) -> None:
    assert EventId.parse(str(event_id)) == event_id
    assert decoded(frame(b"x", event_id)) == [Frame(str(event_id), "x")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "7",
        "7.",
        ".7",
        "7.1.2",
        "-7.1",
        "7.-1",
        "+7.1",
        "7 .1",
        "7.1e3",
        "0x7.1",
        "7,1",
        "a.b",
        "².3",
        "٣.٤",
        "7.٣",
        "7.1\x00",
        "7." + "1" * 19,
        "1" * 19 + ".7",
        "9" * 100_000,
        "null",
        "7.1_000",
    ],
    ids=lambda text: repr(text[:20]),
)
def test_what_is_not_an_event_id_is_none(text: str) -> None:
    assert EventId.parse(text) is None


def test_white_space_around_an_event_id_is_forgiven() -> None:
    assert EventId.parse(" 7.1842\n") == EventId(7, 1842)


@given(st.text(max_size=12))
@settings(derandomize=True, database=None, deadline=None)
def test_no_text_makes_the_parser_raise(text: str) -> None:
    parsed = EventId.parse(text)
    assert parsed is None or EventId.parse(str(parsed)) == parsed
