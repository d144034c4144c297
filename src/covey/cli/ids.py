"""Which session or run is meant: by its id, or by as much of its beginning or its end as no other has.

For all commands. Ids of sessions begin with the time: those of one day begin alike, and differ at their ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from covey.cli.exits import UsageError
from covey.client.client import Client
from covey.protocol.errors import NotFound
from covey.protocol.messages import Session
from covey.protocol.runs import Run

CANDIDATES_SHOWN = 10
"""Of those that begin alike: more would not help anybody to choose."""


async def find_session(client: Client, workspace_id: str, beginning: str) -> Session:
    """The one session that is meant. Raises UsageError if there is none, or more than one."""
    try:
        return await client.session(workspace_id, beginning)
    except NotFound as error:
        if error.code != "session_not_found":
            raise
    listed = await client.sessions(workspace_id, children=True)
    sessions = sorted(listed, key=lambda s: (s.updated_at, s.id), reverse=True)
    found = _only("session", beginning, [session.id for session in sessions], "in this directory; see `covey sessions`")
    return next(session for session in sessions if session.id == found)


async def find_run(client: Client, workspace_id: str, beginning: str, *, session_id: str = "") -> Run:
    """The same for a run, of one session or of any. A beginning is looked up among the newest that the server lists."""
    try:
        run = await client.run(workspace_id, beginning)
    except NotFound as error:
        if error.code != "run_not_found":
            raise
    else:
        if session_id in ("", run.session_id):
            return run
        raise UsageError(f"run {run.run_id} is of session {run.session_id}, not of {session_id}")
    runs = await client.runs(workspace_id, session_id=session_id)
    where = f"in session {session_id}" if session_id else "in this directory"
    found = _only("run", beginning, [run.run_id for run in runs], f"{where}; see `covey runs --all`")
    return next(run for run in runs if run.run_id == found)


def _only(what: str, beginning: str, ids: Sequence[str], where: str) -> str:
    found = [one for one in ids if beginning and one.startswith(beginning)]
    found = found or [one for one in ids if beginning and one.endswith(beginning)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"there is no {what} {beginning} {where}")
    more = f" and {len(found) - CANDIDATES_SHOWN} more" if len(found) > CANDIDATES_SHOWN else ""
    listed = ", ".join(found[:CANDIDATES_SHOWN]) + more
    raise UsageError(f"{beginning} could be any of {len(found)} {what}s: {listed}. Write more of it.")
