"""What others wrote, made fit for a terminal: it moves no cursor, hides nothing, and turns no direction of writing."""

from __future__ import annotations

import re

UNSEEN = (
    r"\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
"""Control characters beyond ASCII, and those of Unicode that are invisible or turn the direction of writing."""
_STRIPPED = re.compile(
    rf"[\x00-\x08\x0b-\x1f{UNSEEN}]"
    # Joiners belong into emoji and some scripts; beside ASCII they only hide.
    r"|(?<=[\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?=[\x00-\x7f])"
)


def plain(text: str) -> str:
    """The text without such characters; line ends and tabs stay."""
    return _STRIPPED.sub("", text)


def one_line(text: str) -> str:
    """The same on one line: a name or a title must not look like a line of its own."""
    return " ".join(plain(text).split())


def visible(text: str) -> str:
    """Characters that move the cursor, turn the direction of writing or take no room, written as escapes."""
    return "".join(char if char.isprintable() or char == "\t" else ascii(char)[1:-1] for char in text)
