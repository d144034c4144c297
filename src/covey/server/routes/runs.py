"""Routes about prompts and runs: posting, watching, cancelling, and editing the queue."""

from __future__ import annotations

import re
from typing import get_args

from covey.protocol.errors import BadRequest
from covey.protocol.requests import AgentSession, EditPrompt, PostPrompt, SummarizeSession
from covey.protocol.runs import CancelReceipt, PromptReceipt, Run, RunState
from covey.protocol.who import May
from covey.server.endpoint import Call, Endpoint

WAIT_MAX_S = 60
"""A client that wants to wait longer asks again."""
RUNS_MAX = 1000
"""Runs in one answer when `limit` is not given; the newest first."""
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
"""What a client may use as a run id: it has to fit into a URL and an environment variable."""


def _answers_for_people(body: PostPrompt) -> May | None:
    """Some options of a run say yes in advance."""
    return "approve" if body.answers_for_people else None


async def post_prompt(call: Call, body: PostPrompt) -> PromptReceipt:
    workspace = await call.workspace()
    if body.run_id and not RUN_ID.fullmatch(body.run_id):
        raise BadRequest("run_id begins with a letter or digit; it may have those and . _ : - and at most 128 of them")
    return await workspace.runs.post(body, call.who, call.run_id)


async def session_state(call: Call, _body: None) -> AgentSession:
    workspace = await call.workspace()
    session = await workspace.sessions.read(call.path["sid"])
    return AgentSession(**{name: getattr(session, name) for name in session.__struct_fields__})


async def cancel_session(call: Call, _body: None) -> CancelReceipt:
    workspace = await call.workspace()
    return await workspace.runs.cancel_session(call.path["sid"], call.who)


async def summarize(call: Call, body: SummarizeSession | None) -> PromptReceipt:
    workspace = await call.workspace()
    return await workspace.runs.summarize(call.path["sid"], body.focus if body else "", call.who, call.run_id)


async def count_queued(call: Call, _body: None) -> int:
    workspace = await call.workspace()
    return len(await workspace.runs.queued(call.path["sid"]))


async def list_queued(call: Call, _body: None) -> list[str]:
    workspace = await call.workspace()
    return await workspace.runs.queued(call.path["sid"])


async def clear_queue(call: Call, _body: None) -> CancelReceipt:
    workspace = await call.workspace()
    return await workspace.runs.clear_queue(call.path["sid"], call.who)


async def edit_prompt(call: Call, body: EditPrompt) -> Run:
    workspace = await call.workspace()
    return await workspace.runs.edit_queued(call.path["sid"], call.path["run_id"], body, call.who)


async def remove_prompt(call: Call, _body: None) -> CancelReceipt:
    workspace = await call.workspace()
    return await workspace.runs.remove_queued(call.path["sid"], call.path["run_id"], call.who)


async def list_runs(call: Call, _body: None) -> list[Run]:
    workspace = await call.workspace()
    session_id = call.query.get("session_id", "")
    if session_id:
        await workspace.sessions.read(session_id)
    limit = call.count("limit", at_most=RUNS_MAX) or RUNS_MAX
    return await workspace.runs.newest(session_id, known_state(call.query.get("state", "")), limit)


def known_state(state: str) -> str:
    """Which state of runs is asked for; '' for any."""
    if state and state not in get_args(RunState):
        raise BadRequest(f"state must be one of {', '.join(get_args(RunState))}, not {state!r}")
    return state


async def get_run(call: Call, _body: None) -> Run:
    workspace = await call.workspace()
    return await workspace.runs.get(call.path["run_id"], min(call.number("wait"), WAIT_MAX_S))


async def cancel_run(call: Call, _body: None) -> CancelReceipt:
    workspace = await call.workspace()
    if not RUN_ID.fullmatch(call.path["run_id"]):
        raise BadRequest("this cannot be the id of a run")
    return await workspace.runs.cancel(call.path["run_id"], call.who)


W = "/v1/workspaces/{id}"
S = W + "/agent/sessions/{sid}"

ENDPOINTS = (
    Endpoint(
        "POST", W + "/agent", post_prompt, "Post a prompt: accepted, recorded and then run, whoever stays.",
        PostPrompt, PromptReceipt, status=202, needs_for=_answers_for_people,
    ),
    Endpoint("GET", S, session_state, "A session and whether it is busy.", answer=AgentSession),
    Endpoint("POST", S + "/cancel", cancel_session, "Cancel all open runs of a session.", answer=CancelReceipt),
    Endpoint(
        "POST", S + "/summarize", summarize, "Replace the conversation by a summary: a run like any other.",
        SummarizeSession, PromptReceipt, optional_body=True,
    ),
    Endpoint("GET", S + "/prompts/queued", count_queued, "How many prompts wait.", answer=int),
    Endpoint("GET", S + "/prompts/list", list_queued, "The prompts that wait.", answer=list[str]),
    Endpoint("POST", S + "/prompts/clear", clear_queue, "Drop what waits, not what runs.", answer=CancelReceipt),
    Endpoint(
        "PATCH", S + "/prompts/{run_id}", edit_prompt, "Change the text or the place of a queued prompt, or park it.",
        EditPrompt, Run,
    ),
    Endpoint("DELETE", S + "/prompts/{run_id}", remove_prompt, "Drop one queued prompt.", answer=CancelReceipt),
    Endpoint("GET", W + "/runs", list_runs, "Runs, the newest first.", answer=list[Run]),
    Endpoint("GET", W + "/runs/{run_id}", get_run, "One run; `wait` answers as soon as it ended.", answer=Run),
    Endpoint(
        "POST", W + "/runs/{run_id}/cancel", cancel_run, "Cancel one run, even one that is yet to be posted.",
        answer=CancelReceipt,
    ),
)  # fmt: skip
