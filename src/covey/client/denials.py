"""What a run was not allowed to do, as its tool results say. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from covey.protocol.endings import denied_by
from covey.protocol.messages import Message


class Denied(msgspec.Struct, frozen=True, kw_only=True):
    """One call that was refused."""

    tool: str
    input: Any
    """What the tool was to do, as the model wrote it."""
    by: str
    """`rule` (also a mode, such as plan), `person`, `nobody` (there was none to be asked), `sandbox` or `hook`."""
    reason: str
    """What the model was answered."""


def denied_calls(messages: Iterable[Message], run_id: str) -> tuple[Denied, ...]:
    """The calls of one run that were refused, in their order."""
    inputs: dict[str, str] = {}
    found: list[Denied] = []
    for message in messages:
        if message.run_id != run_id:
            continue
        inputs |= {call.id: call.input for call in message.tool_calls}
        for result in message.tool_results:
            if by := denied_by(result):
                given = _json(inputs.get(result.tool_call_id, "null"))
                found.append(Denied(tool=result.name, input=given, by=by, reason=result.content))
    return tuple(found)


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
