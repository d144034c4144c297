"""Text that a stranger wrote, before a model or a person reads it: nothing in it is invisible, or ends a line."""

from __future__ import annotations

import re
import unicodedata

_SUSPECTS = re.compile(r"[^\x20-\x7e\n\t]")
"""All but what nearly every character of a text is: those are looked at one by one."""
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
"""Categories of characters that show nothing, turn the direction of writing, or are not characters at all."""


def visible_line(text: str, limit: int) -> str:
    """The text on one line, without hidden characters, cut to `limit` characters."""
    line = " ".join(without_hidden(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def without_hidden(text: str) -> str:
    """The text without hidden characters; line ends and tabs stay."""
    return _SUSPECTS.sub(lambda match: "" if _is_hidden(match[0]) else match[0], text)


def _is_hidden(char: str) -> bool:
    # Variation selectors are marks, and have been used to carry whole sentences that nobody sees.
    return unicodedata.category(char) in _HIDDEN or "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
