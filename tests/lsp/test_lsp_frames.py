"""Frames: bytes in any pieces give the same messages, and what breaks the rules ends the connection."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.tools.lsp.frames import FRAME_LIMIT, BadFrame, LspDecoder, encode

messages = st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3), max_size=5)


@given(messages, st.lists(st.integers(1, 40), max_size=20))
def test_messages_come_whole_however_they_are_cut(sent: list[dict[str, str]], sizes: list[int]) -> None:
    data = b"".join(map(encode, sent))
    decoder, received, at = LspDecoder(), [], 0
    for size in [*sizes, len(data)]:
        received += decoder.feed(data[at : at + size])
        at += size
    assert received == sent


def test_other_headers_and_any_case_are_taken() -> None:
    data = b"content-type: x\r\nCONTENT-LENGTH: 2\r\n\r\n{}"
    assert LspDecoder().feed(data) == [{}]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"hello there\r\n\r\n", "without a length"),
        (b"x" * 5000, "no message"),
        (b"Content-Length: %d\r\n\r\n" % (FRAME_LIMIT + 1), "more than 8 MiB"),
        (b"Content-Length: 99999999999999999999999\r\n\r\n", "without a length"),
        (b"Content-Length: 2\r\n\r\n[]", "no object"),
        (b"Content-Length: 2\r\n\r\n{x", "no JSON"),
        (b"Content-Length: -4\r\n\r\n", "without a length"),
    ],
)
def test_what_is_no_frame_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(BadFrame, match=why):
        LspDecoder().feed(data)
