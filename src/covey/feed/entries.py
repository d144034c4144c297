"""What stands in the log of a feed: events, growth, messages in progress as they are now, what calls have printed."""

from __future__ import annotations

from typing import Literal

from covey.feed.outputs import OutputTail, Printed
from covey.protocol.events import MessageDelta, ToolOutputDelta, encode_event, updated
from covey.protocol.messages import Message
from covey.protocol.sse import frame

ENTRY_OVERHEAD = 300
"""What an entry costs beside its bytes, so that many tiny ones are counted too."""
Audience = Literal["all", "whole", "deltas"]
"""For whom an entry is: clients that take whole messages, those that take deltas, or both."""


class FeedEntry:
    """One event in the log. `frame` is encoded when the first client needs it."""

    __slots__ = ("_frame", "delta", "message_id", "only", "printed", "session_id", "size")

    def __init__(
        self,
        session_id: str,
        *,
        frame: bytes = b"",
        delta: MessageDelta | None = None,
        printed: Printed | None = None,
        printed_bytes: int = 0,
        message_id: str = "",
        only: Audience = "all",
    ) -> None:
        self.session_id = session_id
        self._frame = frame
        self.delta = delta
        self.printed = printed
        self.message_id = message_id
        """Whose whole state it is; '' for anything else."""
        self.only = only
        self.size = ENTRY_OVERHEAD + printed_bytes + (len(frame) if delta is None else len(delta.delta))
        """What it costs to keep."""

    @property
    def size_to_send(self) -> int:
        return ENTRY_OVERHEAD + self.printed.size if self.printed else self.size

    @property
    def frame(self) -> bytes:
        if not self._frame and self.delta is not None:
            self._frame = delta_frame(self.delta)
        return self._frame


def whole_entry(message: Message, only: Audience) -> FeedEntry:
    """A message in progress as it is now: no event of the log, and therefore without an id."""
    return FeedEntry(message.session_id, frame=frame(encode_event(updated(message))), message_id=message.id, only=only)


def output_entry(tail: OutputTail, offset: int, data: bytes) -> FeedEntry:
    """A call has printed this. Its text is kept by the tail: an entry costs as much as the tail has grown by it."""
    known, kept = tail.end, tail.size
    tail.add(offset, data)
    return FeedEntry(tail.session_id, printed=Printed(tail, known, tail.end), printed_bytes=max(0, tail.size - kept))


def delta_frame(delta: MessageDelta | ToolOutputDelta) -> bytes:
    return frame(encode_event(updated(delta)))
