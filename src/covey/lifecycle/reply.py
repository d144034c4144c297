"""Model facts → one assistant message, growing. Cost per fact does not depend on how long the message is.

What a provider streams is translated into the facts below by `models`; a `Reply` turns them into parts. It says of
each fact whether the message only grew (then a delta is enough) or whether its structure changed (then clients need
the whole message).

An answer has bounds, whatever a provider sends: tool calls beyond `MAX_CALLS` are dropped as they come, and what is
longer than `MAX_CHARACTERS` or has more than `MAX_PARTS` is cut there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, assert_never

from msgspec import Struct, structs

from covey.protocol.events import DeltaKind, MessageDelta
from covey.protocol.growth import EMPTY_REASONING, EMPTY_TEXT, GrowingPart, Pieces, TextPiece
from covey.protocol.messages import (
    Finish,
    FinishPart,
    FinishReason,
    Message,
    Part,
    ReasoningPart,
    ToolCall,
    ToolCallPart,
)

MAX_CALLS = 128
"""Tool calls of one answer. OpenAI refuses a history with more in one message, and no work needs more at once."""
MAX_CHARACTERS = 8 * 1024 * 1024
"""Of one answer: words, thoughts, signatures and tool calls. The longest that models write, 128,000 tokens, is 0.5 MiB,
and the largest file that a tool writes has 5 MiB."""
MAX_PARTS = 4096
"""Of one answer. Thoughts, words and calls take turns some hundred times at most; signed pieces of text a bit more."""
PART_CHARACTERS = 64
"""What a part or a tool call counts for beside its text: about its JSON, and empty ones are not for nothing."""


class TextDelta(Struct, frozen=True):
    text: str


class ReasoningDelta(Struct, frozen=True):
    text: str
    signature: str = ""


class ToolCallBegun(Struct, frozen=True):
    """The model starts a tool call. `index` tells the calls of one step apart while their input streams."""

    index: int
    call_id: str
    name: str


class ToolInputDelta(Struct, frozen=True):
    index: int
    text: str


class UsageReported(Struct, frozen=True):
    """Tokens of this step, as the provider counts them. The last report of a step holds."""

    prompt_tokens: int
    """All that the model read, also what came out of a cache or went into it."""
    completion_tokens: int
    cached_tokens: int = 0
    """Of the prompt: read from a cache, which is cheaper."""
    cache_write_tokens: int = 0
    """Of the prompt: put into a cache, which some providers charge for."""
    cost: float | None = None
    """Dollars, where the provider says what it charged."""


class Stopped(Struct, frozen=True):
    """The model is done with this step, and why."""

    reason: FinishReason


ModelFact = TextDelta | ReasoningDelta | ToolCallBegun | ToolInputDelta | UsageReported | Stopped


class Structure(Enum):
    """The message changed in a way that a delta cannot express."""

    CHANGED = "changed"


@dataclass(slots=True)
class _PartInProgress:
    """A part that is still being written: its text, and what else becomes known of it."""

    kind: DeltaKind
    growing: GrowingPart
    signature: Pieces = field(default_factory=Pieces)
    finished: bool = False
    unsaved: list[str] = field(default_factory=list)
    started_at: int | None = None
    finished_at: int | None = None

    def grow(self, text: str) -> int:
        """Append, and say how long the part was before."""
        offset = self.growing.length
        self.growing.append(text)
        self.unsaved.append(text)
        return offset

    def part(self) -> Part:
        part = self.growing.part()
        if isinstance(part, ReasoningPart):
            times = {"started_at": self.started_at, "finished_at": self.finished_at}
            return ReasoningPart(data=structs.replace(part.data, signature=str(self.signature), **times))
        if isinstance(part, ToolCallPart):
            return ToolCallPart(data=structs.replace(part.data, finished=self.finished))
        return part


class Reply:
    """One assistant message in progress. Not a place for rules about runs, and not thread-safe."""

    def __init__(
        self,
        *,
        message_id: str,
        session_id: str,
        run_id: str,
        model: str,
        provider: str,
        now: int,
        is_summary: bool = False,
    ) -> None:
        self.message_id = message_id
        self.session_id = session_id
        self.run_id = run_id
        self._is_summary = is_summary
        self._model = model
        self._provider = provider
        self._created_at = now
        self._finish: Finish | None = None
        self._now: int | None = None
        self.take_back()

    def take_back(self) -> None:
        """Nothing has been said: what was, is no part of the answer. It begins anew."""
        self.stopped: FinishReason | None = None
        self.size = 0
        """How much has come, in characters. What was dropped counts too: a stream of it must have an end."""
        self.dropped_calls = 0
        """Tool calls beyond MAX_CALLS: they are not in the message."""
        self.last_call_id = ""
        self.cut_off = ""
        """Why nothing more is taken, for people; empty while the answer is within its bounds."""
        self.usage = UsageReported(0, 0)
        self._parts: list[_PartInProgress] = []
        self._calls: dict[int, int] = {}
        """For the index of each call, its part."""
        self._call_count = 0

    @property
    def has_calls(self) -> bool:
        return self._call_count > 0

    @property
    def part_count(self) -> int:
        return len(self._parts)

    @property
    def is_empty(self) -> bool:
        """Nothing has been said yet."""
        return not self._parts

    def answered_by(self, model: str, provider: str) -> None:
        """Another model speaks than the one that was meant."""
        self._model, self._provider = model, provider

    def take(self, fact: ModelFact, now: int | None = None) -> MessageDelta | Structure | None:
        """Add one fact. Returns the delta, that the structure changed, or None when clients need not know.

        Without `now`, a part that begins with it does not know when. After that, `cut_off` tells whether it was too
        much. Text is then kept up to the bound, and nothing comes after.
        """
        if self.cut_off:
            return None
        self._now = now
        match fact:
            case TextDelta(text) if text:
                return self._grow(self._last("text"), "text", text)
            case ReasoningDelta(text, signature) if text or signature:
                return self._reason(text, signature)
            case ToolInputDelta(call, text) if text:
                part = self._calls.get(call) if self.dropped_calls else self._calls[call]
                return self._grow(part, "tool_input", text)
            case ToolCallBegun(call, call_id, name):
                return self._begin_call(call, call_id, name)
            case UsageReported():
                self.usage = fact
            case Stopped(reason):
                self.stopped = reason
            case TextDelta() | ReasoningDelta() | ToolInputDelta():
                pass  # it says nothing
            case _:
                assert_never(fact)
        return None

    def close_tool_calls(self) -> None:
        """Every tool call counts as finished from now on: its input will not grow any more."""
        for part in self._parts:
            part.finished = True

    def finish(self, reason: FinishReason, now: int, message: str = "", details: str = "") -> None:
        self.close_tool_calls()
        if self._parts:
            self._parts[-1].finished_at = now
        self._finish = Finish(reason=reason, time=now, message=message or None, details=details or None)

    def message(self, now: int) -> Message:
        """The message as it is now."""
        parts = [part.part() for part in self._parts]
        if self._finish:
            parts.append(FinishPart(data=self._finish))
        return Message(
            id=self.message_id,
            role="assistant",
            session_id=self.session_id,
            parts=tuple(parts),
            model=self._model,
            provider=self._provider,
            created_at=self._created_at,
            updated_at=now,
            is_summary_message=self._is_summary,
            run_id=self.run_id,
        )

    def unsaved(self, parts: int = MAX_PARTS) -> list[TextPiece]:
        """The text by which the first `parts` parts have grown since the last call.

        The cost of saving all of it grows with the text, not its square.
        """
        pieces = []
        for index, part in enumerate(self._parts[:parts]):
            if part.unsaved:
                text = "".join(part.unsaved)
                part.unsaved = []
                pieces.append(TextPiece(index, part.kind, part.growing.length - len(text), text))
        return pieces

    def _begin_call(self, call: int, call_id: str, name: str) -> Structure | None:
        self._calls.pop(call, None)  # whatever had this number, the input that follows is not its own
        if self._call_count == MAX_CALLS:
            self.dropped_calls += 1
            self._has_room(PART_CHARACTERS + len(call_id) + len(name))
            return None
        begun = ToolCallPart(data=ToolCall(id=call_id, name=name, input="", finished=False))
        part = _PartInProgress("tool_input", GrowingPart(begun))
        if not self._has_room(len(call_id) + len(name)) or not self._begin(part):
            return None
        self._call_count += 1
        self.last_call_id = call_id
        self._calls[call] = len(self._parts) - 1
        return Structure.CHANGED

    def _reason(self, text: str, signature: str) -> MessageDelta | Structure | None:
        known = len(self._parts)
        index = self._last("reasoning", fresh=bool(text) and self._is_signed)
        if index is None:
            return None
        if signature and self._has_room(len(signature)):  # half of a signature would be worth nothing
            self._parts[index].signature.append(signature)
        if text:
            return self._grow(index, "reasoning", text)
        return Structure.CHANGED if len(self._parts) > known else None

    @property
    def _is_signed(self) -> bool:
        """A signature ends the thought that it signs."""
        return bool(self._parts and self._parts[-1].signature)

    def _last(self, kind: Literal["text", "reasoning"], *, fresh: bool = False) -> int | None:
        """The part that text of this kind continues: the last one, or a new one. None: there is no room for it."""
        fresh = fresh or not self._parts or self._parts[-1].kind != kind
        if fresh:
            empty = EMPTY_TEXT if kind == "text" else EMPTY_REASONING
            if not self._begin(_PartInProgress(kind, GrowingPart(empty))):
                return None
        return len(self._parts) - 1

    def _begin(self, part: _PartInProgress) -> bool:
        """Add a part, if there is room for it and for some text. With that the one before it is complete."""
        if len(self._parts) == MAX_PARTS:
            self.cut_off = f"the answer was cut off at {MAX_PARTS:,} parts"
        if not self._has_room(PART_CHARACTERS):
            return False
        if self._parts:
            self._parts[-1].finished_at = self._now
        part.started_at = self._now
        self._parts.append(part)
        return True

    def _has_room(self, characters: int) -> bool:
        """Count what has come, and say whether there is room for it and for more."""
        self.size += characters
        if self.size >= MAX_CHARACTERS:
            self.cut_off = f"the answer was cut off at {MAX_CHARACTERS:,} characters"
        return not self.cut_off

    def _grow(self, index: int | None, kind: DeltaKind, text: str) -> MessageDelta | None:
        """None as the index: there is no such part, so the text only counts."""
        if not self._has_room(len(text)):
            text = text[: max(0, len(text) - (self.size - MAX_CHARACTERS))]
        if index is None or not text:
            return None
        offset = self._parts[index].grow(text)
        return MessageDelta(
            message_id=self.message_id,
            session_id=self.session_id,
            run_id=self.run_id,
            part=index,
            kind=kind,
            offset=offset,
            delta=text,
        )
