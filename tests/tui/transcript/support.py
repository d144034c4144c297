"""Views with made-up messages, and transcripts of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from covey.client.view.inputs import Connected, MessagesLoaded, RunsLoaded, SessionOpened
from covey.client.view.view import View
from covey.lines.line import StyledLine
from covey.protocol.events import MessageDelta, ToolOutputDelta, created, updated
from covey.protocol.messages import (
    Finish,
    FinishPart,
    FinishReason,
    Message,
    Part,
    Role,
    Text,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from covey.protocol.runs import Run, RunComplete, RunState
from covey.tui.transcript.course import Spot
from covey.tui.transcript.shown import ShownTranscript

NOW = 1_800_000_000.0
END = FinishPart(data=Finish(reason="end_turn", time=1))


def text_part(text: str) -> TextPart:
    return TextPart(data=Text(text=text))


def finish(reason: FinishReason, words: str = "", details: str = "") -> FinishPart:
    return FinishPart(data=Finish(reason=reason, time=1, message=words or None, details=details or None))


def message(message_id: str, role: Role, *parts: Part, run_id: str = "r1") -> Message:
    return Message(
        id=message_id,
        role=role,
        session_id="s",
        parts=parts,
        model="m",
        provider="p",
        created_at=int(NOW) - 60,
        updated_at=int(NOW) - 60,
        run_id=run_id,
    )


def user(message_id: str, text: str) -> Message:
    return message(message_id, "user", text_part(text))


def answer(message_id: str, text: str, *, is_finished: bool = True) -> Message:
    return message(message_id, "assistant", text_part(text), *((END,) if is_finished else ()))


def call(
    call_id: str, name: str = "bash", given: str = '{"command":"make test"}', *, is_whole: bool = True
) -> ToolCallPart:
    return ToolCallPart(data=ToolCall(id=call_id, name=name, input=given, finished=is_whole))


def result(
    message_id: str, call_id: str, content: str, *, name: str = "bash", facts: str = "", is_error: bool = False
) -> Message:
    data = ToolResult(tool_call_id=call_id, name=name, content=content, metadata=facts, is_error=is_error)
    return message(message_id, "tool", ToolResultPart(data=data))


def run(state: RunState = "active", run_id: str = "r1", **facts: Any) -> Run:
    ended = NOW if state in ("completed", "failed", "cancelled", "interrupted") else None
    return Run(
        run_id=run_id,
        session_id="s",
        seq=facts.pop("seq", 1),
        state=state,
        mode="own_turn",
        prompt="",
        accepted_at=NOW,
        started_at=NOW,
        ended_at=ended,
        posted_by="kim",
        **facts,
    )


def view_of(messages: Iterable[Message], *, has_older: bool = False, active: bool = True) -> View:
    """A view that is connected, and shows these messages of session `s`."""
    view = View()
    view.apply(Connected(NOW))
    view.apply(SessionOpened("s"))
    loads = {type(each).__name__: each.load for each in view.loads}
    view.apply(MessagesLoaded(loads["LoadMessages"], tuple(messages), has_older))
    view.apply(RunsLoaded(loads["LoadRuns"], (run("active" if active else "completed"),)))
    return view


def put(view: View, *messages: Message) -> None:
    for each in messages:
        view.event(updated(each), "1.1")


def grow(view: View, message_id: str, text: str, offset: int, part: int = 0) -> None:
    delta = MessageDelta(
        message_id=message_id, session_id="s", run_id="r1", part=part, kind="text", offset=offset, delta=text
    )
    view.event(updated(delta))


def printed(view: View, call_id: str, text: str, offset: int = 0) -> None:
    delta = ToolOutputDelta(
        session_id="s", run_id="r1", message_id="a", tool_call_id=call_id, offset=offset, delta=text
    )
    view.event(updated(delta))


def end_run(view: View, state: RunState = "completed", **facts: Any) -> None:
    view.event(updated(run(state, **facts)), "1.2")
    view.event(created(RunComplete(session_id="s", run_id="r1", message_id="a")), "1.3")


def texts(rows: Iterable[StyledLine]) -> list[str]:
    return [row.text.rstrip() for row in rows]


class Screen:
    """A transcript and the size at which it is looked at."""

    def __init__(self, view: View, columns: int = 80, height: int = 24) -> None:
        self.view, self.columns, self.height, self.now = view, columns, height, NOW
        self.transcript = ShownTranscript(me="me")

    def rows(self) -> tuple[StyledLine, ...]:
        self.transcript.sync(self.view, self.now)
        return self.transcript.rows(self.columns, self.height)

    def texts(self) -> list[str]:
        return texts(self.rows())

    def all_rows(self) -> list[StyledLine]:
        """Every row of what is known, on a screen of this width."""
        self.rows()
        window = self.transcript._window
        found: list[StyledLine] = []
        spot = window.after(Spot(-1, 0))
        while spot:
            found += window.rows_at(spot)
            spot = window.after(spot)
        return found

    def all_texts(self) -> list[str]:
        return texts(self.all_rows())
