"""Server-Sent Events: frames to bytes, bytes to frames. Pure: fed chunk by chunk, does no I/O."""

from __future__ import annotations

from typing import NamedTuple

KEEP_ALIVE = b": keep-alive\n\n"


class EventId(NamedTuple):
    """Where an event stands: the epoch changes only when history was lost, the sequence has no gaps."""

    epoch: int
    seq: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.seq}"

    @classmethod
    def parse(cls, text: str) -> EventId | None:
        """The id in `text`, or None if it is not one of ours."""
        epoch, _, seq = text.strip().partition(".")
        if not (epoch.isascii() and epoch.isdigit() and seq.isascii() and seq.isdigit()):
            return None
        if len(epoch) > 18 or len(seq) > 18:
            return None
        return cls(int(epoch), int(seq))


def preamble(retry_ms: int) -> bytes:
    """The first bytes of a stream: how long a client waits before it reconnects."""
    return b"retry: %d\n\n" % retry_ms


def frame(data: bytes, event_id: EventId | None = None) -> bytes:
    """One event as bytes. `data` is JSON on one line."""
    if event_id is None:
        return b"data: %b\n\n" % data
    return b"id: %d.%d\ndata: %b\n\n" % (event_id.epoch, event_id.seq, data)


class Frame(NamedTuple):
    """One event as it was received. `id` is '' for events that have none of their own."""

    id: str
    data: str


class FrameDecoder:
    """Turns the bytes of a stream into frames; keeps the pieces of what is not yet a whole line."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._id = ""
        self._data: list[str] = []
        self.last_id = ""
        self.retry_ms: int | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that `chunk` completes."""
        *ends, rest = chunk.split(b"\n")
        frames: list[Frame] = []
        for end in ends:
            line = b"".join((*self._rest, end))
            self._rest = []
            self._line(line.removesuffix(b"\r"), frames)
        self._rest.append(rest)
        return frames

    def _line(self, line: bytes, frames: list[Frame]) -> None:
        if not line:
            if self._data:
                if self._id:
                    self.last_id = self._id
                frames.append(Frame(self._id, "\n".join(self._data)))
            self._id, self._data = "", []
            return
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if name == b"data":
            self._data.append(text)
        elif name == b"id":
            self._id = text
        elif name == b"retry" and text.isascii() and text.isdigit() and len(text) < 10:
            self.retry_ms = int(text)
