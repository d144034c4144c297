"""Routes that only v1 clients use, for what this server does not have: language servers, MCP servers and skills.

They answer in the shapes that clients expect, and empty. What asks for one of these things by its name is refused.
"""

from __future__ import annotations

from typing import Any, NoReturn

from covey.protocol.errors import NotFound
from covey.server.endpoint import Call, Endpoint, Handler


async def nothing(call: Call, _body: object) -> None:
    await call.workspace()


async def empty_table(call: Call, _body: object) -> dict[str, Any]:
    await call.workspace()
    return {}


async def empty_list(call: Call, _body: object) -> list[Any]:
    await call.workspace()
    return []


async def no_such_server(call: Call, _body: object) -> NoReturn:
    await call.workspace()
    raise NotFound("there are no MCP servers here")


async def no_such_skill(call: Call, _body: object) -> NoReturn:
    await call.workspace()
    raise NotFound("there are no skills here")


W = "/v1/workspaces/{id}"
TABLE, LIST = dict[str, Any], list[Any]


def _get(path: str, handler: Handler, summary: str, answer: Any) -> Endpoint:
    return Endpoint("GET", W + path, handler, summary, answer=answer)


def _post(path: str, handler: Handler, summary: str) -> Endpoint:
    return Endpoint("POST", W + path, handler, summary, TABLE, optional_body=True)


ENDPOINTS = (
    _get("/lsps", empty_table, "Language servers: none.", TABLE),
    _get("/lsps/{name}/diagnostics", empty_table, "What a language server complains about: nothing.", TABLE),
    _post("/lsps/start", nothing, "Taken, and without effect."),
    _post("/lsps/stop", nothing, "Taken, and without effect."),
    _get("/mcp/states", empty_table, "MCP servers: none.", TABLE),
    _get("/mcp/pending-auth", empty_list, "MCP servers that wait for a login: none.", LIST),
    _get("/mcp/auth-url", empty_table, "Where to log in: nowhere.", TABLE),
    _get("/mcp/prompts", empty_list, "Prompts of MCP servers: none.", LIST),
    *(
        _post(f"/mcp/refresh-{what}", nothing, "Taken, and without effect.")
        for what in ("prompts", "resources", "tools")
    ),
    *(
        _post(f"/mcp/{what}", no_such_server, "Refused: there are no MCP servers.")
        for what in ("auth", "read-resource", "get-prompt", "docker/enable", "docker/disable")
    ),
    _get("/skills", empty_list, "Skills: none.", LIST),
    _post("/skills/read", no_such_skill, "Refused: there are no skills."),
)
