"""The routes about what a workspace has from elsewhere, and about pages in browsers: the rest of `Client`."""

from __future__ import annotations

from collections.abc import Sequence

from covey.client.caller import Caller, decode
from covey.client.targets import quoted, session_path, workspace_path
from covey.protocol.custom import CustomCommand, ExpandCommand, ExpandedCommand
from covey.protocol.extensions import AnswerApproval, ApprovalRequest, ExtensionKind, ExtensionView
from covey.protocol.passed_servers import PassedServer, PassedServers, PassServers
from covey.protocol.requests import Control, NodeView, Resolved
from covey.protocol.web import MakeCode, PageSession, WebCode


class MoreCalls(Caller):
    """One method for each route."""

    # ── extensions ──

    async def extensions(self, workspace_id: str) -> tuple[ExtensionView, ...]:
        """Extensions with their states. Older servers have none."""
        return await self._list(ExtensionView, f"{workspace_path(workspace_id)}/extensions")

    async def extension(self, workspace_id: str, kind: ExtensionKind, name: str) -> ExtensionView:
        """One extension, with the end of what it wrote to stderr."""
        path = f"{workspace_path(workspace_id)}/extensions/{kind}/{quoted(name)}"
        return await self._get(ExtensionView, path)

    async def approvals(self, workspace_id: str) -> tuple[ApprovalRequest, ...]:
        """What waits for an approval. Older servers never ask."""
        return await self._list(ApprovalRequest, f"{workspace_path(workspace_id)}/approvals")

    async def answer_approval(self, workspace_id: str, approval_id: str, *, approve: bool) -> bool:
        """Approve or refuse. False: somebody else was faster."""
        answer = AnswerApproval(id=approval_id, approve=approve)
        return (await self._post(Resolved, f"{workspace_path(workspace_id)}/approvals/answer", answer)).resolved

    async def pass_servers(self, workspace_id: str, session_id: str, servers: Sequence[PassedServer]) -> PassedServers:
        """Bring MCP servers along for a session, in place of those before."""
        body = PassServers(servers=tuple(servers))
        return decode(PassedServers, await self._send("PUT", f"{session_path(workspace_id, session_id)}/mcp", body))

    # ── custom commands ──

    async def commands(self, workspace_id: str) -> tuple[CustomCommand, ...]:
        """What can be asked for with `/name`. Older servers have none."""
        return await self._list(CustomCommand, f"{workspace_path(workspace_id)}/commands")

    async def expand_command(self, workspace_id: str, name: str, arguments: str = "") -> ExpandedCommand:
        """What a prompt that begins with `/name` stands for, to be shown: such a prompt is posted as it is."""
        request = ExpandCommand(name=name, arguments=arguments)
        return await self._post(ExpandedCommand, f"{workspace_path(workspace_id)}/commands/expand", request)

    # ── the nodes of a cluster ──

    async def nodes(self) -> tuple[NodeView, ...]:
        """All of them; none if the server is alone, or of an older age."""
        return await self._list(NodeView, "/v1/nodes")

    async def drain_node(self, name: str) -> None:
        """Have a node hand its workspaces over, and stop."""
        await self._send("POST", "/v1/control", Control(command="drain", node=name))

    async def forget_node(self, name: str) -> None:
        await self._send("DELETE", f"/v1/nodes/{quoted(name)}")

    # ── pages in browsers ──

    async def web_code(self, workspace_id: str = "") -> WebCode:
        """Let one page in, once; it opens that workspace."""
        return await self._post(WebCode, "/v1/web/codes", MakeCode(workspace_id=workspace_id))

    async def pages(self) -> tuple[PageSession, ...]:
        return await self._get(tuple[PageSession, ...], "/v1/web/sessions")

    async def revoke_page(self, page_id: str) -> None:
        await self._send("DELETE", f"/v1/web/sessions/{quoted(page_id)}")
