"""Routes about all workspaces of the server at once."""

from __future__ import annotations

from covey.protocol.activity import WorkspaceRun
from covey.protocol.search import SearchResult
from covey.protocol.stats import Spending
from covey.server.endpoint import Call, Endpoint
from covey.server.routes.runs import RUNS_MAX, known_state
from covey.server.routes.session_texts import HITS, HITS_MAX

DAYS = 30
DAYS_MAX = 3_660
"""Ten years."""
SPENDING_MAX = 10_000
"""Lines in one answer: the newest days."""


async def list_all_runs(call: Call, _body: None) -> list[WorkspaceRun]:
    limit = call.count("limit", at_most=RUNS_MAX) or RUNS_MAX
    is_open = bool(call.count("open", at_most=1))
    return await call.workspaces.everywhere.runs(known_state(call.query.get("state", "")), limit, is_open=is_open)


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
