"""What goes on in all workspaces of a server: runs that start and end, and what they ask. In short.

An event is that of its workspace, and says besides where it happened:
`{"type": "run", "workspace_id": ..., "path": ..., "payload": {"type": "updated", "payload": {...}}}`. Prompts are cut
short; the text of answers and the parameters of what is asked are left out: the workspace itself has them.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import structs

from covey.protocol.events import (
    Event,
    PermissionNotification,
    PermissionRequest,
    QuestionBatchNotification,
    QuestionBatchRequest,
    decode_event,
)
from covey.protocol.extensions import ApprovalNotification, ApprovalRequest
from covey.protocol.messages import Session, Wire
from covey.protocol.runs import Run, RunComplete

PROMPT_CHARS = 500
"""Of a prompt, and of an error: what a list shows of it."""
PRESENT = "present"
"""The type of the first event: what is open follows, and whatever was known before is void."""


class WorkspaceRun(Run, frozen=True, kw_only=True):
    """A run, and where it is."""

    workspace_id: str
    path: str


class WorkspaceSession(Session, frozen=True, kw_only=True):
    """A session, and where it is."""

    workspace_id: str
    path: str


class Present(Wire, frozen=True, omit_defaults=False):
    """How many events of the present state follow at once: one for each open run, then one for each open ask."""

    runs: int
    asks: int


class Activity(msgspec.Struct, frozen=True):
    """One event of the stream."""

    workspace_id: str
    path: str
    event: Event | None
    """None: of a type that this version does not know, or the first one."""
    present: Present | None = None
    """Only of the first one."""


def shortened(event: Event) -> Event | None:
    """The event as it is shown to those who watch everything; None: it is not."""
    match event.payload:
        case Run() as run:
            payload: Any = structs.replace(run, prompt=_cut(run.prompt), text=None, error=run.error and _cut(run.error))
        case RunComplete() as terminal:
            payload = structs.replace(terminal, text=None, error=terminal.error and _cut(terminal.error))
        case PermissionRequest() as request:
            payload = structs.replace(request, params={}, description=_cut(request.description))
        case QuestionBatchRequest() as batch:
            payload = structs.replace(batch, questions=())
        case PermissionNotification() as answer if answer.is_answer:
            payload = answer
        case QuestionBatchNotification() as closed:
            payload = closed
        case ApprovalRequest() as approval:
            payload = structs.replace(approval, text=None, instructions=None, tools=(), args=())
        case ApprovalNotification() as answered:
            payload = answered
        case _:
            return None
    return Event(event.change, payload, event.session_id)


def _cut(text: str) -> str:
    return text if len(text) <= PROMPT_CHARS else text[: PROMPT_CHARS - 1] + "…"


def encode_activity(workspace_id: str, path: str, event: Event) -> bytes:
    inner = {"type": event.change, "payload": event.payload}
    return msgspec.json.encode({"type": event.type, "workspace_id": workspace_id, "path": path, "payload": inner})


def encode_present(present: Present) -> bytes:
    return msgspec.json.encode({"type": PRESENT, "payload": {"type": "created", "payload": present}})


class _Inner(Wire, frozen=True):
    payload: Present


class _Where(Wire, frozen=True):
    type: str
    workspace_id: str = ""
    path: str = ""
    payload: msgspec.Raw = msgspec.Raw(b"{}")


def decode_activity(data: bytes | str) -> Activity:
    where = msgspec.json.decode(data, type=_Where)
    if where.type == PRESENT:
        return Activity("", "", None, msgspec.json.decode(where.payload, type=_Inner).payload)
    return Activity(where.workspace_id, where.path, decode_event(data))
