"""The route for commands that people run themselves."""

from __future__ import annotations

from covey.protocol.requests import RunShell, ShellResult
from covey.server.endpoint import Call, Endpoint
from covey.server.routes.runs import S


async def run_shell(call: Call, body: RunShell) -> ShellResult:
    workspace = await call.workspace()
    return await workspace.shell.run(call.path["sid"], body)


ENDPOINTS = (
    Endpoint(
        "POST", S + "/shell", run_shell, "Run a person's own command, at once; the answer comes at its end.",
        RunShell, ShellResult, needs="admin", ends_with_client=True,
    ),
)  # fmt: skip
