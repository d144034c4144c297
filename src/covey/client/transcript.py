"""Events → messages, as the server has them. Pure: no I/O, and a delta costs one append, however long the message is.

A delta that does not fit (`protocol/growth.py`) is a hole: the reader of the stream must then connect again, which
brings the present state of every message in progress.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
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
        self.shape = 0
        """Another number whenever there are other messages than before, or in another order."""

    def ids(self) -> list[str]:
        """Of all messages, in their order."""
        return list(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return (growing.message() for growing in self._messages.values())

    def __len__(self) -> int:
        return len(self._messages)

    def get(self, message_id: str) -> Message | None:
        growing = self._messages.get(message_id)
        return growing.message() if growing else None

    def begun(self, message_id: str) -> Message | None:
        """The message without what it has grown by since it last came whole: costs nothing, however long it is."""
        growing = self._messages.get(message_id)
        return growing.whole if growing else None

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._messages

    @property
    def first_id(self) -> str:
        """The id of the oldest message; '' if there is none."""
        return next(iter(self._messages), "")

    @property
    def last_id(self) -> str:
        """The id of the newest message; '' if there is none."""
        return next(reversed(self._messages), "")

    def apply(self, event: Event) -> TranscriptChange | None:
        """Take one event in, in the order of the stream. None: it changes no message."""
        match event.payload:
            case MessageDelta() as delta:
                return self._grow(delta)
            case Message() as message if event.change == "deleted":
                self.pop(message.id)
                return TranscriptChange("removed", message.id)
            case Message() as message:
                self.put(message)
                return TranscriptChange("whole", message.id)
            case Gap():
                self._messages.clear()
                self.shape += 1
                return TranscriptChange("reset")
        return None

    def put(self, message: Message) -> None:
        """A whole message, from an event or from REST: it replaces what was known of it."""
        if growing := self._messages.get(message.id):
            growing.replace(message)
        else:
            self.add(message.id, GrowingMessage(message))

    def pop(self, message_id: str) -> GrowingMessage | None:
        """Take a message out, with its growth."""
        self.shape += 1
        return self._messages.pop(message_id, None)

    def add(self, message_id: str, growing: GrowingMessage) -> None:
        """A message that is new here, or was taken out of another transcript."""
        self.shape += 1
        self._messages[message_id] = growing

    def move(self, session_id: str, other: Transcript) -> None:
        """Hand over the messages of one session, with their growth."""
        self.shape += 1
        other.shape += 1
        leaving = [mid for mid, growing in self._messages.items() if growing.session_id == session_id]
        other._messages.update((mid, self._messages.pop(mid)) for mid in leaving)

    def load(self, messages: Iterable[Message], newer: Collection[str]) -> None:
        """These are all, in their order. What is known of those in `newer` is newer than what is given here."""
        self.shape += 1
        known, self._messages = self._messages, {}
        for message in messages:
            if message.id not in newer:
                self._messages[message.id] = GrowingMessage(message)
            elif message.id in known:
                self._messages[message.id] = known[message.id]
        self._messages |= {mid: growing for mid, growing in known.items() if mid in newer}

    def prepend(self, messages: Iterable[Message], newer: Collection[str]) -> None:
        """These come before all that are known."""
        self.shape += 1
        older = {m.id: GrowingMessage(m) for m in messages if m.id not in self._messages and m.id not in newer}
        self._messages = older | self._messages

    def _grow(self, delta: MessageDelta) -> TranscriptChange | None:
        growing = self._messages.get(delta.message_id)
        fresh = growing.grow(delta) if growing else None
        if fresh is None:
            return TranscriptChange("hole", delta.message_id)
        return TranscriptChange("grew", delta.message_id, fresh, delta.kind) if fresh else None
