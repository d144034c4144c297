"""Which stored messages the model sees, and how a history with loose ends is made whole.

Every provider refuses a history in which a tool call has no result, has two, or has input that is not JSON. A run can
be cut short at any moment, so the end of a run closes its calls, and this file makes sure once more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import msgspec

from covey.protocol.messages import (
    Message,
    Part,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)

CANCELLED = "The call was cancelled before it finished. It may have had effects."
INTERRUPTED = "The server stopped before the call finished. It may have had effects."
FAILED = "The call did not finish, because the run failed. It may have had effects."


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
    start = next((i for i, m in enumerate(messages) if summary_message_id and m.id == summary_message_id), 0)
    results: dict[str, ToolResult] = {}
    for message in messages[start:]:
        for result in message.tool_results:
            results.setdefault(result.tool_call_id, result)
    seen: list[Message] = []
    for message in messages[start:]:
        if message.role == "tool":
            continue  # placed behind their calls below
        if message.role == "assistant" and not _has_content(message):
            continue  # cut short before the model said anything
        calls = message.tool_calls
        seen.append(_with_valid_input(message) if calls else message)
        if calls:
            seen.append(_results_message(message, calls, results))
    return seen


def _has_content(message: Message) -> bool:
    return bool(message.text.strip() or message.tool_calls)


def _results_message(message: Message, calls: tuple[ToolCall, ...], results: dict[str, ToolResult]) -> Message:
    parts = tuple(ToolResultPart(data=results.get(call.id) or closing_result(call, INTERRUPTED)) for call in calls)
    return msgspec.structs.replace(message, id=f"{message.id}.results", role="tool", parts=parts)


def _with_valid_input(message: Message) -> Message:
    def valid(part: Part) -> Part:
        if isinstance(part, ToolCallPart) and not _is_json_object(part.data.input):
            return ToolCallPart(data=msgspec.structs.replace(part.data, input="{}"))
        return part

    return msgspec.structs.replace(message, parts=tuple(valid(part) for part in message.parts))


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
