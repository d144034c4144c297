"""Where a workspace is: the one question that a server of a cluster asks before it answers a request."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from covey.cluster.node import Node, Owned
from covey.engine.shared import resolve
from covey.protocol.errors import NotFound
from covey.store.postgres.nodes import NodeRow, OwnerRow

log = logging.getLogger(__name__)

SOON_S = 1.0
"""After so long somebody may own a workspace whose owner is gone."""


@dataclass(frozen=True, slots=True)
class Here:
    """This node answers. What nobody owns is claimed when it is opened, which may raise OwnedElsewhere."""


@dataclass(frozen=True, slots=True)
class There:
    """That node answers."""

    node_id: str
    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Nobody:
    """Nobody can answer now; perhaps after `retry_after` seconds. 0: nobody needs it, and it is not to be opened."""

    retry_after: float
    why: str = ""


Place = Here | There | Nobody
HERE = Here()


class Whereabouts:
    """Knows what is open here, and asks the store about everything else. What it has found, it watches."""

    def __init__(self, node: Node, workspaces: Owned, secret: bytes) -> None:
        self.secret = secret
        self._node = node
        self._workspaces = workspaces
        self._found: dict[str, There] = {}
        """Where requests were passed on to: watched, so that streams end when it changes."""
        self._on_moved: list[Callable[[str], None]] = []

    @property
    def node_id(self) -> str:
        return self._node.id

    @property
    def name(self) -> str:
        return self._node.name

    def on_moved(self, callback: Callable[[str], None]) -> None:
        """Have somebody told that a workspace is not where it was found any more."""
        self._on_moved.append(callback)

    def is_here(self, workspace_id: str) -> bool:
        """It is open here, and nobody can have taken it."""
        return self._workspaces.is_open(workspace_id) and self._node.is_fresh()

    async def find(self, workspace_id: str, *, claim: bool = True) -> Place:
        """Where requests about a workspace are answered.

        Raises NotFound if there is none, and Unavailable if the store cannot be reached. Without `claim`, one that
        nobody owns and nothing is open in stays so.
        """
        await self._node.ensure_fresh()
        if self._workspaces.is_open(workspace_id):
            return HERE
        owner = (await self._node.owners([workspace_id])).get(workspace_id)
        if owner is None:
            raise NotFound(
                f"there is no workspace {workspace_id!r}; create it with POST /v1/workspaces", "workspace_not_found"
            )
        return await self._place(owner, claim=claim)

    async def find_path(self, path: str) -> tuple[str, Place]:
        """The id of a directory's workspace, whose row is made if there is none, and where it is or may be opened.

        Raises BadRequest if there is no such directory here.
        """
        await self._node.ensure_fresh()
        row = await self._node.row_at(resolve(path), int(time.time()))
        assert row is not None
        return row.id, await self.find(row.id)

    async def _place(self, owner: OwnerRow, *, claim: bool) -> Place:
        if owner.alive and owner.node_id != self._node.id:
            there = self._found[owner.workspace_id] = There(owner.node_id, owner.name, owner.address)
            return there
        self._found.pop(owner.workspace_id, None)
        if not claim and not owner.is_needed:
            return Nobody(0)
        if why := await self._why_not_here(owner):
            return await self._somebody_else(owner, why)
        return HERE

    async def _why_not_here(self, owner: OwnerRow) -> str:
        """Why this node cannot open what nobody owns; '' if it can."""
        if self._node.draining:
            return "this node is about to leave"
        if owner.min_version > self._node.version:
            return "it was last opened by a newer Covey, and this node is older: upgrade it"
        if not await asyncio.to_thread(os.path.isdir, owner.path):
            return f"this node does not reach {owner.path}"
        return ""

    async def _somebody_else(self, owner: OwnerRow, why: str) -> Place:
        """A node that could open what nobody owns."""
        for node in await self._node.nodes():
            able = node.is_alive and not node.draining and node.version >= owner.min_version
            if able and node.id != self._node.id:
                return There(node.id, node.name, node.address)
        return Nobody(SOON_S, f"{why}, and there is no other node that could open it")

    async def look(self) -> None:
        """Learn which workspaces are not any more where they were found, and tell about them."""
        if not self._found:
            return
        owners = await self._node.owners(self._found)
        for workspace_id, there in list(self._found.items()):
            owner = owners.get(workspace_id)
            if owner is None or not owner.alive or owner.node_id != there.node_id:
                self._found.pop(workspace_id, None)
                for callback in self._on_moved:
                    callback(workspace_id)

    async def nodes(self) -> list[NodeRow]:
        return await self._node.nodes()

    async def forget(self, name: str) -> int:
        return await self._node.forget(name)

    def why_not_ready(self) -> str:
        """'' if this node is ready for requests; else what is wrong, for people."""
        if self._node.draining:
            return "this node is about to leave"
        return "" if self._node.lease_left_s() > 0 else "the store cannot be reached"
