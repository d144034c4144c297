"""Routes about the server itself."""

from __future__ import annotations

import platform

from covey.protocol.build import current_build
from covey.protocol.errors import BadRequest, Conflict
from covey.protocol.requests import Control, Health, Version
from covey.server.endpoint import Call, Endpoint
from covey.server.event_stream import client_id_of


async def health(_call: Call, _body: None) -> Health:
    return Health(status="ok")


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
    if body.command not in ("shutdown", "shutdown_if_idle"):
        raise BadRequest(f"unknown command {body.command!r}: shutdown or shutdown_if_idle", "unknown_command")
    if body.command == "shutdown_if_idle" and not call.workspaces.is_idle:
        raise Conflict("the server is in use", "busy")
    call.stop()


async def retire_client(call: Call, _body: None) -> None:
    call.workspaces.retire(client_id_of(call.path["client_id"]))


ENDPOINTS = (
    Endpoint("GET", "/v1/health", health, "Is the server there? The only route without a token.", answer=Health),
    Endpoint("GET", "/v1/version", version, "Which build runs.", answer=Version),
    Endpoint(
        "POST", "/v1/control", control, "Shut the server down: always, or only if nobody uses it.",
        Control, needs="admin",
    ),
    Endpoint("DELETE", "/v1/clients/{client_id}", retire_client, "A client says goodbye for good: its claims go."),
)  # fmt: skip
