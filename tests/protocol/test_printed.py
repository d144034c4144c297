"""Output of commands as text to read: sequences are gone, and lines are as they were left."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.protocol.printed import STRING_LIMIT, SequenceFilter, as_printed

PIECES = st.sampled_from(
    [b"\x1b", b"[", b"]", b"P", b"\\", b"\x07", b"31", b";", b"m", b"(", b"B", b" ", b"text", b"\n", b"\xc3\xa9"]
)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\rprogress 10%\rprogress 20%\nend\n", "progress 20%\nend\n"),
        ("50%\r", "50%"),
        ("100%\r    \rdone\n", "done\n"),
        ("of Windows\r\nand more\r\n", "of Windows\r\nand more\r\n"),
        ("1%\r2%\r\n", "2%\r\n"),
        ("spin |\b/\b-\b done", "spin  done"),
        ("N\bNA\bAM\bM", "NAM"),
        ("\b\ba", "a"),
        ("left\b\b\b", "left"),
        ("\x1b[31mred\x1b[0m \x1b[1;38;5;12mx\x1b[m\x1b[K", "red x"),
        ("\x1b]0;a title\x07a\x1b]8;;https://x.y\x1b\\link\x1b]8;;\x1b\\", "alink"),
        ("\x1bPq#0;2\x1b\\a\x1b(Bb\x1b7c\x1b[?25l", "abc"),
        ("\x1b[2K\rnew", "new"),
        ("no end \x1b]0;of a title\nand the next line", "no end 0;of a title\nand the next line"),
        ("日本\x1b[0m\r語", "語"),
        ("a\x00b\tc", "a\x00b\tc"),
    ],
)
def test_a_text_is_what_a_terminal_would_be_left_with(raw: str, shown: str) -> None:
    assert as_printed(raw) == shown


@given(pieces=st.lists(PIECES, max_size=30), cuts=st.lists(st.integers(0, 90), max_size=8))
def test_it_does_not_matter_where_the_pieces_of_a_sequence_end(pieces: list[bytes], cuts: list[int]) -> None:
    whole, filtered = b"".join(pieces), SequenceFilter()
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    got = b"".join(filtered.passed(whole[a:b]) for a, b in pairwise(places)) + filtered.rest()
    assert got.decode() == as_printed(whole.decode())


def test_a_sequence_that_never_ends_is_not_held_back_for_ever() -> None:
    filtered = SequenceFilter()
    assert filtered.passed(b"\x1b]0;" + b"x" * (STRING_LIMIT - 2)) == b""
    assert filtered.passed(b"y" * 10).endswith(b"y")
    assert filtered.passed(b"\x1b[" + b"1" * 70) == b"1" * 70
