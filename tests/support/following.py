"""Comparing what followers have with each other, and with what the server answers."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from covey.client.client import Client
from covey.client.follower import Follower
from covey.client.view.as_json import view_as_json
from covey.protocol.requests import UpdateSession


async def caught_up(client: Client, session_id: str, *followers: Follower) -> None:
    """All of them have what was published until now, and what they loaded: a change of our own is the last event."""
    mark = secrets.token_hex(8)
    await client.update_session(followers[0].workspace_id, session_id, UpdateSession(title=mark))
    for follower in followers:
        await follower.until(
            lambda view: (
                not any(view.loads)
                and (record := view.sessions.get(session_id))
                and record.session
                and record.session.title == mark
            )
        )


def shown(follower: Follower) -> dict[str, Any]:
    """What all who look at the same session see: without times of the connection, and the order of coming."""
    state = view_as_json(follower.view)
    link = {key: value for key, value in state["link"].items() if key not in ("since", "why")}
    return state | {"link": link, "clients": sorted(state["clients"], key=lambda each: each["client_id"])}


async def check_against_server(client: Client, follower: Follower) -> None:
    """The view is what the server answers, as far as routes show it."""
    view, workspace_id = follower.view, follower.workspace_id
    sessions = await client.sessions(workspace_id, children=True, archived=True)
    counts = {session.id: (session.title, session.message_count, session.is_busy) for session in sessions}
    known = {s.id: (s.title, s.message_count, record.is_busy) for s, record in view.sessions}
    assert known == counts, known.items() ^ counts.items()
    assert tuple(view.conversation.messages) == await client.messages(workspace_id, view.current)
    runs = {run.run_id: run for run in await client.runs(workspace_id, session_id=view.current)}
    record = view.sessions.of(view.current)
    assert {i: _still(known.run) for i, known in record.runs.items()} == {i: _still(run) for i, run in runs.items()}
    asks = {ask.id for ask in await client.permissions(workspace_id)}
    asks |= {batch.id for batch in await client.questions(workspace_id)}
    assert {ask.request.id for ask in view.asks.open.values()} == asks


def _still(value: Any) -> Any:
    return msgspec.structs.replace(value, last_progress_at=None)
