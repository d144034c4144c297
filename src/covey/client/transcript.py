"""Events → messages, as the server has them. Pure: no I/O, and a delta costs one append, however long the message is.

A delta says at which code point of its part it begins. Text that is known already is ignored, so an event may come
twice; text that begins behind the known end is a hole, and whoever reads the stream must then connect again, which
brings the present state of every message in progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from covey.protocol.events import DeltaKind, Event, Gap, MessageDelta
from covey.protocol.messages import Message, Part, Reasoning, ReasoningPart, Text, TextPart, ToolCallPart


@dataclass(frozen=True, slots=True)
class Change:
    """What an event did to the transcript."""

    kind: Literal["whole", "grew", "removed", "reset", "hole"]
    """`whole`: the message is new or was replaced · `reset`: everything known was dropped, it will come again."""
    message_id: str = ""
    text: str = ""
    """Only with `grew`: what was not known before."""
    text_kind: DeltaKind = "text"


@dataclass(slots=True)
class _Draft:
    """The last whole message, and what its parts have grown since."""

    message: Message
    growth: dict[int, list[str]] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    begun: list[DeltaKind] = field(default_factory=list)
    """Kinds of the parts that deltas have begun, behind those of the whole message."""

    def length(self, part: int, kind: DeltaKind) -> int | None:
        """How many code points of the part are known; None if there can be no such part."""
        known = len(self.message.parts)
        if part < known:
            found = self.message.parts[part]
            if _kind(found) != kind:
                return None
            if part not in self.lengths:
                self.lengths[part] = len(_text(found))
            return self.lengths[part]
        if part < known + len(self.begun):
            return self.lengths[part] if self.begun[part - known] == kind else None
        return 0 if part == known + len(self.begun) and kind != "tool_input" else None

    def grow(self, part: int, kind: DeltaKind, text: str) -> None:
        if part == len(self.message.parts) + len(self.begun):
            self.begun.append(kind)
        self.growth.setdefault(part, []).append(text)
        self.lengths[part] = self.lengths.get(part, 0) + len(text)

    def assemble(self) -> Message:
        if self.growth:
            parts = list(self.message.parts)
            parts += [_empty(kind) for kind in self.begun]
            for index, pieces in self.growth.items():
                parts[index] = _longer(parts[index], "".join(pieces))
            self.message = msgspec.structs.replace(self.message, parts=tuple(parts))
            self.growth, self.begun = {}, []
        return self.message


class Transcript:
    """The messages of one or more sessions, in the order in which they began."""

    def __init__(self) -> None:
        self._drafts: dict[str, _Draft] = {}

    def __iter__(self) -> Iterator[Message]:
        return (draft.assemble() for draft in self._drafts.values())

    def __len__(self) -> int:
        return len(self._drafts)

    def get(self, message_id: str) -> Message | None:
        draft = self._drafts.get(message_id)
        return draft.assemble() if draft else None

    def apply(self, event: Event) -> Change | None:
        """Take one event in, in the order of the stream. None: it changes no message."""
        match event.payload:
            case MessageDelta() as delta:
                return self._grow(delta)
            case Message() as message if event.change == "deleted":
                self._drafts.pop(message.id, None)
                return Change("removed", message.id)
            case Message() as message:
                self.put(message)
                return Change("whole", message.id)
            case Gap():
                self._drafts.clear()
                return Change("reset")
        return None

    def put(self, message: Message) -> None:
        """A whole message, from an event or from REST: it replaces what was known of it."""
        if draft := self._drafts.get(message.id):
            draft.message, draft.growth, draft.lengths, draft.begun = message, {}, {}, []
        else:
            self._drafts[message.id] = _Draft(message)

    def _grow(self, delta: MessageDelta) -> Change | None:
        draft = self._drafts.get(delta.message_id)
        if draft is None:
            return Change("hole", delta.message_id)
        if draft.message.finish:
            return None
        length = draft.length(delta.part, delta.kind)
        if length is None or delta.offset > length:
            return Change("hole", delta.message_id)
        fresh = delta.delta[length - delta.offset :]
        if not fresh:
            return None
        draft.grow(delta.part, delta.kind, fresh)
        return Change("grew", delta.message_id, fresh, delta.kind)


def _kind(part: Part) -> DeltaKind | None:
    match part:
        case TextPart():
            return "text"
        case ReasoningPart():
            return "reasoning"
        case ToolCallPart():
            return "tool_input"
    return None


def _text(part: Part) -> str:
    match part:
        case TextPart():
            return part.data.text
        case ReasoningPart():
            return part.data.thinking
        case ToolCallPart():
            return part.data.input
    return ""


def _empty(kind: DeltaKind) -> Part:
    return TextPart(data=Text(text="")) if kind == "text" else ReasoningPart(data=Reasoning(thinking="", signature=""))


def _longer(part: Part, text: str) -> Part:
    match part:
        case TextPart(data=data):
            return TextPart(data=msgspec.structs.replace(data, text=data.text + text))
        case ReasoningPart(data=thought):
            return ReasoningPart(data=msgspec.structs.replace(thought, thinking=thought.thinking + text))
        case ToolCallPart(data=call):
            return ToolCallPart(data=msgspec.structs.replace(call, input=call.input + text))
    raise AssertionError(f"{part} does not grow")
