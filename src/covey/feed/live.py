"""Messages in progress, as the feed has told them so far: what a client that attaches now must know first."""

from __future__ import annotations

from covey.lifecycle.pieces import Pieces
from covey.lifecycle.reply import grown
from covey.protocol.events import DeltaKind, MessageDelta
from covey.protocol.messages import Message


class LiveMessage:
    """The last whole message that was published, and the growth since. A delta costs one append."""

    __slots__ = ("_growth", "_message")

    def __init__(self, message: Message) -> None:
        self._message = message
        self._growth: dict[tuple[int, DeltaKind], Pieces] = {}

    def begun(self, delta: MessageDelta) -> Message | None:
        """If a part begins with this growth: the message with that part, still empty. Then it may grow."""
        if delta.part < len(self._message.parts) or (delta.part, delta.kind) in self._growth:
            return None
        self._message = grown(self.message(), ((delta.part, delta.kind, ""),))
        return self._message

    def grow(self, delta: MessageDelta) -> None:
        key = (delta.part, delta.kind)
        pieces = self._growth.get(key)
        if pieces is None:
            pieces = self._growth[key] = Pieces()
        pieces.append(delta.delta)

    def message(self) -> Message:
        """The message as clients know it at this very moment."""
        if self._growth:
            growth = ((part, kind, str(pieces)) for (part, kind), pieces in self._growth.items())
            self._message = grown(self._message, growth)
            self._growth = {}
        return self._message
