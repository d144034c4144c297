"""Routes that only v1 clients use: what people asked, and which files were read."""

from __future__ import annotations

from typing import Any

from covey.protocol.messages import Message
from covey.server.endpoint import Call, Endpoint

NEVER = "0001-01-01T00:00:00Z"
"""The time at which nothing has happened, as v1 clients have it."""


async def prompts(call: Call, _body: None) -> list[Message]:
    workspace = await call.workspace()
    return await workspace.sessions.prompts()


async def session_prompts(call: Call, _body: None) -> list[Message]:
    workspace = await call.workspace()
    return await workspace.sessions.prompts(call.path["sid"])


async def ignore_read(call: Call, _body: object) -> None:
    """What a client has read for itself is no reason to let the agent write: it has to read on its own."""
    await call.workspace()


async def last_read(call: Call, _body: None) -> str:
    await call.workspace()
    return NEVER


async def read_files(call: Call, _body: None) -> list[str]:
    workspace = await call.workspace()
    await workspace.sessions.read(call.path["sid"])
    return []


W = "/v1/workspaces/{id}"
ONE = W + "/sessions/{sid}"

ENDPOINTS = (
    Endpoint("GET", W + "/messages/user", prompts, "The newest prompts, the newest first.", answer=list[Message]),
    Endpoint(
        "GET", ONE + "/messages/user", session_prompts, "The newest prompts of a session, the newest first.",
        answer=list[Message],
    ),
    Endpoint(
        "POST", W + "/filetracker/read", ignore_read, "Taken, and without effect.", dict[str, Any], optional_body=True
    ),
    Endpoint("GET", W + "/filetracker/lastread", last_read, "Always the beginning of time.", answer=str),
    Endpoint("GET", ONE + "/filetracker/files", read_files, "Always empty.", answer=list[str]),
)  # fmt: skip
