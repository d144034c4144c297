"""Which stored messages the model sees, and how a history with loose ends is made whole.

Every provider refuses a history in which a tool call has no result, has two, or has input that is not JSON. A run can
be cut short at any moment, so the end of a run closes its calls, and this file makes sure once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from covey.lifecycle.reply import MAX_CALLS
from covey.protocol.messages import (
    BinaryPart,
    Message,
    Part,
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

CANCELLED = "The call was cancelled before it finished. It may have had effects."
INTERRUPTED = "The server stopped before the call finished. It may have had effects."
FAILED = "The call did not finish, because the run failed. It may have had effects."


def dropped_calls(count: int) -> str:
    """What the model is told when it made more calls in one answer than are run."""
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


def closing_result(call: ToolCall, why: str) -> ToolResult:
    """The result of a call that did not finish."""
    return ToolResult(tool_call_id=call.id, name=call.name, content=why, metadata="", is_error=True)


def for_model(messages: Sequence[Message], summary_message_id: str = "") -> list[Message]:
    """What the model sees: from the last summary on, with exactly one result right after each tool call."""
    seen: list[Message] = []
    results: dict[str, ToolResult] = {}
    # Backwards, since some models count their calls anew in each step: a result belongs to the last call before it
    # that has its id, and of two results the first one counts.
    for message in reversed(since_summary(messages, summary_message_id)):
        results.update({result.tool_call_id: result for result in reversed(message.tool_results)})
        if message.is_summary_message:
            continue  # it is not the session's own, so it was never finished
        if message.tool_calls:
            seen.append(_results_message(message, results))
            seen.append(_with_valid_input(message))
        elif _has_words(message):
            seen.append(message)
    seen.reverse()
    return seen


def since_summary(messages: Sequence[Message], summary_message_id: str) -> Sequence[Message]:
    """From the summary on. It is told as the user's words: many models refuse a conversation that they begin."""
    for index, message in enumerate(messages):
        if message.id == summary_message_id:
            return (msgspec.structs.replace(message, role="user", is_summary_message=False), *messages[index + 1 :])
    return messages


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
    return MESSAGE_TOKENS + characters // CHARACTERS_PER_TOKEN


def _has_words(message: Message) -> bool:
    """Not a bare result, which stands behind its call, nor an answer that was cut short before its first word."""
    return message.role != "tool" and (message.role != "assistant" or bool(message.text.strip()))


def _results_message(message: Message, results: dict[str, ToolResult]) -> Message:
    """The results of its calls, which are taken out of `results`."""
    missing = {call.id: closing_result(call, INTERRUPTED) for call in message.tool_calls}
    parts = tuple(ToolResultPart(data=results.pop(call.id, missing[call.id])) for call in message.tool_calls)
    return msgspec.structs.replace(message, id=f"{message.id}.results", role="tool", parts=parts)


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
