"""Server-Sent Events, as an MCP server sends them: bytes in, events out, within a bound."""

from __future__ import annotations

from dataclasses import dataclass

from covey.tools.mcp.words import LINE_LIMIT, ConnectionEnded


@dataclass(frozen=True, slots=True)
class SseEvent:
    data: str
    id: str | None = None
    retry_ms: int | None = None


class SseDecoder:
    """Each byte is looked at once."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._scanned = 0
        self._data: list[str] = []
        self._id: str | None = None
        self._retry: int | None = None
        self._size = 0

    def feed(self, piece: bytes) -> list[SseEvent]:
        """The events that this piece completes. Raises ConnectionEnded for one that is too long."""
        self._rest += piece
        events: list[SseEvent] = []
        begin = 0
        while (end := self._rest.find(b"\n", max(begin, self._scanned))) >= 0:
            line = bytes(self._rest[begin:end]).rstrip(b"\r")
            begin = self._scanned = end + 1
            if event := self._line(line.decode("utf-8", "replace")):
                events.append(event)
        del self._rest[:begin]
        self._scanned = len(self._rest)
        if self._size + len(self._rest) > LINE_LIMIT:
            raise ConnectionEnded(f"it sent a message of more than {LINE_LIMIT // 1024 // 1024} MiB")
        return events

    def _line(self, line: str) -> SseEvent | None:
        if not line:
            data, self._data, self._size = self._data, [], 0
            event = SseEvent("\n".join(data), self._id, self._retry) if data or self._id or self._retry else None
            self._id = self._retry = None
            return event
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(value)
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self._retry = min(int(value), 60_000)
        return None
