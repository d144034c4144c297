"""The runs of a directory that have not ended: which there are, and what each of them waits for."""

from __future__ import annotations

from collections.abc import Iterable

from covey.cli.exits import UsageError
from covey.client.client import Client
from covey.protocol.events import PermissionRequest, QuestionBatchRequest
from covey.protocol.runs import Run, RunState

OPEN: tuple[RunState, ...] = ("accepted", "queued", "active", "folded")
"""In the order in which a run goes through them: asked for one after the other, none can slip through."""
LOOKED_AT = 200
"""To find the latest that have ended, and those that are folded into an open one: they are among the newest."""

Request = PermissionRequest | QuestionBatchRequest


async def open_runs(client: Client, workspace_id: str) -> list[Run]:
    """The newest first."""
    found: dict[str, Run] = {}
    for state in OPEN:
        limit = LOOKED_AT if state == "folded" else None
        found |= {run.run_id: run for run in await client.runs(workspace_id, state=state, limit=limit)}
    runs = [run for run in found.values() if not run.ended]
    return sorted(runs, key=lambda run: (run.accepted_at, run.seq), reverse=True)


async def only_open_run(client: Client, workspace_id: str, state: RunState | None = None) -> Run:
    """The one that is meant where none is named. Raises UsageError if there is none, or more than one."""
    runs = [run for run in await open_runs(client, workspace_id) if not run.effective_options.delegate]
    runs = [run for run in runs if state in (None, run.state)]
    if len(runs) == 1:
        return runs[0]
    what = state or "open"
    if not runs:
        raise UsageError(f"there is no {what} run in this directory; `covey runs --all` lists those that have ended")
    listed = ", ".join(run.run_id for run in runs)
    raise UsageError(f"there are {len(runs)} {what} runs in this directory, so say which one is meant: {listed}")


async def open_requests(client: Client, workspace_id: str) -> list[Request]:
    """What runs ask people, permission requests before questions."""
    return [*await client.permissions(workspace_id), *await client.questions(workspace_id)]


def waits_for(run: Run, runs: Iterable[Run]) -> str:
    """What a queued run waits for, as a sentence without its capital and its dot; '' if it is not queued."""
    if run.state != "queued":
        return ""
    if run.parked_by:
        return f"parked by {run.parked_by}, who edits it"
    others = [other for other in runs if other.session_id == run.session_id]
    active = next((other for other in others if other.state == "active"), None)
    before = sum(other.state == "queued" and (other.place or 0) < (run.place or 0) for other in others)
    from covey.lines.words import counted  # late: most runs wait for nobody

    ahead = counted(before, "other prompt") if before else ""
    if active is None:
        return f"queued behind {ahead}" if before else "it is the next"
    if run.joins(active):
        return f"joins run {active.run_id} before its next step" + (f", behind {ahead}" if before else "")
    text = f"queued behind run {active.run_id}" + (f" and {ahead}" if before else "")
    if run.mode != "fold" or not active.effective_options.keep_others_out:
        return text
    return f"{text}; {active.run_id} was started with options of its own, so it cannot be steered"
