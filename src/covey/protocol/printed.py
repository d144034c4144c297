"""What a program printed, as text to read: what a terminal would be left with, without colours and movements.

Pure, and linear in the length. For the output of commands alone: of a file every character counts.
"""

from __future__ import annotations

import re

STRING_LIMIT = 2048
"""Bytes of a title, an address or a picture inside of a sequence. What is longer was never ended: it is text."""
_PARAMETERS = rb"[0-?]{0,64}[ -/]{0,8}"
_TITLE = rb"\][^\x07\x1b]{0,%d}" % STRING_LIMIT
_STRING = rb"[PX^_][^\x1b]{0,%d}" % STRING_LIMIT
_SEQUENCE = re.compile(
    rb"\x1b(?:\[" + _PARAMETERS + rb"[@-~]|" + _TITLE + rb"(?:\x07|\x1b\\)|" + _STRING + rb"\x1b\\|[ -/]{0,2}[0-~])?"
)
"""Each alternative stops at the next escape: nothing is looked at more than twice."""
_BEGUN = re.compile(rb"\x1b(?:\[" + _PARAMETERS + rb"|" + _TITLE + rb"\x1b?|" + _STRING + rb"\x1b?|[ -/]{0,2})?\Z")


class SequenceFilter:
    """Removes escape sequences from bytes that come in pieces; where a piece ends does not matter."""

    def __init__(self) -> None:
        self._begun = b""
        """The beginning of a sequence, not much more than `STRING_LIMIT`."""

    def passed(self, data: bytes) -> bytes:
        """What is left of all that is certain by now."""
        data = self._begun + data
        begun = _BEGUN.search(data)
        end = begun.start() if begun else len(data)
        self._begun = data[end:]
        return _SEQUENCE.sub(b"", data[:end])

    def rest(self) -> bytes:
        """What would be left of the beginning of a sequence that does not go on."""
        return _SEQUENCE.sub(b"", self._begun)

    def take_begun(self) -> bytes:
        """The beginning of a sequence that goes on elsewhere."""
        begun, self._begun = self._begun, b""
        return begun


def as_printed(text: str) -> str:
    """The whole output of a command, or its end."""
    if "\x1b" in text:
        text = _SEQUENCE.sub(b"", text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
    return overdrawn(text)


def overdrawn(text: str) -> str:
    """Each line as it was left: of one that was drawn over itself, such as a progress bar, the last state.

    A carriage return before a line feed ends the line, and stays.
    """
    if "\r" not in text and "\b" not in text:
        return text
    *ended, last = text.split("\n")
    lines = [_last_state(line) + ("\r" if line.endswith("\r") else "") for line in ended]
    return "\n".join([*lines, _last_state(last)])


def _last_state(line: str) -> str:
    # Moving back erases nothing: only what is drawn afterwards does.
    drawn = line.rstrip("\r\b").rpartition("\r")[2]
    if "\b" not in drawn:
        return drawn
    kept: list[str] = []
    for char in drawn:
        if char != "\b":
            kept.append(char)
        elif kept:
            kept.pop()
    return "".join(kept)
