"""Routes about workspaces, their agent and their configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from covey.protocol.errors import BadRequest
from covey.protocol.requests import (
    AgentInfo,
    ConfigView,
    CreateWorkspace,
    CurrentSession,
    ProviderInfo,
    WorkspaceView,
)
from covey.protocol.who import Who, bounded_name
from covey.server.endpoint import Call, Endpoint
from covey.server.event_stream import client_id_of


async def list_workspaces(call: Call, _body: None) -> list[WorkspaceView]:
    return [workspace.describe() for workspace in call.workspaces.all()]


async def create_workspace(call: Call, body: CreateWorkspace) -> WorkspaceView:
    client_id = client_id_of(body.client_id)
    env = _environment(body.env)
    call.workspaces.check_data_dir(body.data_dir)
    who = Who(client_id=client_id, name=bounded_name(body.client_name), kind=body.client_kind)
    workspace = await call.workspaces.create(body.path, who, yolo=body.yolo, env=env)
    return workspace.describe()


def _environment(env: Mapping[str, str] | list[str] | None) -> Mapping[str, str]:
    """Variables for the workspace's tools, as a table or as `NAME=value` lines."""
    if isinstance(env, list):
        pairs = [line.partition("=") for line in env]
        env = {name: value for name, equals, value in pairs if equals}
    for name, value in (env or {}).items():
        if not name or "=" in name or "\0" in name + value:
            raise BadRequest(f"env has a name or value that no environment can hold: {name!r}")
    return env or {}


async def get_workspace(call: Call, _body: None) -> WorkspaceView:
    call.workspaces.check_not_released(call.path["id"])
    workspace = await call.workspace()
    return workspace.describe()


async def release_workspace(call: Call, _body: None) -> None:
    call.workspaces.check_not_released(call.path["id"])
    call.workspaces.release(await call.workspace(), client_id_of(call.query.get("client_id", "")))


async def current_session(call: Call, body: CurrentSession) -> None:
    workspace = await call.workspace()
    await workspace.clients.look_at(client_id_of(call.query.get("client_id", "")), body.session_id)


async def agent(call: Call, _body: None) -> AgentInfo:
    workspace = await call.workspace()
    return workspace.settings.agent_info()


async def reload_agent(call: Call, _body: object) -> None:
    workspace = await call.workspace()
    await workspace.settings.reload()


async def get_config(call: Call, _body: None) -> ConfigView:
    workspace = await call.workspace()
    await workspace.settings.ensure_read()
    return workspace.settings.config()


async def get_providers(call: Call, _body: None) -> list[ProviderInfo]:
    workspace = await call.workspace()
    await workspace.settings.ensure_read()
    return list(workspace.settings.config().providers.values())


W = "/v1/workspaces/{id}"

ENDPOINTS = (
    Endpoint("GET", "/v1/workspaces", list_workspaces, "The open workspaces.", answer=list[WorkspaceView]),
    Endpoint(
        "POST", "/v1/workspaces", create_workspace, "Open the workspace of a directory, or join it.",
        CreateWorkspace, WorkspaceView, needs_for=lambda body: "approve" if body.yolo else None,
    ),
    Endpoint("GET", W, get_workspace, "One workspace.", answer=WorkspaceView),
    Endpoint("DELETE", W, release_workspace, "Release this client's claim; nobody else's."),
    Endpoint(
        "POST", W + "/current-session", current_session,
        "Which session this client shows to somebody who could answer what is asked there; '' for none.",
        CurrentSession,
    ),
    Endpoint("GET", W + "/agent", agent, "The model, and whether anything runs.", answer=AgentInfo),
    Endpoint(
        "POST", W + "/agent/init", reload_agent, "Make ready; never disturbs open runs.",
        dict[str, Any], optional_body=True,
    ),
    Endpoint(
        "POST", W + "/agent/update", reload_agent, "Reload models and tools; never disturbs open runs.",
        dict[str, Any], optional_body=True,
    ),
    Endpoint("GET", W + "/config", get_config, "The configuration, without secrets.", answer=ConfigView),
    Endpoint("GET", W + "/providers", get_providers, "The providers, without secrets.", answer=list[ProviderInfo]),
)  # fmt: skip
