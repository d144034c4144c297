"""Carries out the loads that a view asks for: one request or a few for each, and the answer as the view takes it."""

from __future__ import annotations

import asyncio
from typing import assert_never

from covey.client.client import Client
from covey.client.view.commands import (
    LoadAsks,
    LoadCommand,
    LoadMessages,
    LoadRuns,
    LoadSessions,
    LoadWorkspace,
)
from covey.client.view.inputs import (
    AsksLoaded,
    LoadAnswer,
    MessagesLoaded,
    RunsLoaded,
    SessionsLoaded,
    WorkspaceLoaded,
)
from covey.protocol.errors import NotFound
from covey.protocol.messages import Message, Session
from covey.protocol.runs import Run, RunState

MESSAGES_PAGE = 200
"""Messages that a session is opened with, and that each look further back brings: many screens, and quickly there."""
RUNS_SHOWN = 200
"""The newest runs: all that anybody looks back to. Those that are open come in any case."""
OPEN_STATES: tuple[RunState, ...] = ("accepted", "queued", "active", "folded")


async def load(client: Client, workspace_id: str, command: LoadCommand, shown: str) -> LoadAnswer:
    """The answer to a load. `shown`: the session that the view shows ('': none), which is never left out."""
    match command:
        case LoadSessions(number):
            return SessionsLoaded(number, await _sessions(client, workspace_id, shown))
        case LoadRuns(number, session_id):
            return RunsLoaded(number, await _runs(client, workspace_id, session_id))
        case LoadMessages(number, session_id, before):
            found = await _messages(client, workspace_id, session_id, before)
            return MessagesLoaded(number, found[-MESSAGES_PAGE:], has_older=len(found) > MESSAGES_PAGE)
        case LoadAsks(number):
            asks = await asyncio.gather(
                client.permissions(workspace_id), client.questions(workspace_id), client.approvals(workspace_id)
            )
            return AsksLoaded(number, *asks)
        case LoadWorkspace(number):
            return WorkspaceLoaded(number, await client.workspace(workspace_id))
        case _:
            assert_never(command)


async def _sessions(client: Client, workspace_id: str, shown: str) -> tuple[Session, ...]:
    """Those that changed last, as many as the server gives at once. One that is shown may have changed long ago."""
    found = await client.sessions(workspace_id, children=True, archived=True)
    if not shown or any(session.id == shown for session in found):
        return found
    try:
        return *found, await client.session(workspace_id, shown)
    except NotFound as error:
        if error.code != "session_not_found":
            raise
        return found


async def _runs(client: Client, workspace_id: str, session_id: str) -> tuple[Run, ...]:
    if session_id:
        try:
            return await client.runs(workspace_id, session_id=session_id, limit=RUNS_SHOWN)
        except NotFound as error:
            if error.code != "session_not_found":
                raise
            return ()  # it was deleted, which an event says
    of_states = [client.runs(workspace_id, state=state) for state in OPEN_STATES]
    answers = await asyncio.gather(*of_states, client.runs(workspace_id, limit=RUNS_SHOWN))
    # A run that goes on meanwhile may be in two of them: the newest answer about it was asked for last.
    return tuple({run.run_id: run for runs in answers for run in runs}.values())


async def _messages(client: Client, workspace_id: str, session_id: str, before: str) -> tuple[Message, ...]:
    """The page that ends there, and one message more if there is one."""
    try:
        return await client.messages(workspace_id, session_id, before=before, limit=MESSAGES_PAGE + 1)
    except NotFound as error:
        if error.code not in ("session_not_found", "message_not_found"):
            raise
        return ()
