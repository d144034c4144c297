"""Streams that lead to a terminal, and JSON that may be shown on one: nothing raw of what others wrote gets there."""

from __future__ import annotations

import re
from typing import Any, TextIO

from covey.lines.plain_text import UNSEEN, one_line, plain

__all__ = ["TerminalStream", "escaped_json", "json_text", "one_line", "plain", "undisguised"]

_ESCAPED = re.compile(rf"[{UNSEEN}\u200c\u200d]")


def json_text(value: Any) -> str:
    """JSON in which such characters are escaped: the same to a program, and harmless on a screen."""
    import msgspec  # late: `--help` needs none of it

    return escaped_json(msgspec.json.encode(value).decode())


def escaped_json(text: str) -> str:
    return _ESCAPED.sub(lambda found: _json_escape(found[0]), text)


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


class TerminalStream:
    """A stream that leads to a terminal: whatever a command prints passes here, and becomes plain."""

    def __init__(self, stream: TextIO) -> None:
        self.own = stream
        """For what we draw ourselves, such as a spinner."""

    def write(self, text: str) -> int:
        self.own.write(plain(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)


def undisguised(stream: TextIO) -> TextIO:
    """The stream itself, for whoever has made all text plain already."""
    return stream.own if isinstance(stream, TerminalStream) else stream
