"""The extensions of a workspace, as clients see them, and the approvals that they wait for."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from covey.config.schema import McpSettings
from covey.engine.asks.approvals import ApprovalDesk
from covey.engine.extensions.extensions import Extensions
from covey.engine.extensions.mcp_prompts import said
from covey.engine.extensions.mcp_server import McpServer
from covey.protocol.errors import BadRequest, Conflict, NotFound
from covey.protocol.extensions import ApprovalRequest, ExtensionView, v1_lsp_state, v1_state
from covey.protocol.passed_servers import PassedServer, PassedServers
from covey.protocol.v1 import (
    GetPrompt,
    LspDiagnostic,
    LspPosition,
    LspRange,
    LspState,
    McpPromptText,
    McpState,
    V1Prompt,
    V1PromptArgument,
)
from covey.protocol.who import NOBODY, Who
from covey.tools.base import ToolFailed
from covey.tools.lsp.complaints import Complaint

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class WorkspaceExtensions:
    """What may be asked of the extensions of a workspace."""

    def __init__(self, extensions: Extensions, desk: ApprovalDesk) -> None:
        self._extensions = extensions
        self._desk = desk

    async def all(self) -> list[ExtensionView]:
        """Each of them, with what its processes use."""
        return [msgspec.structs.replace(view, log=None) for view in await self._extensions.measured()]

    async def one(self, kind: str, name: str) -> ExtensionView:
        """One of them, with the end of what it wrote to stderr. Raises NotFound."""
        for view in await self._extensions.measured():
            if (view.kind, view.name) == (kind, name):
                return view
        raise NotFound(f"there is no extension {name[:100]!r} of the kind {kind[:40]!r} here", "extension_not_found")

    async def pass_along(self, session_id: str, servers: Sequence[PassedServer]) -> PassedServers:
        """Servers that a client brings along for a session, until it brings others or the session goes."""
        if strange := [each.name for each in servers if not _NAME.fullmatch(each.name)]:
            raise BadRequest(
                f"{strange[0]!r} cannot be the name of a server: use letters, digits, dashes and underscores"
            )
        if any(bool(each.command) == bool(each.url) for each in servers):
            raise BadRequest("a server has a command, or a url")
        wanted = {each.name: _settings(each) for each in servers}
        await self._extensions.mcp.pass_along(session_id, wanted)
        running = self._extensions.mcp.servers
        taken = [name for name, settings in wanted.items() if name in running and running[name].settings == settings]
        return PassedServers(taken=tuple(taken), left_out=tuple(name for name in wanted if name not in taken))

    def approvals(self) -> list[ApprovalRequest]:
        """What waits for an approval."""
        return self._desk.pending

    async def answer(self, approval_id: str, *, approve: bool, who: Who = NOBODY) -> bool:
        """Approve or refuse; False: somebody else was first, or it is not asked any more. Raises ConfigError."""
        return await self._desk.answer(approval_id, approve=approve, who=who)

    # ── for v1 clients ──

    def v1_states(self) -> dict[str, McpState]:
        """MCP servers by name."""
        views = [view for view in self._extensions.views() if view.kind == "mcp"]
        return {
            view.name: McpState(
                name=view.name,
                state=v1_state(view.state),
                error=view.why,
                tool_count=len(view.tools),
                prompt_count=view.prompts,
                resource_count=view.resources,
            )
            for view in views
        }

    def v1_lsps(self) -> dict[str, LspState]:
        """Language servers by name: those that are configured, or were needed."""
        languages = self._extensions.languages
        return {
            view.name: LspState(
                name=view.name,
                state=v1_lsp_state(view.state),
                error=view.why,
                diagnostic_count=sum(map(len, (languages.known(view.name) or {}).values())),
            )
            for view in languages.views()
        }

    def v1_diagnostics(self, name: str) -> dict[str, list[LspDiagnostic]]:
        """What a language server has found wrong with files as they are, by URI. Raises NotFound."""
        known = self._extensions.languages.known(name)
        if known is None:
            raise NotFound(f"there is no language server {name[:100]!r} here", "extension_not_found")
        return {uri: [_diagnostic(each) for each in complaints] for uri, complaints in known.items()}

    async def start_lsps(self, path: str) -> None:
        """Start the language servers for files like this one."""
        await self._extensions.languages.start(Path(path))

    async def rest_lsps(self) -> None:
        """End the language servers that nobody waits for; the next question starts them again."""
        await self._extensions.languages.rest()

    def v1_prompts(self) -> list[V1Prompt]:
        return [
            V1Prompt(
                id=f"{server.name}:{prompt.name}",
                title=prompt.name,
                prompt_id=prompt.name,
                client_id=server.name,
                description=prompt.description,
                arguments=tuple(
                    V1PromptArgument(id=name, title=name, required=needed) for name, needed in prompt.arguments
                ),
            )
            for _, server, prompt in self._extensions.prompts.all()
        ]

    async def v1_prompt(self, wanted: GetPrompt) -> McpPromptText:
        server = self._server(wanted.client_id)
        return McpPromptText(prompt=await self._use(said(server, wanted.prompt_id, wanted.args or {})))

    async def read_resource(self, name: str, uri: str) -> list[dict[str, Any]]:
        """The contents of a resource. Raises NotFound or Conflict."""
        result = await self._use(self._server(name).read(uri))
        contents = result.get("contents")
        return [each for each in (contents if isinstance(contents, list) else ()) if isinstance(each, dict)]

    async def refresh(self, name: str) -> None:
        """Ask a server for its lists again; without a name, nothing happens."""
        if name:
            await self._use(self._server(name).refresh())

    def _server(self, name: str) -> McpServer:
        if server := self._extensions.mcp.find(name):
            return server
        raise NotFound(f"there is no MCP server {name[:100]!r} here", "extension_not_found")

    async def _use(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except ToolFailed as error:
            raise Conflict(str(error), "extension_failed") from None


def _diagnostic(complaint: Complaint) -> LspDiagnostic:
    at = LspPosition(line=complaint.line - 1)
    return LspDiagnostic(
        range=LspRange(start=at, end=at),
        severity={"error": 1, "warning": 2, "note": 3}[complaint.severity],  # type: ignore[arg-type]
        message=complaint.message,
        source=complaint.source,
        code=complaint.code,
    )


def _settings(passed: PassedServer) -> McpSettings:
    return McpSettings(command=passed.command, args=passed.args, env=passed.env, url=passed.url, headers=passed.headers)
