"""Routes about permission requests."""

from __future__ import annotations

from covey.protocol.events import PermissionRequest
from covey.protocol.requests import Grant, Resolved, Skip
from covey.server.endpoint import Call, Endpoint


async def get_skip(call: Call, _body: None) -> Skip:
    workspace = await call.workspace()
    return Skip(skip=workspace.asks.skips())


async def set_skip(call: Call, body: Skip) -> Skip:
    workspace = await call.workspace()
    await workspace.asks.set_skip(body.skip)
    return body


async def list_pending(call: Call, _body: None) -> list[PermissionRequest]:
    workspace = await call.workspace()
    return workspace.asks.permissions()


async def grant(call: Call, body: Grant) -> Resolved:
    workspace = await call.workspace()
    return Resolved(resolved=await workspace.asks.grant(body, call.who))


P = "/v1/workspaces/{id}/permissions"

ENDPOINTS = (
    Endpoint("GET", P + "/skip", get_skip, "Whether everything is approved without asking.", answer=Skip),
    Endpoint(
        "POST", P + "/skip", set_skip, "Approve everything without asking, or stop doing so.", Skip, Skip,
        needs="approve",
    ),
    Endpoint("GET", P, list_pending, "Requests that wait for an answer.", answer=list[PermissionRequest]),
    Endpoint("POST", P + "/grant", grant, "Answer a request; the first answer wins.", Grant, Resolved, needs="approve"),
)  # fmt: skip
