"""The API's own description, made from the definitions that also check the requests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from covey import __version__
from covey.protocol.errors import ErrorBody
from covey.server.endpoint import Endpoint

_QUERY: dict[str, tuple[str, ...]] = {
    "GET /v1/workspaces/{id}/events": ("client_id", "deltas", "session_id", "last_event_id"),
    "DELETE /v1/workspaces/{id}": ("client_id",),
    "POST /v1/workspaces/{id}/current-session": ("client_id",),
    "GET /v1/workspaces/{id}/sessions/{sid}/messages": ("after", "limit"),
    "GET /v1/workspaces/{id}/runs": ("session_id", "state", "limit"),
    "GET /v1/workspaces/{id}/runs/{run_id}": ("wait",),
}
_NUMBERS = {"limit", "wait"}
_REQUIRED = {"client_id"}


def describe(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """The OpenAPI document."""
    endpoints = list(endpoints)
    types = [kind for e in endpoints for kind in (e.body, e.answer) if kind is not None]
    schemas, components = msgspec.json.schema_components(
        [*types, ErrorBody], ref_template="#/components/schemas/{name}"
    )
    by_type = dict(zip(map(repr, [*types, ErrorBody]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, by_type)
    paths["/v1/workspaces/{id}/events"] = {"get": _events_operation()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Covey", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(endpoint: Endpoint, by_type: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "Done."}
    if endpoint.answer is not None:
        answer["content"] = {"application/json": {"schema": by_type[repr(endpoint.answer)]}}
    error = {"application/json": {"schema": by_type[repr(ErrorBody)]}}
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": endpoint.handler.__name__ + _suffix(endpoint),
        "parameters": _parameters(endpoint.method, endpoint.path),
        "responses": {
            str(endpoint.status): answer,
            "4XX": {"description": "Refused; the body says why.", "content": error},
            "503": {"description": "Not now: shutting down, or the store cannot write.", "content": error},
        },
    }
    if endpoint.body is not None:
        schema = {"application/json": {"schema": by_type[repr(endpoint.body)]}}
        operation["requestBody"] = {"required": not endpoint.optional_body, "content": schema}
    return operation


def _suffix(endpoint: Endpoint) -> str:
    return "_" + endpoint.path.rsplit("/", 1)[-1] if endpoint.path.endswith(("/init", "/update")) else ""


def _events_operation() -> dict[str, Any]:
    path = "/v1/workspaces/{id}/events"
    return {
        "summary": "The event stream of a workspace (Server-Sent Events).",
        "operationId": "events",
        "parameters": _parameters("GET", path),
        "responses": {
            "200": {"description": "Events, until one side ends it.", "content": {"text/event-stream": {}}},
            "4XX": {"description": "Refused; the body says why."},
        },
    }


def _parameters(method: str, path: str) -> list[dict[str, Any]]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", path)
    ]
    in_query = [
        {
            "name": name,
            "in": "query",
            "required": name in _REQUIRED,
            "schema": {"type": "number" if name in _NUMBERS else "string"},
        }
        for name in _QUERY.get(f"{method} {path}", ())
    ]
    return in_path + in_query
