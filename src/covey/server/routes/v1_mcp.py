"""Routes that only v1 clients use, about MCP servers: in the shapes that they expect."""

from __future__ import annotations

from typing import Any, NoReturn

from covey.protocol.errors import Forbidden
from covey.protocol.v1 import GetPrompt, McpName, McpPromptText, McpState, ReadResource, V1Prompt
from covey.server.endpoint import Call, Endpoint


async def mcp_states(call: Call, _body: None) -> dict[str, McpState]:
    workspace = await call.workspace()
    return workspace.extensions.v1_states()


async def pending_auth(call: Call, _body: None) -> list[str]:
    workspace = await call.workspace()
    return [name for name, state in workspace.extensions.v1_states().items() if state.state == "needs auth"]


async def auth_url(call: Call, _body: None) -> dict[str, str]:
    await call.workspace()
    return {}


async def mcp_prompts(call: Call, _body: None) -> list[V1Prompt]:
    workspace = await call.workspace()
    return workspace.extensions.v1_prompts()


async def get_prompt(call: Call, body: GetPrompt) -> McpPromptText:
    workspace = await call.workspace()
    return await workspace.extensions.v1_prompt(body)


async def read_resource(call: Call, body: ReadResource) -> list[dict[str, Any]]:
    workspace = await call.workspace()
    return await workspace.extensions.read_resource(body.name, body.uri)


async def refresh(call: Call, body: McpName | None) -> None:
    workspace = await call.workspace()
    await workspace.extensions.refresh(body.name if body else "")


async def log_in(call: Call, _body: object) -> NoReturn:
    await call.workspace()
    raise Forbidden("logins need a browser: run `covey mcp login NAME` on the server's machine", "not_by_clients")


async def no_docker(call: Call, _body: object) -> NoReturn:
    await call.workspace()
    raise Forbidden("clients add no servers: use `covey mcp add` on the server's machine", "not_by_clients")


M = "/v1/workspaces/{id}/mcp"
ANY = dict[str, Any]

ENDPOINTS = (
    Endpoint("GET", M + "/states", mcp_states, "MCP servers by name.", answer=dict[str, McpState]),
    Endpoint("GET", M + "/pending-auth", pending_auth, "MCP servers that wait for a login.", answer=list[str]),
    Endpoint("GET", M + "/auth-url", auth_url, "Where to log in: `covey mcp login` knows.", answer=dict[str, str]),
    Endpoint("GET", M + "/prompts", mcp_prompts, "Prompts of MCP servers.", answer=list[V1Prompt]),
    Endpoint("POST", M + "/get-prompt", get_prompt, "What a prompt says.", GetPrompt, McpPromptText),
    Endpoint("POST", M + "/read-resource", read_resource, "What a resource holds.", ReadResource, list[ANY]),
    *(
        Endpoint("POST", M + f"/refresh-{what}", refresh, "Ask it for its lists again.", McpName, optional_body=True)
        for what in ("prompts", "resources", "tools")
    ),
    Endpoint("POST", M + "/auth", log_in, "Refused: clients log in nowhere.", ANY, optional_body=True),
    Endpoint("POST", M + "/docker/enable", no_docker, "Refused: clients add no servers.", ANY, optional_body=True),
    Endpoint("POST", M + "/docker/disable", no_docker, "Refused: clients add no servers.", ANY, optional_body=True),
)  # fmt: skip
