"""Events → messages, as the server has them. Pure: no I/O, and a delta costs one append, however long the message is.

A delta that does not fit (`protocol/growth.py`) is a hole: the reader of the stream must then connect again, which
brings the present state of every message in progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from covey.protocol.events import DeltaKind, Event, Gap, MessageDelta
from covey.protocol.growth import GrowingMessage
from covey.protocol.messages import Message


@dataclass(frozen=True, slots=True)
class TranscriptChange:
    """What an event did to the transcript."""

    kind: Literal["whole", "grew", "removed", "reset", "hole"]
    """`whole`: the message is new or was replaced · `reset`: everything known was dropped, it will come again."""
    message_id: str = ""
    text: str = ""
    """Only with `grew`: what was not known before."""
    text_kind: DeltaKind = "text"


class Transcript:
    """The messages of one or more sessions, in the order in which they began."""

    def __init__(self) -> None:
        self._messages: dict[str, GrowingMessage] = {}

    def __iter__(self) -> Iterator[Message]:
        return (growing.message() for growing in self._messages.values())

    def __len__(self) -> int:
        return len(self._messages)

    def get(self, message_id: str) -> Message | None:
        growing = self._messages.get(message_id)
        return growing.message() if growing else None

    def apply(self, event: Event) -> TranscriptChange | None:
        """Take one event in, in the order of the stream. None: it changes no message."""
        match event.payload:
            case MessageDelta() as delta:
                return self._grow(delta)
            case Message() as message if event.change == "deleted":
                self._messages.pop(message.id, None)
                return TranscriptChange("removed", message.id)
            case Message() as message:
                self.put(message)
                return TranscriptChange("whole", message.id)
            case Gap():
                self._messages.clear()
                return TranscriptChange("reset")
        return None

    def put(self, message: Message) -> None:
        """A whole message, from an event or from REST: it replaces what was known of it."""
        if growing := self._messages.get(message.id):
            growing.replace(message)
        else:
            self._messages[message.id] = GrowingMessage(message)

    def _grow(self, delta: MessageDelta) -> TranscriptChange | None:
        growing = self._messages.get(delta.message_id)
        fresh = growing.grow(delta) if growing else None
        if fresh is None:
            return TranscriptChange("hole", delta.message_id)
        return TranscriptChange("grew", delta.message_id, fresh, delta.kind) if fresh else None
