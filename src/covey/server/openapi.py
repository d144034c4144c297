"""The API's own description, made from the definitions that also check the requests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, get_args

import msgspec

from covey import __version__
from covey.protocol.errors import ErrorBody
from covey.protocol.events import TYPES, ChangeKind
from covey.protocol.requests import ExportedSession
from covey.protocol.runs import RunState
from covey.server.access import OPEN
from covey.server.endpoint import Endpoint
from covey.server.routes.everywhere import ALL_SESSIONS_MAX, DAYS_MAX
from covey.server.routes.files import FILES_MAX
from covey.server.routes.runs import RUNS_MAX
from covey.server.routes.session_texts import EXPORT_FORMATS, HITS_MAX
from covey.server.routes.sessions import CHANGES_MAX, MESSAGES_MAX, SESSIONS_MAX

_TEXT: dict[str, Any] = {"type": "string"}
_CLIENT: dict[str, Any] = {"type": "string", "format": "uuid"}
_STATE: dict[str, Any] = {"type": "string", "enum": get_args(RunState)}


def _up_to(most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 0, "maximum": most}


_QUERY: dict[str, dict[str, dict[str, Any]]] = {
    "GET /v1/workspaces/{id}/events": {
        "client_id": _CLIENT, "deltas": _TEXT, "session_id": _TEXT, "last_event_id": _TEXT
    },
    "DELETE /v1/workspaces/{id}": {"client_id": _CLIENT},
    "POST /v1/workspaces/{id}/current-session": {"client_id": _CLIENT},
    "GET /v1/workspaces/{id}/sessions": {
        "limit": _up_to(SESSIONS_MAX), "before": _TEXT, "children": _TEXT, "archived": _TEXT
    },
    "GET /v1/workspaces/{id}/sessions/{sid}/messages": {
        "after": _TEXT, "before": _TEXT, "limit": _up_to(MESSAGES_MAX)
    },
    "GET /v1/workspaces/{id}/sessions/{sid}/changes": {
        "run_id": _TEXT, "after": _TEXT, "limit": _up_to(CHANGES_MAX), "diffs": _TEXT
    },
    "GET /v1/runs": {"state": _STATE, "limit": _up_to(RUNS_MAX), "open": _TEXT},
    "GET /v1/sessions": {
        "limit": _up_to(ALL_SESSIONS_MAX), "before": _TEXT, "children": _TEXT, "archived": _TEXT
    },
    "GET /v1/stats": {"days": _up_to(DAYS_MAX)},
    "GET /v1/search": {"q": _TEXT, "limit": _up_to(HITS_MAX)},
    "GET /v1/workspaces/{id}/search": {"q": _TEXT, "limit": _up_to(HITS_MAX), "before": _TEXT},
    "GET /v1/workspaces/{id}/sessions/{sid}/export": {"format": {"type": "string", "enum": EXPORT_FORMATS}},
    "GET /v1/workspaces/{id}/files": {"q": _TEXT, "limit": _up_to(FILES_MAX)},
    "GET /v1/workspaces/{id}/files/content": {"path": _TEXT},
    "GET /v1/workspaces/{id}/runs": {"session_id": _TEXT, "state": _STATE, "limit": _up_to(RUNS_MAX)},
    "GET /v1/workspaces/{id}/runs/{run_id}": {"wait": {"type": "number", "minimum": 0}},
}  # fmt: skip
"""By operation: its query parameters, each with its schema."""
_REQUIRED = {"client_id"}
_STREAMS = {
    "/v1/workspaces/{id}/events": ("events", "The event stream of a workspace (Server-Sent Events)."),
    "/v1/activity": ("activity", "Runs that start, end and ask in any workspace (Server-Sent Events)."),
}

ABOUT: dict[str, str] = {
    "after": "where the answer before ended: the id of its last message, or its `next`",
    "before": "an id: what stands before it, in pages of `limit`; over all workspaces `workspace_id/id`",
    "archived": "`1`: also the sessions that were put aside",
    "children": "`1`: also the sessions in which agents work",
    "client_id": "the UUID that the client has made for itself",
    "diffs": "`0`: without the diffs",
    "days": "how many, with today",
    "deltas": "`1`: growth of a message comes as `message_delta`, not as whole messages",
    "format": "what the answer is written in",
    "last_event_id": "the id of the last event that was received; the header `Last-Event-ID` says the same",
    "open": "`1`: only of workspaces that are open",
    "limit": "how many at most; 0 or nothing: as many as one answer may hold",
    "path": "from the workspace's directory",
    "q": "what to look for: words that were said, or letters of a path in their order",
    "run_id": "only the turn of this run",
    "session_id": "only this session",
    "state": "only runs in this state",
    "wait": "seconds to wait for the end of the run, at most 60",
}
"""By name: what a query parameter means."""

_REF = "#/components/schemas/"


def describe(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """The OpenAPI document."""
    endpoints = list(endpoints)
    types = [kind for e in endpoints for kind in (e.body, e.answer) if kind is not None]
    types += [ErrorBody, ExportedSession, *TYPES.values()]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF + "{name}")
    by_type = dict(zip(map(repr, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, by_type)
    for path, (name, summary) in _STREAMS.items():
        paths[path] = {"get": _stream_operation(path, name, summary)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Covey", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components | _envelopes(by_type),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(endpoint: Endpoint, by_type: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "Done."}
    if endpoint.answer is not None:
        answer["content"] = {"application/json": {"schema": by_type[repr(endpoint.answer)]}}
    if endpoint.path.endswith("/export"):
        json_schema = by_type[repr(ExportedSession)]
        answer["content"] = {"text/markdown": {"schema": _TEXT}, "application/json": {"schema": json_schema}}
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
    if (endpoint.method, endpoint.path) in OPEN:
        operation["security"] = []
    if endpoint.body is not None:
        schema = {"application/json": {"schema": by_type[repr(endpoint.body)]}}
        operation["requestBody"] = {"required": not endpoint.optional_body, "content": schema}
    return operation


def _suffix(endpoint: Endpoint) -> str:
    return "_" + endpoint.path.rsplit("/", 1)[-1] if endpoint.path.endswith(("/init", "/update")) else ""


def envelope_name(event_type: str) -> str:
    """What the whole of an event of this type is called: `RunCompleteEnvelope`."""
    return event_type.title().replace("_", "") + "Envelope"


def _envelopes(by_type: dict[str, Any]) -> dict[str, Any]:
    """The events as they are sent: one schema for each type, and `Event`, which is one of them."""
    changes = list(get_args(ChangeKind))
    schemas = {
        envelope_name(name): _envelope([name], _envelope(changes, by_type[repr(kind)])) for name, kind in TYPES.items()
    }
    mapping = {name: _REF + envelope_name(name) for name in TYPES}
    union = {
        "title": "Event",
        "description": "The `data` of one Server-Sent Event. Ignore a type that you do not know.",
        "anyOf": [{"$ref": reference} for reference in mapping.values()],
        "discriminator": {"propertyName": "type", "mapping": mapping},
    }
    activity = {
        "title": "Activity",
        "description": "The `data` of one event of `/v1/activity`: an event, and where it happened. The first one, of "
        "type `present`, says how many follow at once.",
        "type": "object",
        "properties": {"type": _TEXT, "workspace_id": _TEXT, "path": _TEXT, "payload": {"type": "object"}},
        "required": ["type", "payload"],
    }
    return {**schemas, "Event": union, "Activity": activity}


def _envelope(types: list[str], payload: dict[str, Any]) -> dict[str, Any]:
    """Both layers of an event: what it is, or how it changed, and the rest."""
    properties = {"type": {"enum": types}, "payload": payload}
    return {"type": "object", "properties": properties, "required": ["type", "payload"]}


def _stream_operation(path: str, name: str, summary: str) -> dict[str, Any]:
    schema = "Activity" if name == "activity" else "Event"
    stream: dict[str, Any] = {"text/event-stream": {"schema": {"$ref": _REF + schema}}}
    return {
        "summary": summary,
        "operationId": name,
        "parameters": _parameters("GET", path),
        "responses": {
            "200": {"description": "Events, until one side ends it.", "content": stream},
            "4XX": {"description": "Refused; the body says why."},
        },
    }


def _parameters(method: str, path: str) -> list[dict[str, Any]]:
    in_path = {name: _CLIENT if name == "client_id" else _TEXT for name in re.findall(r"{(\w+)}", path)}
    in_query = _QUERY.get(f"{method} {path}", {})
    return [
        *({"name": name, "in": "path", "required": True, "schema": schema} for name, schema in in_path.items()),
        *(
            {
                "name": name,
                "in": "query",
                "required": name in _REQUIRED,
                "description": ABOUT.get(name, ""),
                "schema": schema,
            }
            for name, schema in in_query.items()
        ),
    ]
