"""What others wrote, made fit for a terminal: it moves no cursor, hides nothing, and turns no direction of writing."""

from __future__ import annotations

import re
from typing import Any, TextIO

_UNSEEN = (
    r"\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
"""Control characters beyond ASCII, and those of Unicode that are invisible or turn the direction of writing."""
_STRIPPED = re.compile(
    rf"[\x00-\x08\x0b-\x1f{_UNSEEN}]"
    # Joiners belong into emoji and some scripts; beside ASCII they only hide.
    r"|(?<=[\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?=[\x00-\x7f])"
)
_ESCAPED = re.compile(rf"[{_UNSEEN}\u200c\u200d]")


def plain(text: str) -> str:
    """The text without such characters; line ends and tabs stay."""
    return _STRIPPED.sub("", text)


def one_line(text: str) -> str:
    """The same on one line: a name or a title must not look like a line of its own."""
    return " ".join(plain(text).split())


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
