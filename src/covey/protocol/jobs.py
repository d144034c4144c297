"""What is sent about background jobs."""

from __future__ import annotations

from covey.protocol.messages import Wire


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
    output: str | None = None
    """The end of what it has written; only where one job is asked for."""
