"""A message that grows: message + delta → message. One fold for the server, its store and every client. Pure.

A delta says at which code point of its part it begins. Text that is known already is passed over, so an event may come
twice; text that begins after the known end does not fit, because something before it is missing.

What a delta costs depends on its own length, never on that of the message: text is kept in pieces, and put together
when somebody asks for the whole message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from msgspec import Struct, structs

from covey.protocol.events import DeltaKind, MessageDelta
from covey.protocol.messages import (
    BinaryPart,
    FinishPart,
    ImageUrlPart,
    Message,
    Part,
    Reasoning,
    ReasoningPart,
    ShellCommandPart,
    Text,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

JOIN_AT = 1024
"""So many small strings are kept at most: each takes fifty bytes beside its text."""

EMPTY_TEXT = TextPart(data=Text(text=""))
EMPTY_REASONING = ReasoningPart(data=Reasoning(thinking="", signature=""))
_EMPTY: dict[str, Part] = {"text": EMPTY_TEXT, "reasoning": EMPTY_REASONING}
"""What a delta may begin. A tool call is more than its input: only a whole message begins one."""


class TextPiece(Struct, frozen=True):
    """Text by which one part of a message has grown, as it is saved: a delta without the ids."""

    part: int
    kind: DeltaKind
    offset: int
    text: str


class Pieces:
    """Text that only grows: a piece costs what it is long, and all of them little more memory than the text."""

    __slots__ = ("_chunks", "_recent")

    def __init__(self, text: str = "") -> None:
        self._chunks: list[str] = [text] if text else []
        self._recent: list[str] = []

    def append(self, text: str) -> None:
        self._recent.append(text)
        if len(self._recent) == JOIN_AT:
            self._chunks.append("".join(self._recent))
            self._recent.clear()

    def __str__(self) -> str:
        """All of it. Asked for again, it is not put together again."""
        if self._recent or len(self._chunks) > 1:
            self._chunks = ["".join((*self._chunks, *self._recent))]
            self._recent.clear()
        return self._chunks[0] if self._chunks else ""

    def __bool__(self) -> bool:
        return bool(self._chunks or self._recent)


class GrowingPart:
    """A part, and the text that has been added to it. A part of a kind that has no deltas stays as it is."""

    __slots__ = ("_part", "_text", "kind", "length")

    def __init__(self, part: Part) -> None:
        self.kind, text = _growing_text(part)
        self.length = len(text)
        """In code points, as offsets count."""
        self._part = part
        self._text = Pieces(text)

    def append(self, text: str) -> None:
        self._text.append(text)
        self.length += len(text)

    def part(self) -> Part:
        """The part as it is now."""
        return _with_text(self._part, str(self._text))


class GrowingMessage:
    """The last whole message that is known, and its growth since."""

    __slots__ = ("_growing", "_message", "part_count")

    def __init__(self, message: Message) -> None:
        self.replace(message)

    def replace(self, message: Message) -> None:
        """A whole message came: it holds, and what was known before does not count any more."""
        self._message = message
        self._growing: dict[int, GrowingPart] = {}
        """By index: the parts that have grown or begun since the whole message."""
        self.part_count = len(message.parts)

    @property
    def session_id(self) -> str:
        return self._message.session_id

    @property
    def whole(self) -> Message:
        """The last whole message, without its growth since."""
        return self._message

    @property
    def is_finished(self) -> bool:
        return self._message.finish is not None

    def grow(self, delta: MessageDelta) -> str | None:
        """Add a delta, and say what of it was not known before. None: it does not fit, and nothing has changed.

        A finished message is complete: whatever comes late is not new.
        """
        part = self._part(delta.part, delta.kind)
        if part is None:
            return "" if self._message.finish else None
        if not 0 <= delta.offset <= part.length:
            return None
        fresh = delta.delta[part.length - delta.offset :]
        if fresh:
            self._append(delta.part, part, fresh)
        return fresh

    def extend(self, pieces: Iterable[TextPiece]) -> int:
        """Add text that was saved, up to the first piece that does not begin where the text ends: how many did."""
        count = 0
        for piece in pieces:
            part = self._part(piece.part, piece.kind)
            if part is None or piece.offset != part.length:
                break
            self._append(piece.part, part, piece.text)
            count += 1
        return count

    def begin(self, delta: MessageDelta) -> bool:
        """If a part begins with this delta, add that part, still empty. Says whether one does."""
        if delta.part != self.part_count or delta.offset:
            return False
        part = self._part(delta.part, delta.kind)
        if part is None:
            return False
        self._append(delta.part, part, "")
        return True

    def message(self) -> Message:
        """The message as it is now. Asked for again, it is not put together again."""
        if self._growing:
            parts = list(self._message.parts)
            for index, growing in self._growing.items():
                parts[index : index + 1] = [growing.part()]  # a part that has begun comes at the end
            self.replace(structs.replace(self._message, parts=tuple(parts)))
        return self._message

    def _part(self, index: int, kind: DeltaKind) -> GrowingPart | None:
        """The part that such text goes to, which may be one that begins with it. None: there can be no such part."""
        part = self._growing.get(index) or self._open(index, kind)
        return part if part and part.kind == kind else None

    def _open(self, index: int, kind: DeltaKind) -> GrowingPart | None:
        if self._message.finish:
            return None
        if 0 <= index < len(self._message.parts):
            return GrowingPart(self._message.parts[index])
        empty = _EMPTY.get(kind)
        return GrowingPart(empty) if empty and index == self.part_count else None

    def _append(self, index: int, part: GrowingPart, text: str) -> None:
        self._growing[index] = part
        if index == self.part_count:
            self.part_count += 1
        part.append(text)


def grown(message: Message, pieces: Iterable[TextPiece]) -> Message:
    """`message` with the text that was saved of it, up to the first piece that does not continue it."""
    growing = GrowingMessage(message)
    growing.extend(pieces)
    return growing.message()


def _growing_text(part: Part) -> tuple[DeltaKind | None, str]:
    """The text of a part that deltas grow, and their kind."""
    match part:
        case TextPart():
            return "text", part.data.text
        case ReasoningPart():
            return "reasoning", part.data.thinking
        case ToolCallPart():
            return "tool_input", part.data.input
        case ToolResultPart() | ImageUrlPart() | BinaryPart() | ShellCommandPart() | FinishPart():
            return None, ""
        case _:
            assert_never(part)


def _with_text(part: Part, text: str) -> Part:
    """The part with this instead of the text that deltas grow."""
    match part:
        case TextPart():
            return TextPart(data=structs.replace(part.data, text=text))
        case ReasoningPart():
            return ReasoningPart(data=structs.replace(part.data, thinking=text))
        case ToolCallPart():
            return ToolCallPart(data=structs.replace(part.data, input=text))
        case ToolResultPart() | ImageUrlPart() | BinaryPart() | ShellCommandPart() | FinishPart():
            return part
        case _:
            assert_never(part)
