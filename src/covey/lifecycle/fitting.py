"""A conversation made short enough to be read once more as a whole: for its summary, or for a last word. Pure.

What people and the model said counts most, and what tools gave least: it can be looked up again. So first long results
lose their middle, then the oldest calls go with their results, then long words lose their middle, and at last the
oldest messages go. Nothing is shortened further than it has to be.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

from msgspec import structs

from covey.lifecycle.history import CHARACTERS_PER_TOKEN, estimated_tokens, shortened
from covey.protocol.messages import (
    Binary,
    BinaryPart,
    FinishPart,
    ImageUrlPart,
    Message,
    Part,
    ReasoningPart,
    ShellCommandPart,
    Text,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

MATERIAL_CHARACTERS = 1_000
"""As much is left of each result and of each file: below that, a beginning and an end say nothing any more."""
WORDS_CHARACTERS = 4_000
"""As much is left of each text that somebody wrote, before whole messages are left out."""


@dataclass(frozen=True, slots=True)
class Fitted:
    messages: Sequence[Message]
    left_out: bool = False
    """Messages at the beginning are missing."""


def fitted(messages: Sequence[Message], tokens: int) -> Fitted:
    """The conversation in about so many tokens. A single message is always left, and pictures are never cut."""
    if tokens_of(messages) <= tokens:
        return Fitted(messages)
    shorter = _clipped(messages, tokens, _material, MATERIAL_CHARACTERS)
    shorter = _without_oldest_calls(shorter, tokens)
    shorter = _clipped(shorter, tokens, _words, WORDS_CHARACTERS)
    kept = shortened(shorter, tokens)
    return Fitted(_clipped(kept, tokens, _words, 0), left_out=len(kept) < len(shorter))


def tokens_of(messages: Sequence[Message]) -> int:
    return sum(map(estimated_tokens, messages))


def clip(text: str, characters: int) -> str:
    """The beginning and the end of a text, and between them how much is left out: at most so many characters in all."""
    if len(text) <= characters:
        return text
    kept = max(characters - len(_note(len(text))), 0)
    first, last = (kept + 1) // 2, kept // 2
    return f"{text[:first]}{_note(len(text) - kept)}{text[len(text) - last :]}"


def _note(left_out: int) -> str:
    return f"\n[... {left_out:,} characters are left out here ...]\n"


TextOf = Callable[[Part], str | None]
"""What of a part may be shortened; None: nothing."""


def _material(part: Part) -> str | None:
    """What somebody or something gave to read: results, files, what commands printed."""
    match part:
        case ToolResultPart(data=result):
            return result.content
        case ShellCommandPart(data=command):
            return command.output
        case BinaryPart(data=binary):
            return _file_text(binary)
        case TextPart() | ReasoningPart() | ToolCallPart() | ImageUrlPart() | FinishPart():
            return None
        case _:
            assert_never(part)


def _words(part: Part) -> str | None:
    return part.data.text if isinstance(part, TextPart) else None


def _file_text(binary: Binary) -> str | None:
    """None for a picture. Of what is no text the model gets the name alone, so its content may go."""
    if binary.MIMEType.startswith("image/"):
        return None
    try:
        return base64.b64decode(binary.Data).decode("utf-8", "replace")
    except binascii.Error:
        return None


def _with(part: Part, text: str) -> Part:
    """The part with this text instead of its own."""
    match part:
        case TextPart():
            return TextPart(data=Text(text=text))
        case ToolResultPart(data=result):
            return ToolResultPart(data=structs.replace(result, content=text))
        case ShellCommandPart(data=command):
            return ShellCommandPart(data=structs.replace(command, output=text))
        case BinaryPart(data=binary):
            data = base64.b64encode(text.encode()).decode()
            return BinaryPart(data=structs.replace(binary, Data=data))
        case ReasoningPart() | ToolCallPart() | ImageUrlPart() | FinishPart():
            return part
        case _:
            assert_never(part)


def _clipped(messages: Sequence[Message], tokens: int, text_of: TextOf, least: int) -> Sequence[Message]:
    """Each text cut to the same length: the longest with which all of it fits, and no less than `least`."""
    if (excess := tokens_of(messages) - tokens) <= 0:
        return messages
    lengths = sorted(len(text) for message in messages for part in message.parts if (text := text_of(part)))
    left = sum(lengths) - (excess + len(messages)) * CHARACTERS_PER_TOKEN  # what rounding hides is less than a token
    most = max(_level(lengths, left), least)

    def cut(part: Part) -> Part:
        text = text_of(part)
        return part if text is None or len(text) <= most else _with(part, clip(text, most))

    return [structs.replace(message, parts=tuple(map(cut, message.parts))) for message in messages]


def _level(lengths: Sequence[int], total: int) -> int:
    """How long each may be so that all are `total` together: those that are shorter leave more to the others."""
    for number, length in enumerate(lengths):
        share = total // (len(lengths) - number)
        if length > share:
            return share
        total -= length
    return total


def _without_oldest_calls(messages: Sequence[Message], tokens: int) -> Sequence[Message]:
    """Of the oldest steps only what the model said is left, until the rest fits."""
    excess = tokens_of(messages) - tokens
    kept: list[Message] = []
    is_bare = False
    """The last message that was kept has lost its calls."""
    for message in messages:
        if is_bare and message.role == "tool":
            excess -= estimated_tokens(message)
            continue
        if excess > 0 and message.tool_calls:
            bare = _without_calls(message)
            excess += estimated_tokens(bare) - estimated_tokens(message)
            message, was_bare, is_bare = bare, is_bare, True
        else:
            was_bare, is_bare = is_bare, False
        if was_bare and message.role == "assistant":  # not every model is content with two answers in a row
            said = (part for part in message.parts if not isinstance(part, ReasoningPart))  # thoughts stand first
            message = structs.replace(message, parts=(*kept.pop().parts, *said))
        kept.append(message)
    return kept


def _without_calls(answer: Message) -> Message:
    words = tuple(part for part in answer.parts if isinstance(part, TextPart))
    names = ", ".join(call.name for call in answer.tool_calls)
    note = f"[What was done here is left out: {names}.]\n\n"
    return structs.replace(answer, parts=(*words, TextPart(data=Text(text=f"\n\n{note}" if words else note))))
