"""Short ways to make wire values for tests."""

from __future__ import annotations

from typing import Literal

import msgspec

from covey.protocol.events import MessageDelta
from covey.protocol.messages import Finish, FinishPart, FinishReason, Message, Part, Session, Text, TextPart
from covey.protocol.requests import ConfigView, Options, SelectedModel, WorkspaceView
from covey.protocol.runs import Run, RunComplete, RunState


def text_message(
    message_id: str,
    text: str = "",
    *,
    role: Literal["user", "assistant", "tool"] = "assistant",
    run_id: str = "r1",
    finish: FinishReason | None = None,
    session_id: str = "s1",
    parts: tuple[Part, ...] = (),
) -> Message:
    """A message with one text part (none if the text is empty), or with the parts given."""
    made = parts or ((TextPart(data=Text(text=text)),) if text else ())
    if finish:
        made = (*made, FinishPart(data=Finish(reason=finish, time=2)))
    return Message(
        id=message_id,
        role=role,
        session_id=session_id,
        parts=made,
        model="m",
        provider="p",
        created_at=1,
        updated_at=1,
        run_id=run_id,
    )


def text_delta(message_id: str, offset: int, text: str, *, part: int = 0, run_id: str = "r1") -> MessageDelta:
    return MessageDelta(
        message_id=message_id, session_id="s1", run_id=run_id, part=part, kind="text", offset=offset, delta=text
    )


def some_session(session_id: str = "s1", *, updated_at: int = 1, title: str = "") -> Session:
    return Session(
        id=session_id,
        parent_session_id="",
        title=title,
        message_count=0,
        prompt_tokens=0,
        completion_tokens=0,
        summary_message_id="",
        cost=0.0,
        created_at=1,
        updated_at=updated_at,
        is_busy=False,
        attached_clients=0,
    )


def some_workspace(workspace_id: str = "w1", path: str = "/project") -> WorkspaceView:
    config = ConfigView(
        models={"large": SelectedModel(model="big", provider="local")},
        providers={},
        options=Options(data_directory="/data"),
    )
    return WorkspaceView(id=workspace_id, path=path, yolo=False, data_dir="/data", version="0.1.0", config=config)


def some_run(
    run_id: str = "r1", state: RunState = "active", *, text: str | None = None, error: str | None = None
) -> Run:
    ended = state in ("completed", "failed", "cancelled", "interrupted")
    return Run(
        run_id=run_id,
        session_id="s1",
        seq=1,
        state=state,
        mode="own_turn",
        prompt="hello",
        accepted_at=1.0,
        ended_at=2.0 if ended else None,
        text=text,
        error=error,
    )


def run_complete(run_id: str = "r1", text: str | None = None, **fields: bool | str) -> RunComplete:
    made = RunComplete(session_id="s1", run_id=run_id, message_id="m1", text=text)
    return msgspec.structs.replace(made, **fields)
