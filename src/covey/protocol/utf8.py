"""Where characters begin in the bytes of a text: what has to be cut is cut between two of them. Pure."""

from __future__ import annotations


def next_character(data: bytes | bytearray, at: int) -> int:
    """The first place from `at` on at which a character begins, or the end of `data`, which is valid UTF-8."""
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return at
