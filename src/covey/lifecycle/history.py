"""Which stored messages the model sees, and how a history with loose ends is made whole.

Every provider refuses a history in which a tool call has no result, has two, or has input that is not JSON. A run can
be cut short at any moment, so the end of a run closes its calls, and this file checks it again.

A prompt whose turn was stopped, failed or was cut off must not be read as if it were still asked (R18). A note says so,
where the answer would have ended. It follows from the stored messages alone: so it is the same after a restart and in a
fork, and never changes, which would spoil the provider's cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

import msgspec

from covey.lifecycle.reply import MAX_CALLS
from covey.protocol.endings import AnswerEnd, CallEnd, answer_end, closing_result
from covey.protocol.messages import (
    BinaryPart,
    Finish,
    FinishPart,
    ImageUrlPart,
    Message,
    Part,
    ReasoningPart,
    ShellCommandPart,
    Text,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)

CHARACTERS_PER_TOKEN = 4
"""Of English and of most code. Other languages take more tokens: summarising begins early enough for that."""
MESSAGE_TOKENS = 8
"""What the frame of a message takes."""
IMAGE_CHARACTERS = 6_000
"""A picture is about 1,500 tokens, however many bytes it has."""

_THEN = (
    "before the answer was complete. Requests still open at this point are not to be acted upon "
    "unless the user asks for them again or says to continue."
)
STOPPED_NOTE = f"[Stopped by the user {_THEN}]"
FAILED_NOTE = f"[Failed {_THEN}]"
CUT_OFF_NOTE = f"[Cut off {_THEN}]"
"""Notes to the model. They stand among its own words, since the user's would be orders; the brackets set them apart.

What went wrong is not quoted: an error can hold words of a provider, or of the author of a file that it read.
"""
SUMMARY_BEGINS = "[Summary of the conversation so far:]"
SUMMARY_ENDS = "[End of the summary. The conversation continues here.]"
"""Around a summary, which is given as the user's words: what it quotes is no new request."""


def correction(problem: str) -> str:
    """What the model reads after an answer that does not fit the schema of its prompt."""
    return f"[This answer cannot be used: {problem}. Answer again: the corrected JSON, and nothing else.]"


def held(reason: str) -> str:
    """What the model reads after an answer with which a hook does not let the turn end."""
    return f"[A hook does not let the turn end yet. It says: {reason}]"


def place_words(message: Message) -> str:
    """What the model reads after a prompt whose author was in a directory below the root; '' for all else.

    The name of a directory may be a stranger's: whatever in it could end a line or be invisible is written out.
    """
    if not message.cwd or message.role != "user":
        return ""
    return f'\n\n(I am in {message.cwd!r} of the workspace as I write this: "here" and relative paths may mean there.)'


def dropped_calls(count: int) -> str:
    """What the model reads when it made more calls in one answer than are run."""
    return (
        f"Only the first {MAX_CALLS} tool calls of an answer are run: {count:,} more came after this one, and were"
        " dropped without any effect. Look at the results, and then make those calls again that are still needed,"
        f" at most {MAX_CALLS} at a time."
    )


def open_calls(messages: Iterable[Message]) -> list[ToolCall]:
    """The tool calls that have no result."""
    calls: dict[str, ToolCall] = {}
    for message in messages:
        calls.update({call.id: call for call in message.tool_calls})
        for result in message.tool_results:
            calls.pop(result.tool_call_id, None)
    return list(calls.values())


def for_model(messages: Sequence[Message], summary_message_id: str = "") -> list[Message]:
    """What the model sees: from the last summary on, with exactly one result right after each tool call.

    A turn that did not end with an answer ends with a note.
    """
    seen: list[Message] = []
    results: dict[str, ToolResult] = {}
    messages = _with_commands(messages)
    # Backwards, since some models use the same ids again in each step: a result belongs to the last call before it that
    # has its id, and of two results the first one counts.
    for message in reversed(since_summary(_with_notes(messages, summary_message_id), summary_message_id)):
        results.update({result.tool_call_id: result for result in reversed(message.tool_results)})
        if message.is_summary_message:
            continue  # it is not the session's own, so it was never finished
        if message.tool_calls:
            seen.append(_results_message(message, results))
            seen.append(_with_valid_input(message))
        else:
            seen += _correction(message)
            seen += [_with_place(message)] if _has_words(message) else []
    seen.reverse()
    return seen


class Conversation:
    """What the model sees in a turn, as it grows: a further step costs what it adds, not what there is already."""

    def __init__(self, stored: Sequence[Message], summary_message_id: str = "") -> None:
        self.messages = for_model(stored, summary_message_id)
        self.tokens = sum(map(estimated_tokens, self.messages))
        """Roughly what all of it costs a model to read."""

    def add(self, stored: Sequence[Message]) -> None:
        """What the turn has added since: prompts that joined it, or an answer with the results of all its calls."""
        seen = for_model(stored)
        self.messages += seen
        self.tokens += sum(map(estimated_tokens, seen))

    @property
    def has_past(self) -> bool:
        """Whether there is more to sum up than what was just asked for."""
        return any(message.role == "assistant" for message in self.messages)


def answered_prompts(seen: Sequence[Message]) -> list[Message]:
    """Of what a model sees: the prompts whose turns ended with an answer. No others may be quoted to it (R18)."""
    answered: list[Message] = []
    turn: list[Message] = []
    is_closed = False
    for message in seen:
        if message.text.startswith(SUMMARY_BEGINS):
            continue
        if message.role == "user" and not message.is_summary_message:
            if is_closed:
                answered += turn
                turn, is_closed = [], False
            turn.append(message)
        elif message.role == "assistant":
            is_closed = not message.tool_calls and not _goes_on(message.finish)
            if message.text.endswith((STOPPED_NOTE, FAILED_NOTE, CUT_OFF_NOTE)):
                turn = []
    return answered + (turn if is_closed else [])


def last_answer_end(state: str, cancelled_by: str | None) -> AnswerEnd | None:
    """How the last answer of a run ends that ended in this state; None: it was simply answered."""
    match state:
        case "cancelled":
            return AnswerEnd.SHUT_DOWN if cancelled_by == "shutdown" else AnswerEnd.STOPPED
        case "failed":
            return AnswerEnd.FAILED
        case "interrupted":
            return AnswerEnd.INTERRUPTED
    return None


def open_call_end(state: str, *, began: bool = True) -> CallEnd:
    """How a call ends that is still open when its run ends in this state; `began`: as far as is known."""
    if not began:
        return CallEnd.NOT_BEGUN
    match state:
        case "cancelled":
            return CallEnd.CANCELLED
        case "interrupted":
            return CallEnd.INTERRUPTED
    return CallEnd.RUN_FAILED


def since_summary(messages: Sequence[Message], summary_message_id: str) -> Sequence[Message]:
    """From the summary on. It is given as the user's words: many models refuse a conversation that they begin."""
    for index, message in enumerate(messages):
        if message.id == summary_message_id:
            parts = (_text(SUMMARY_BEGINS), *message.parts, _text(SUMMARY_ENDS))
            given = msgspec.structs.replace(message, role="user", is_summary_message=False, parts=parts)
            return (given, *messages[index + 1 :])
    return messages


def _text(words: str) -> TextPart:
    return TextPart(data=Text(text=words))


def shortened(messages: Sequence[Message], tokens: int) -> Sequence[Message]:
    """The newest messages that fit into about so many tokens, and at least the last one.

    For the case in which all of them are too many even to be summarised. Begins with a prompt if there is one.
    """
    used, start = 0, len(messages)
    while start > 0 and (used := used + estimated_tokens(messages[start - 1])) <= tokens:
        start -= 1
    start = min(start, max(len(messages) - 1, 0))
    prompts = (index for index in range(start, len(messages)) if messages[index].role == "user")
    start = next(prompts, start)
    while start and messages[start].role == "tool":  # a result without its call is none
        start -= 1
    return messages[start:]


def estimated_tokens(message: Message) -> int:
    """Roughly what a message costs a model to read, where no provider has counted it."""
    characters = 0
    for part in message.parts:
        match part:
            case TextPart(data=data):
                characters += len(data.text)
            case ToolCallPart(data=call):
                characters += len(call.name) + len(call.input)
            case ToolResultPart(data=result):
                characters += len(result.content) + (IMAGE_CHARACTERS if result.data else 0)
            case BinaryPart(data=binary):
                is_image = binary.MIMEType.startswith("image/")
                characters += IMAGE_CHARACTERS if is_image else len(binary.Data) * 3 // 4
            case ShellCommandPart(data=command):
                characters += len(command.command) + len(command.output)
            case ReasoningPart() | ImageUrlPart() | FinishPart():
                pass
            case _:
                assert_never(part)
    return MESSAGE_TOKENS + characters // CHARACTERS_PER_TOKEN


def _with_commands(messages: Sequence[Message]) -> list[Message]:
    """Without the commands of people, which belong to no turn. Those that are shared stand in the next prompt.

    There, and not where they were run: that may be in the middle of a turn, whose model has not seen them.
    """
    shown: list[Message] = []
    shared: tuple[Part, ...] = ()
    for message in messages:
        if message.is_command:
            shared += tuple(part for part in message.parts if isinstance(part, ShellCommandPart) and part.data.share)
            continue
        if shared and message.role == "user":
            message = msgspec.structs.replace(message, parts=(*shared, *message.parts))
            shared = ()
        shown.append(message)
    return shown


def _with_place(message: Message) -> Message:
    if not (words := place_words(message)):
        return message
    return msgspec.structs.replace(message, parts=(*message.parts, TextPart(data=Text(text=words))))


def _with_notes(messages: Sequence[Message], summary_message_id: str) -> list[Message]:
    """The messages, with a note at the end of each turn that needs one: before the prompt that begins the next turn."""
    noted: list[Message] = []
    note, is_open = "", False
    for message in messages:
        if message.role == "user":
            # Prompts that are folded into a turn have a run, as all of it does; only copies in a fork have none.
            if is_open and message.run_id and not noted[-1].run_id:
                note = CUT_OFF_NOTE
            if note:
                _add_note(noted, note, summary_message_id)
            note, is_open = "", True
        elif message.role == "assistant":
            is_open = _goes_on(message.finish)
            note = _note(message.finish) or note  # a summary that follows is no word about the turn
        noted.append(message)
    if note:
        _add_note(noted, note, summary_message_id)
    return noted


def _goes_on(finish: Finish | None) -> bool:
    """Whether the turn goes on after the answer that is finished like this."""
    asked_again = (AnswerEnd.RETRIED, AnswerEnd.REJECTED, AnswerEnd.HELD)
    return finish is not None and (finish.reason == "tool_use" or answer_end(finish) in asked_again)


def _note(finish: Finish | None) -> str:
    """What the model reads after the last answer of a turn; nothing if it is a whole one, or not the last."""
    end = answer_end(finish)
    match end:
        case None | AnswerEnd.RETRIED | AnswerEnd.REJECTED | AnswerEnd.HELD:
            return ""
        case AnswerEnd.SHUT_DOWN | AnswerEnd.INTERRUPTED:
            return CUT_OFF_NOTE
        case AnswerEnd.STOPPED:
            return STOPPED_NOTE
        case AnswerEnd.FAILED:
            return FAILED_NOTE
        case _:
            assert_never(end)


def _add_note(noted: list[Message], note: str, summary_message_id: str) -> None:
    """In the place of an answer without words, at the end of a partial one, else as an answer of its own."""
    last = noted[-1]
    kept: tuple[Part, ...] = ()
    if last.role != "assistant" or last.tool_calls or last.id == summary_message_id:
        last = msgspec.structs.replace(last, id=f"{last.id}.note", role="assistant")
    else:
        noted.pop()
        kept = () if last.is_summary_message else _until_last_word(last.parts)
    part = TextPart(data=Text(text=f"\n\n{note}" if kept else note))
    noted.append(msgspec.structs.replace(last, parts=(*kept, part), is_summary_message=False))


def _until_last_word(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Thoughts after that led to nothing: with the note after them, a provider would take them for its reason."""
    words = (number for number, part in enumerate(parts, 1) if isinstance(part, TextPart) and part.data.text.strip())
    return parts[: max(words, default=0)]


def _has_words(message: Message) -> bool:
    """Not a bare result, which follows its call, nor an answer that was cut short before its first word."""
    return message.role != "tool" and (message.role != "assistant" or bool(message.text.strip()))


def _results_message(message: Message, results: dict[str, ToolResult]) -> Message:
    """The results of its calls, which are taken out of `results`."""
    missing = {call.id: closing_result(call, CallEnd.INTERRUPTED) for call in message.tool_calls}
    parts = tuple(ToolResultPart(data=results.pop(call.id, missing[call.id])) for call in message.tool_calls)
    return msgspec.structs.replace(message, id=f"{message.id}.results", role="tool", parts=parts)


def _correction(answer: Message) -> list[Message]:
    """What follows an answer that was rejected, or held by a hook: a message of ours, for the model alone."""
    end = answer_end(answer.finish)
    if answer.finish is None or end not in (AnswerEnd.REJECTED, AnswerEnd.HELD):
        return []
    why = answer.finish.details or ""
    part = TextPart(data=Text(text=correction(why) if end is AnswerEnd.REJECTED else held(why)))
    return [msgspec.structs.replace(answer, id=f"{answer.id}.correction", role="user", parts=(part,))]


def _with_valid_input(message: Message) -> Message:
    def valid(part: Part) -> Part:
        if isinstance(part, ToolCallPart) and not _is_json_object(part.data.input):
            return ToolCallPart(data=msgspec.structs.replace(part.data, input="{}"))
        return part

    return msgspec.structs.replace(message, parts=tuple(valid(part) for part in message.parts))


def _is_json_object(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=dict[str, Any])
    except (ValueError, RecursionError):  # a model can nest deeper than any parser goes
        return False
    return True
