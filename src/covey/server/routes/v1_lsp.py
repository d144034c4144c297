"""Routes that only v1 clients use, about language servers: in the shapes that they expect."""

from __future__ import annotations

from typing import Any

from covey.protocol.v1 import LspDiagnostic, LspState, StartLsp
from covey.server.endpoint import Call, Endpoint


async def lsps(call: Call, _body: None) -> dict[str, LspState]:
    workspace = await call.workspace()
    return workspace.extensions.v1_lsps()


async def diagnostics(call: Call, _body: None) -> dict[str, list[LspDiagnostic]]:
    workspace = await call.workspace()
    return workspace.extensions.v1_diagnostics(call.path["name"])


async def start(call: Call, body: StartLsp | None) -> None:
    workspace = await call.workspace()
    await workspace.extensions.start_lsps(body.path if body else "")


async def stop(call: Call, _body: object) -> None:
    """A v1 client stops them when it quits, whoever else is there: those that are being asked go on."""
    workspace = await call.workspace()
    await workspace.extensions.rest_lsps()


L = "/v1/workspaces/{id}/lsps"
FOUND = dict[str, list[LspDiagnostic]]

ENDPOINTS = (
    Endpoint("GET", L, lsps, "Language servers by name.", answer=dict[str, LspState]),
    Endpoint("GET", L + "/{name}/diagnostics", diagnostics, "What it finds wrong, by URI.", answer=FOUND),
    Endpoint("POST", L + "/start", start, "Start those for files like this one.", StartLsp, optional_body=True),
    Endpoint("POST", L + "/stop", stop, "End those that nobody waits for.", dict[str, Any], optional_body=True),
)
