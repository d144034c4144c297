"""What is sent about background jobs."""

from __future__ import annotations

from typing import Literal

from covey.protocol.messages import Wire

JobState = Literal["running", "exited", "killed", "closed"]
"""`exited`: by itself; `killed`: by the model or a person; `closed`: with the workspace or the server."""


class JobView(Wire, frozen=True):
    """A command that a session left running, or one that has ended lately."""

    id: str
    session_id: str
    command: str
    started_at: float
    is_running: bool
    exit_code: int | None = None
    """None: it runs, or did not end by itself."""
    was_killed: bool = False
    state: JobState | None = None
    ended_at: float | None = None
    output: str | None = None
    """The end of what it has written; only where one job is asked for."""
