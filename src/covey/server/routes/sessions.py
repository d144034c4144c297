"""Routes about sessions and their messages."""

from __future__ import annotations

import msgspec

from covey.protocol.changes import SessionChanges
from covey.protocol.errors import BadRequest
from covey.protocol.messages import Message, Session
from covey.protocol.passed_servers import PassedServers, PassServers
from covey.protocol.requests import CreateSession, UpdateSession
from covey.protocol.v1 import HistoryFile
from covey.protocol.who import May
from covey.server.endpoint import Call, Endpoint

SESSIONS_MAX = 10_000
MESSAGES_MAX = 10_000
CHANGES_MAX = 1_000
"""The most that one answer holds; `after` and `before` page on."""


async def list_sessions(call: Call, _body: None) -> list[Session]:
    workspace = await call.workspace()
    limit = call.count("limit", at_most=SESSIONS_MAX) or SESSIONS_MAX
    children, archived = call.query.get("children") == "1", call.query.get("archived") == "1"
    return await workspace.sessions.page(
        before=call.query.get("before", ""), limit=limit, children=children, archived=archived
    )


async def create_session(call: Call, body: CreateSession | None) -> Session:
    workspace = await call.workspace()
    return await workspace.sessions.create(body.title if body else "")


async def get_session(call: Call, _body: None) -> Session:
    workspace = await call.workspace()
    return await workspace.sessions.read(call.path["sid"])


async def update_session(call: Call, body: UpdateSession) -> Session:
    workspace = await call.workspace()
    return await workspace.sessions.update(call.path["sid"], body)


def _changes_mode(body: UpdateSession) -> May | None:
    """A mode answers for people: only who may do so can change it."""
    return None if body.mode is msgspec.UNSET else "approve"


async def delete_session(call: Call, _body: None) -> None:
    workspace = await call.workspace()
    await workspace.sessions.delete(call.path["sid"])
    await workspace.extensions.pass_along(call.path["sid"], ())  # what was brought along for it ends with it


async def pass_servers(call: Call, body: PassServers) -> PassedServers:
    workspace = await call.workspace()
    session = await workspace.sessions.read(call.path["sid"])
    return await workspace.extensions.pass_along(session.id, body.servers)


async def list_messages(call: Call, _body: None) -> list[Message]:
    workspace = await call.workspace()
    limit = call.count("limit", at_most=MESSAGES_MAX)
    if "before" not in call.query:
        return await workspace.sessions.messages(call.path["sid"], call.query.get("after", ""), limit)
    if "after" in call.query:
        raise BadRequest("give only one of after and before")
    return await workspace.sessions.messages_before(call.path["sid"], call.query["before"], limit or MESSAGES_MAX)


async def history(call: Call, _body: None) -> list[HistoryFile]:
    workspace = await call.workspace()
    return await workspace.sessions.history(call.path["sid"])


async def changes(call: Call, _body: None) -> SessionChanges:
    workspace = await call.workspace()
    return await workspace.sessions.changes(
        call.path["sid"],
        run_id=call.query.get("run_id", ""),
        after=call.query.get("after", ""),
        limit=call.count("limit", at_most=CHANGES_MAX),
        diffs=call.query.get("diffs") != "0",
    )


SESSIONS = "/v1/workspaces/{id}/sessions"
ONE = SESSIONS + "/{sid}"

ENDPOINTS = (
    Endpoint(
        "GET", SESSIONS, list_sessions,
        "The sessions, the last changed first; those of agents only with `children=1`, "
        "archived ones only with `archived=1`. `before` and `limit` page.",
        answer=list[Session],
    ),
    Endpoint("POST", SESSIONS, create_session, "A new session.", CreateSession, Session, optional_body=True),
    Endpoint("GET", ONE, get_session, "One session.", answer=Session),
    Endpoint(
        "PUT", ONE, update_session, "Change the fields that are given.", UpdateSession, Session, needs_for=_changes_mode
    ),
    Endpoint("DELETE", ONE, delete_session, "End its runs and remove it."),
    Endpoint(
        "PUT", ONE + "/mcp", pass_servers,
        "Bring MCP servers along, for as long as the session is there or others are brought; the user's own win.",
        PassServers, PassedServers, needs="approve",
    ),
    Endpoint(
        "GET",
        ONE + "/messages",
        list_messages,
        "Messages in order; `after` or `before`, and `limit`, page.",
        answer=list[Message],
    ),
    Endpoint(
        "GET", ONE + "/changes", changes,
        "What it, or the turn of `run_id`, has changed: by file and turn, with diffs (or `diffs=0`). `after` pages.",
        answer=SessionChanges,
    ),
    Endpoint(
        "GET", ONE + "/history", history, "What it has changed: each file before, and as the session left it.",
        answer=list[HistoryFile],
    ),
)  # fmt: skip
