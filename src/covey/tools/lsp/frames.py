"""Frames of the Language Server Protocol: `Content-Length: N`, an empty line, N bytes of JSON. Pure.

A server is a program that somebody else wrote: what it sends is bounded, and what is no frame ends the connection.
"""

from __future__ import annotations

from typing import Any

import msgspec

FRAME_LIMIT = 8 * 1024 * 1024
"""Bytes of one message. The symbols of a large project are some hundred kB."""
HEAD_LIMIT = 4096
"""Bytes of the lines before it: two short ones are all that there ever is."""

_encoder = msgspec.json.Encoder()


class BadFrame(Exception):
    """What came is no frame. The connection cannot go on: nobody knows where the next one would begin."""


def encode(message: dict[str, Any]) -> bytes:
    body = _encoder.encode(message)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class LspDecoder:
    """Bytes in, as they come; messages out. Each byte is looked at a bounded number of times."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wanted = 0
        """Bytes of the body that is being received; 0: its head is."""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The messages that are whole now. Raises BadFrame."""
        self._buffer += data
        messages = []
        while (message := self._next()) is not None:
            messages.append(message)
        return messages

    def _next(self) -> dict[str, Any] | None:
        if not self._wanted and not self._take_head():
            return None
        if len(self._buffer) < self._wanted:
            return None
        body = bytes(self._buffer[: self._wanted])
        del self._buffer[: self._wanted]
        self._wanted = 0
        try:
            message = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeError):
            raise BadFrame("it sent a message that is no JSON") from None
        if not isinstance(message, dict):
            raise BadFrame("it sent a message that is no object")
        return message

    def _take_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n", 0, HEAD_LIMIT)
        if end < 0:
            if len(self._buffer) >= HEAD_LIMIT:
                raise BadFrame("it sent something that is no message")
            return False
        self._wanted = _length(bytes(self._buffer[:end]))
        del self._buffer[: end + 4]
        return True


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit() and len(value) < 20:
            length = int(value)
            if length > FRAME_LIMIT:
                raise BadFrame(f"it sent a message of more than {FRAME_LIMIT // 1024 // 1024} MiB")
            if length:
                return length
    raise BadFrame("it sent a message without a length")
