"""The route table against the protocol, and the description of the API against the route table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.routing import Route

from covey.server import openapi
from covey.server.app import ENDPOINTS, V1_ENDPOINTS
from tests.server.site import serving

W = "/v1/workspaces/{id}"
S = W + "/agent/sessions/{sid}"

PROTOCOL = f"""
    GET /v1/health
    GET /v1/ready
    GET /v1/nodes
    DELETE /v1/nodes/{{name}}
    GET /v1/version
    POST /v1/control
    DELETE /v1/clients/{{client_id}}
    GET POST /v1/workspaces
    GET /v1/runs
    GET /v1/activity
    GET /v1/sessions
    GET /v1/search
    GET /v1/stats
    GET DELETE {W}
    POST {W}/current-session
    GET {W}/events
    GET POST {W}/sessions
    GET PUT DELETE {W}/sessions/{{sid}}
    GET {W}/sessions/{{sid}}/messages
    GET {W}/files
    GET {W}/files/content
    GET {W}/extensions/{{kind}}/{{name}}
    GET {W}/commands
    POST {W}/commands/expand
    GET {W}/extensions
    PUT {W}/sessions/{{sid}}/mcp
    GET {W}/approvals
    POST {W}/approvals/answer
    GET {W}/sessions/{{sid}}/changes
    GET {W}/sessions/{{sid}}/history
    GET {W}/sessions/{{sid}}/export
    GET {W}/search
    POST {W}/sessions/{{sid}}/undo
    POST {W}/sessions/{{sid}}/fork
    GET POST {W}/agent
    POST {W}/agent/init
    POST {W}/agent/update
    GET {S}
    POST {S}/cancel
    GET {S}/prompts/queued
    GET {S}/prompts/list
    POST {S}/prompts/clear
    PATCH DELETE {S}/prompts/{{run_id}}
    POST {S}/summarize
    POST {S}/shell
    GET {W}/jobs
    GET {W}/jobs/{{job_id}}
    POST {W}/jobs/{{job_id}}/kill
    GET {W}/runs
    GET {W}/runs/{{run_id}}
    POST {W}/runs/{{run_id}}/cancel
    GET POST {W}/permissions/skip
    GET {W}/permissions
    POST {W}/permissions/grant
    GET {W}/questions
    POST {W}/questions/answer
    POST {W}/questions/cancel
    GET {W}/config
    GET {W}/providers
    POST /v1/web/codes
    GET POST /v1/web/sessions
    DELETE /v1/web/sessions/{{page_id}}
    POST /v1/web/sign-out
    GET /metrics
    GET /openapi.json
    GET /
    GET /web/{{hash}}/{{path:path}}
"""
"""The routes of the protocol page."""

NOT_YET: set[str] = set()
"""Promised by the protocol and not there yet: whoever adds one takes it from this list."""

NOT_DESCRIBED = {"GET /metrics", "GET /openapi.json", "GET /", "GET /web/{hash}/{path:path}"}
"""For machines that know them anyway."""

QUERIES = {
    f"GET {W}/events": {"client_id", "deltas", "session_id", "last_event_id"},
    f"GET {W}/sessions": {"limit", "before", "children", "archived"},
    f"GET {W}/sessions/{{sid}}/messages": {"after", "before", "limit"},
    f"GET {W}/sessions/{{sid}}/changes": {"run_id", "after", "limit", "diffs"},
    "GET /v1/runs": {"state", "limit", "open"},
    "GET /v1/sessions": {"limit", "before", "children", "archived"},
    "GET /v1/search": {"q", "limit"},
    "GET /v1/stats": {"days"},
    f"GET {W}/search": {"q", "limit", "before"},
    f"GET {W}/sessions/{{sid}}/export": {"format"},
    f"GET {W}/files": {"q", "limit"},
    f"GET {W}/files/content": {"path"},
    f"GET {W}/runs": {"session_id", "state", "limit"},
    f"GET {W}/runs/{{run_id}}": {"wait"},
    f"DELETE {W}": {"client_id"},
    f"POST {W}/current-session": {"client_id"},
}


def promised() -> set[str]:
    lines = [line.split() for line in PROTOCOL.strip().splitlines()]
    return {f"{method} {path}" for *methods, path in lines for method in methods}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    described: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(openapi.describe(ENDPOINTS)))
    return described


def operations(document: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


@pytest.mark.anyio
async def test_what_is_served_is_what_the_protocol_promises(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        routes = [route for route in site.app._router.routes if isinstance(route, Route)]
        served = {f"{method} {route.path}" for route in routes for method in (route.methods or set()) - {"HEAD"}}
    assert served - promised() == {f"{endpoint.method} {endpoint.path}" for endpoint in V1_ENDPOINTS}
    assert promised() - served == NOT_YET


def test_every_route_is_described(document: dict[str, Any]) -> None:
    assert set(operations(document)) == promised() - NOT_YET - NOT_DESCRIBED


def test_every_reference_leads_somewhere_and_nothing_is_described_for_nobody(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    used = set(_references(document))
    assert {reference.rpartition("/")[0] for reference in used} == {"#/components/schemas"}
    assert {reference.rpartition("/")[2] for reference in used} == set(schemas)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        if isinstance(value.get("mapping"), dict):
            yield from value["mapping"].values()
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def test_each_operation_says_what_it_is_what_it_takes_and_what_it_gives(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for operation in operations(document).values()]
    assert len(names) == len(set(names))
    for key, operation in operations(document).items():
        _, path = key.split()
        parameters = {(parameter["name"], parameter["in"]) for parameter in operation["parameters"]}
        in_path = {(name, "path") for name in re.findall(r"{(\w+)}", path)}
        in_query = {(name, "query") for name in QUERIES.get(key, set())}
        assert parameters == in_path | in_query, key
        assert operation["summary"].endswith("."), key
        assert any(status.startswith("2") for status in operation["responses"]), key
        assert "4XX" in operation["responses"], key
    assert "202" in operations(document)[f"POST {W}/agent"]["responses"]


def test_what_a_prompt_needs_is_described_as_it_is_checked(document: dict[str, Any]) -> None:
    operation = operations(document)[f"POST {W}/agent"]
    assert operation["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/PostPrompt"
    }
    properties = document["components"]["schemas"]["PostPrompt"]["properties"]
    options = {
        "model",
        "plan",
        "yolo",
        "max_cost",
        "max_steps",
        "sandbox",
        "allow",
        "accept_edits",
        "debug",
        "unattended",
        "output_schema",
        "cwd",
    }
    assert {"session_id", "prompt", "run_id", "attachments", "mode"} | options == set(properties)


@pytest.mark.anyio
async def test_the_document_is_served(tmp_path: Path, document: dict[str, Any]) -> None:
    async with serving(tmp_path) as site:
        answer = await site.request("GET", "/openapi.json")
        assert answer.headers["content-type"] == "application/json"
        assert answer.value == document
