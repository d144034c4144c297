"""What a session's lane refuses, in words for people."""

from __future__ import annotations

from covey.protocol.errors import Conflict
from covey.protocol.runs import Mode
from covey.store.base import RunRow


def check_same_content(known: RunRow, digest: str, mode: Mode | None) -> None:
    if known.digest != digest or mode not in (None, known.run.mode):
        raise Conflict(f"run id {known.run.run_id!r} was used for another prompt; choose a new one", "run_id_reused")


def being_undone() -> Conflict:
    return Conflict("a turn of this session is being undone; try again at once", "session_busy")


def too_late(run_id: str) -> Conflict:
    return Conflict(f"run {run_id!r} does not wait in the queue any more", "too_late")
