"""What a session's lane refuses, in words for people."""

from __future__ import annotations

from typing import assert_never

from covey.lifecycle.decisions import LaneBusy, LaneClosing, LaneFull, LaneHeld
from covey.protocol.errors import ApiError, Conflict, QueueFull
from covey.protocol.runs import Mode
from covey.store.base import RunRow

QUEUE_RETRY_S = 5.0
"""How long a client is asked to wait when the queue is full: about one short turn."""


def in_words(refusal: LaneFull | LaneHeld | LaneClosing | LaneBusy, limit: int = 0) -> ApiError:
    """What a lane does not accept. `limit`: how many prompts may wait."""
    match refusal:
        case LaneFull():
            message = f"{limit} prompts wait in this session already; try again when one has run"
            return QueueFull(message, retry_after=QUEUE_RETRY_S)
        case LaneHeld():
            return being_undone()
        case LaneBusy():
            message = "the session is busy: wait for its run to end, or cancel it, then undo"
            return Conflict(message, "session_busy")
        case LaneClosing():
            return Conflict("the workspace is closing", "workspace_closing")
        case _:
            assert_never(refusal)


def check_same_content(known: RunRow, digest: str, mode: Mode | None) -> None:
    if known.digest != digest or mode not in (None, known.run.mode):
        raise Conflict(f"run id {known.run.run_id!r} was used for another prompt; choose a new one", "run_id_reused")


def being_undone() -> Conflict:
    return Conflict("a turn of this session is being undone; try again at once", "session_busy")


def too_late(run_id: str) -> Conflict:
    return Conflict(f"run {run_id!r} does not wait in the queue any more", "too_late")
