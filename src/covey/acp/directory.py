"""The sessions that an editor could open: of one directory, or of all that the server has open, a page at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from covey.acp.content import Json
from covey.client.client import Client
from covey.client.connect import environment
from covey.lines.plain_text import one_line
from covey.protocol.errors import NotFound
from covey.protocol.messages import Session
from covey.rpc.messages import INVALID_PARAMS, RpcError

PAGE = 50
MOST_REMEMBERED = 10_000
"""Sessions whose directory is known here, so that one can be deleted by its id alone."""


@dataclass(frozen=True, slots=True)
class SessionPage:
    sessions: list[tuple[str, Session]]
    """With their directories."""
    next_cursor: str = ""


class SessionDirectory:
    def __init__(self, client: Callable[[], Awaitable[Client]], default_cwd: str) -> None:
        self._client = client
        self._default_cwd = default_cwd
        self._roots: dict[str, str] = {}

    def remember(self, session_id: str, root: str) -> None:
        self._roots[session_id] = root
        if len(self._roots) > MOST_REMEMBERED:
            del self._roots[next(iter(self._roots))]

    async def page(self, cwd: str, cursor: str) -> SessionPage:
        """A cursor names the last session that was given, and its directory."""
        before, _, root = cursor.partition(" ")
        if cursor and not root:
            raise RpcError(INVALID_PARAMS, "this cursor is none that was given here")
        client = await self._client()
        roots = [cwd] if cwd else await self._all_roots(client)
        roots = roots[roots.index(root) :] if root in roots else roots
        found: list[tuple[str, Session]] = []
        for here in roots:
            workspace = await client.create_workspace(here, env=environment(client.address))
            wanted = PAGE + 1 - len(found)
            after = before if here == root else ""
            found += [(here, each) for each in await client.sessions(workspace.id, before=after, limit=wanted)]
            if len(found) > PAGE:
                break
        for here, session in found:
            self.remember(session.id, here)
        if len(found) <= PAGE:
            return SessionPage(found)
        last_root, last = found[PAGE - 1]
        return SessionPage(found[:PAGE], f"{last.id} {last_root}")

    async def delete(self, session_id: str) -> None:
        """Raises NotFound."""
        client = await self._client()
        known = self._roots.get(session_id)
        for root in [known] if known else await self._all_roots(client):
            workspace = await client.create_workspace(root, env=environment(client.address))
            try:
                await client.delete_session(workspace.id, session_id)
            except NotFound:
                continue
            self._roots.pop(session_id, None)
            return
        raise NotFound(f"there is no session {session_id[:100]}", "session_not_found")

    async def _all_roots(self, client: Client) -> list[str]:
        """Of those directories that somebody works in now, and the one that the editor started us in."""
        return sorted({self._default_cwd, *(workspace.path for workspace in await client.workspaces())})


def listed(session: Session, root: str) -> Json:
    return {
        "sessionId": session.id,
        "cwd": root,
        "title": one_line(session.title) or None,
        "updatedAt": datetime.fromtimestamp(session.updated_at, UTC).isoformat().replace("+00:00", "Z"),
    }
