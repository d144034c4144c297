"""Routes about the server itself."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from covey.protocol.build import current_build
from covey.protocol.errors import BadRequest, Conflict, Unavailable
from covey.protocol.requests import Control, Health, NodeView, Ready, Version
from covey.server.endpoint import Call, Endpoint
from covey.server.event_stream import client_id_of

if TYPE_CHECKING:
    from covey.server.front_door import FrontDoor


STORE_REFUSES = "refuses to write"
"""Why and where is not for those who have no token."""


async def health(call: Call, _body: None) -> Health:
    return Health(status="ok", store=STORE_REFUSES if call.workspaces.store_refuses else "")


async def ready(call: Call, _body: None) -> Ready:
    """Whether requests should be sent here: what asks is a proxy, every few seconds."""
    why = "the server is shutting down" if call.workspaces.closing else ""
    if call.cluster is not None:
        why = why or call.cluster.why_not_ready()
    if why:
        raise Unavailable(why, "not_ready", retry_after=2)
    return Ready(ready=True)


async def version(_call: Call, _body: None) -> Version:
    from covey.server.page_files import page_hash  # only pages need it, and it reads files

    build = current_build()
    return Version(
        version=build.version,
        commit=build.commit,
        build_id=build.build_id,
        python_version=platform.python_version(),
        platform=f"{platform.system().lower()}/{platform.machine()}",
        page=page_hash(),
    )


async def control(call: Call, body: Control) -> None:
    if body.command not in ("shutdown", "shutdown_if_idle", "drain"):
        raise BadRequest(f"unknown command {body.command!r}: shutdown, shutdown_if_idle or drain", "unknown_command")
    if body.command == "drain" or body.node:
        _cluster_of(call)
    if body.command == "shutdown_if_idle" and not call.workspaces.is_idle:
        raise Conflict("the server is in use", "busy")
    call.stop()


def _cluster_of(call: Call) -> FrontDoor:
    if call.cluster is None:
        raise Conflict(
            "this server is no node of a cluster: `covey serve --store postgres://…` makes one", "no_cluster"
        )
    return call.cluster


async def list_nodes(call: Call, _body: None) -> list[NodeView]:
    return await call.cluster.list_nodes() if call.cluster is not None else []


async def forget_node(call: Call, _body: None) -> None:
    await _cluster_of(call).forget(call.path["name"])


async def retire_client(call: Call, _body: None) -> None:
    call.workspaces.retire(client_id_of(call.path["client_id"]))


ENDPOINTS = (
    Endpoint("GET", "/v1/health", health, "Is the server there? Without a token.", answer=Health),
    Endpoint(
        "GET", "/v1/ready", ready,
        "Should requests be sent here? 503 if not: it shuts down, drains, or its lease is not fresh. Without a token.",
        answer=Ready,
    ),
    Endpoint("GET", "/v1/version", version, "Which build runs.", answer=Version),
    Endpoint(
        "POST", "/v1/control", control,
        "Shut the server down: always, or only if nobody uses it. A node hands its workspaces over first: `drain`.",
        Control, needs="admin",
    ),
    Endpoint("GET", "/v1/nodes", list_nodes, "The nodes of the cluster; none on one server.", answer=list[NodeView]),
    Endpoint(
        "DELETE", "/v1/nodes/{name}", forget_node, "Forget a node that is gone: it is not waited for any more.",
        needs="admin",
    ),
    Endpoint("DELETE", "/v1/clients/{client_id}", retire_client, "A client says goodbye for good: its claims go."),
)  # fmt: skip
