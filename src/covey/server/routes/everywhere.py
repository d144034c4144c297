"""Routes about all workspaces of the server at once."""

from __future__ import annotations

from covey.protocol.activity import WorkspaceRun, WorkspaceSession
from covey.protocol.search import SearchResult
from covey.protocol.stats import Spending
from covey.server.endpoint import Call, Endpoint
from covey.server.routes.runs import RUNS_MAX, known_state
from covey.server.routes.session_texts import HITS, HITS_MAX

DAYS = 30
DAYS_MAX = 3_660
"""Ten years."""
ALL_SESSIONS_MAX = 1_000
"""In one answer; `before` pages on."""
SPENDING_MAX = 10_000
"""Lines in one answer: the newest days."""


async def list_all_runs(call: Call, _body: None) -> list[WorkspaceRun]:
    limit = call.count("limit", at_most=RUNS_MAX) or RUNS_MAX
    is_open = bool(call.count("open", at_most=1))
    return await call.workspaces.everywhere.runs(known_state(call.query.get("state", "")), limit, is_open=is_open)


async def list_all_sessions(call: Call, _body: None) -> list[WorkspaceSession]:
    limit = call.count("limit", at_most=ALL_SESSIONS_MAX) or ALL_SESSIONS_MAX
    children, archived = call.query.get("children") == "1", call.query.get("archived") == "1"
    return await call.workspaces.everywhere.sessions(
        call.query.get("before", ""), limit, children=children, archived=archived
    )


async def search_everywhere(call: Call, _body: None) -> SearchResult:
    limit = call.count("limit", at_most=HITS_MAX) or HITS
    return await call.workspaces.everywhere.search(call.query.get("q", ""), limit)


async def stats(call: Call, _body: None) -> list[Spending]:
    days = call.count("days", at_most=DAYS_MAX) or DAYS
    return await call.workspaces.everywhere.spending(days, SPENDING_MAX)


ENDPOINTS = (
    Endpoint(
        "GET", "/v1/runs", list_all_runs,
        "Runs of all workspaces, the newest first; with `open=1` only of those that are open.",
        answer=list[WorkspaceRun],
    ),
    Endpoint(
        "GET", "/v1/sessions", list_all_sessions,
        "As a workspace's own list, over all of them, open or not; `before` is a `workspace_id/id`.",
        answer=list[WorkspaceSession],
    ),
    Endpoint(
        "GET", "/v1/search", search_everywhere,
        "As a workspace's own search, over all of them, open or not; it has no pages.",
        answer=SearchResult,
    ),
    Endpoint(
        "GET", "/v1/stats", stats,
        "Runs, tokens and cost of the last `days` (30) by day, workspace and model, the newest day first.",
        answer=list[Spending],
    ),
)  # fmt: skip
