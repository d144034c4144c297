"""What is left of a turn → a whole one: its prompt, finished answers, a result for each tool call (R6, R12).

What is missing is made up and marked as such; what does not belong to the turn is handed back, never thrown away.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from covey.doctor.oracle import is_finished, loose_ends
from covey.doctor.oracle_record import Record
from covey.lifecycle import history
from covey.protocol.endings import closing_result
from covey.protocol.growth import grown
from covey.protocol.messages import (
    Finish,
    FinishPart,
    FinishReason,
    Message,
    Part,
    Role,
    Text,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


class Whole(NamedTuple):
    messages: list[Any]
    disowned: list[Any]
    """Messages that stay in the conversation, but not as part of this run."""


class Turns:
    """Makes the turns of one workspace whole."""

    def __init__(self, found: Record, now: float) -> None:
        self._found = found
        self._now = int(now)
        self._ids = set(found.messages) | {event.payload["id"] for event in found.events if event.type == "message"}

    def whole(self, run: Any, mine: list[Any]) -> Whole:
        """The messages of a turn, with what is missing; of one that goes on a server will write the end."""
        is_over = "ended_at" in run
        prompts = [message for message in mine if message["role"] == "user"]
        turn = [message for message in mine if message not in prompts[1:]]
        disowned = [without_run(extra) for extra in prompts[1:]]
        if not prompts:
            text = (TextPart(data=Text(text=run["prompt"])),) if run["prompt"] else ()
            turn.insert(0, self._new(run, "user", text, "prompt"))
        answers = [message["id"] for message in turn if message["role"] == "assistant"]
        if is_over and not answers and not run.get("folded_into"):
            turn.append(self._new(run, "assistant", (), "answer"))
            answers.append(turn[-1]["id"])
        for index, message in enumerate(turn):
            is_last = message["id"] in answers[-1:]
            if message["id"] in answers and not is_finished(message) and (is_over or not is_last):
                turn[index] = self._finished(run, message, is_last=is_last)
        return self._with_results(run, turn, disowned)

    def _finished(self, run: Any, message: Any, *, is_last: bool) -> Any:
        whole = grown(_message(message), self._found.tails.get(message["id"], ()))
        state = run["state"] if is_last else ""
        end = history.last_answer_end(state, run.get("cancelled_by"))
        reason: FinishReason = end.reason if end else "tool_use" if whole.tool_calls else "unknown"
        finish = whole.finish or Finish(reason=reason, time=self._now, message=end.words if end else None)
        parts = tuple(_closed(part) for part in whole.parts if not isinstance(part, FinishPart))
        return plain(structs.replace(whole, parts=(*parts, FinishPart(data=finish))))

    def _with_results(self, run: Any, turn: list[Any], disowned: list[Any]) -> Whole:
        loose = loose_ends(turn)
        surplus = set(loose.results)
        unanswered = loose.calls if "ended_at" in run else []
        whole = Whole([], disowned)
        for message in turn:
            parts = [part for n, part in enumerate(message["parts"]) if (message["id"], n) not in surplus]
            if len(parts) == len(message["parts"]):
                whole.messages.append(message)
            elif parts:
                whole.messages.append({**message, "parts": parts})
            else:
                whole.disowned.append(without_run(message))
            for message_id, number in unanswered:
                part = _message(message).parts[number] if message_id == message["id"] else None
                if isinstance(part, ToolCallPart):
                    closing = closing_result(part.data, history.open_call_end(run["state"]))
                    whole.messages.append(self._new(run, "tool", (ToolResultPart(data=closing),), "result"))
        return whole

    def _new(self, run: Any, role: Role, parts: tuple[Part, ...], name: str) -> Any:
        """A message with an id that no other has: ids of messages are unique in a store, those of runs are not."""
        message_id = base = f"{self._found.workspace_id}-{run['run_id']}-{name}"
        number = 1
        while message_id in self._ids:
            number += 1
            message_id = f"{base}-{number}"
        self._ids.add(message_id)
        message = Message(
            id=message_id,
            role=role,
            session_id=run["session_id"],
            parts=parts,
            model="",
            provider="",
            created_at=self._now,
            updated_at=self._now,
            run_id=run["run_id"],
        )
        return plain(message)


def plain(value: msgspec.Struct) -> Any:
    """As it comes back from the store."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _message(value: Any) -> Message:
    return msgspec.convert(value, Message)


def without_run(message: Any) -> Any:
    return {key: value for key, value in message.items() if key != "run_id"}


def _closed(part: Part) -> Part:
    return ToolCallPart(data=structs.replace(part.data, finished=True)) if isinstance(part, ToolCallPart) else part
