"""Routes about prompts and runs: posting, watching, cancelling, and editing the queue."""

from __future__ import annotations

import re
from typing import get_args

from covey.engine.lanes.dispatcher import Dispatcher
from covey.engine.workspace import Workspace
from covey.lifecycle.decisions import QueueChange
from covey.protocol.errors import BadRequest, NotFound
from covey.protocol.requests import AgentSession, EditPrompt, PostPrompt
from covey.protocol.runs import CancelReceipt, PromptReceipt, Run, RunState
from covey.server.endpoint import Call, Endpoint

WAIT_MAX_S = 60
"""A client that wants to wait longer asks again."""
RUNS_MAX = 1000
"""Runs in one answer when `limit` is not given; the newest first."""
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
"""What a client may use as a run id: it has to fit into a URL and an environment variable."""


async def post_prompt(call: Call, body: PostPrompt) -> PromptReceipt:
    workspace = await call.workspace()
    if body.run_id and not RUN_ID.fullmatch(body.run_id):
        raise BadRequest("run_id begins with a letter or digit; it may have those and . _ : - and at most 128 of them")
    receipt = await workspace.post_prompt(body)
    workspace.shared.counts["prompts_accepted"] += 1
    return receipt


async def session_state(call: Call, _body: None) -> AgentSession:
    workspace = await call.workspace()
    session = workspace.view(workspace.sessions.get(call.path["sid"]))
    return AgentSession(**{name: getattr(session, name) for name in session.__struct_fields__})


async def cancel_session(call: Call, _body: None) -> CancelReceipt:
    workspace = await call.workspace()
    return await workspace.dispatcher(call.path["sid"]).cancel()


async def summarize(call: Call, _body: None) -> PromptReceipt:
    workspace = await call.workspace()
    return await workspace.summarize(call.path["sid"])


async def count_queued(call: Call, _body: None) -> int:
    workspace = await call.workspace()
    return len(workspace.queued(call.path["sid"]))


async def list_queued(call: Call, _body: None) -> list[str]:
    workspace = await call.workspace()
    return workspace.queued(call.path["sid"])


async def clear_queue(call: Call, _body: None) -> CancelReceipt:
    workspace = await call.workspace()
    return await workspace.dispatcher(call.path["sid"]).clear_queue()


async def edit_prompt(call: Call, body: EditPrompt) -> Run:
    workspace = await call.workspace()
    change = _queue_change(body, "somebody")
    dispatcher = await _lane_of_run(call, workspace)
    return await dispatcher.edit(call.path["run_id"], change)


def _queue_change(body: EditPrompt, who: str) -> QueueChange:
    """What a request wants to change; BadRequest if it says nothing, or two things that exclude each other."""
    if body.prompt is not None and not body.prompt.strip():
        raise BadRequest("the prompt is empty", "empty_prompt")
    places = [place for place in (body.before, body.after, body.first) if place]
    if len(places) > 1:
        raise BadRequest("give only one of before, after and first: a prompt has one place")
    if body.park and body.unpark:
        raise BadRequest("give only one of park and unpark")
    parked_by = who if body.park else "" if body.unpark or body.park is False else None
    if body.prompt is None and not places and parked_by is None:
        raise BadRequest("nothing to change: give prompt, before, after, first, park or unpark")
    return QueueChange(body.prompt, bool(places), body.before, body.after, parked_by)


async def remove_prompt(call: Call, _body: None) -> CancelReceipt:
    workspace = await call.workspace()
    dispatcher = await _lane_of_run(call, workspace)
    return await dispatcher.remove(call.path["run_id"])


async def _lane_of_run(call: Call, workspace: Workspace) -> Dispatcher:
    """The lane of the session in the path; 404 for an id that was never seen in it."""
    session_id, run_id = call.path["sid"], call.path["run_id"]
    workspace.sessions.get(session_id)
    run = await workspace.run(run_id)
    if run.session_id != session_id:
        raise NotFound(f"run {run_id!r} is of another session, {run.session_id!r}", "run_not_found")
    return workspace.lanes.look(session_id)


async def list_runs(call: Call, _body: None) -> list[Run]:
    workspace = await call.workspace()
    session_id = call.query.get("session_id", "")
    if session_id:
        workspace.sessions.get(session_id)
    state = call.query.get("state", "")
    if state and state not in get_args(RunState):
        raise BadRequest(f"state must be one of {', '.join(get_args(RunState))}, not {state!r}")
    limit = call.count("limit", at_most=RUNS_MAX) or RUNS_MAX
    return await workspace.runs(session_id, state, limit)


async def get_run(call: Call, _body: None) -> Run:
    workspace = await call.workspace()
    return await workspace.run(call.path["run_id"], min(call.number("wait"), WAIT_MAX_S))


async def cancel_run(call: Call, _body: None) -> CancelReceipt:
    workspace = await call.workspace()
    if not RUN_ID.fullmatch(call.path["run_id"]):
        raise BadRequest("this cannot be the id of a run")
    return await workspace.cancel_run(call.path["run_id"])


W = "/v1/workspaces/{id}"
S = W + "/agent/sessions/{sid}"

ENDPOINTS = (
    Endpoint(
        "POST", W + "/agent", post_prompt, "Post a prompt: accepted, recorded and then run, whoever stays.",
        PostPrompt, PromptReceipt, status=202,
    ),
    Endpoint("GET", S, session_state, "A session and whether it is busy.", answer=AgentSession),
    Endpoint("POST", S + "/cancel", cancel_session, "Cancel all open runs of a session.", answer=CancelReceipt),
    Endpoint(
        "POST", S + "/summarize", summarize, "Replace the conversation by a summary: a run like any other.",
        answer=PromptReceipt, status=202,
    ),
    Endpoint("GET", S + "/prompts/queued", count_queued, "How many prompts wait.", answer=int),
    Endpoint("GET", S + "/prompts/list", list_queued, "The prompts that wait.", answer=list[str]),
    Endpoint("POST", S + "/prompts/clear", clear_queue, "Drop what waits, not what runs.", answer=CancelReceipt),
    Endpoint("PATCH", S + "/prompts/{run_id}", edit_prompt, "Change the text of one queued prompt.", EditPrompt, Run),
    Endpoint("DELETE", S + "/prompts/{run_id}", remove_prompt, "Drop one queued prompt.", answer=CancelReceipt),
    Endpoint("GET", W + "/runs", list_runs, "Runs, the newest first.", answer=list[Run]),
    Endpoint("GET", W + "/runs/{run_id}", get_run, "One run; `wait` answers as soon as it ended.", answer=Run),
    Endpoint(
        "POST", W + "/runs/{run_id}/cancel", cancel_run, "Cancel one run, even one that is yet to be posted.",
        answer=CancelReceipt,
    ),
)  # fmt: skip
