"""Routes that take turns back and fork sessions."""

from __future__ import annotations

from covey.protocol.messages import Session
from covey.protocol.requests import ForkSession, UndoReceipt, UndoTurns
from covey.server.endpoint import Call, Endpoint
from covey.server.routes.sessions import ONE


async def undo_turns(call: Call, body: UndoTurns | None) -> UndoReceipt:
    workspace = await call.workspace()
    return await workspace.sessions.undo(call.path["sid"], body or UndoTurns())


async def fork_session(call: Call, body: ForkSession | None) -> Session:
    workspace = await call.workspace()
    return await workspace.sessions.fork(call.path["sid"], body or ForkSession())


ENDPOINTS = (
    Endpoint(
        "POST", ONE + "/undo", undo_turns, "Take back the newest turn, or all from one on, with their files.",
        UndoTurns, UndoReceipt, optional_body=True,
    ),
    Endpoint(
        "POST", ONE + "/fork", fork_session, "A new session with copies of the messages up to one of them.",
        ForkSession, Session, optional_body=True,
    ),
)  # fmt: skip
