"""Two servers in one process that pass requests on to each other: real sockets, and a test says who owns what."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from covey.cluster.whereabouts import Here, Nobody, There, Whereabouts
from covey.engine.workspace import Workspace
from covey.protocol.paths import Address
from covey.server.access import Access
from covey.server.front_door import FrontDoor
from covey.server.listener import bound_address, listening
from covey.server.pages import Pages
from covey.server.serving import Serving
from tests.server.site import Site, serving
from tests.support.engine import within
from tests.support.raw_http import RawHttp

SECRET = b"the secret of these nodes"
TOKEN = "the token of these nodes"
LEASE_S = 0.2


@dataclass(frozen=True)
class FakeNode:
    id: str
    name: str
    address: str
    is_alive: bool = True
    draining: bool = False
    lease_left_s: float = 9.0
    version: int = 1
    owned: int = 0


@dataclass
class Table:
    """Who owns what, by workspace; what the store would say."""

    owners: dict[str, There | Nobody] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, FakeNode] = field(default_factory=dict)
    watchers: list[Callable[[str], None]] = field(default_factory=list)
    looked: int = 0
    """How often somebody has looked."""

    def give(self, workspace_id: str, to: There | Nobody) -> None:
        """All nodes notice."""
        self.owners[workspace_id] = to
        for told in self.watchers:
            told(workspace_id)


class FakeWhereabouts:
    def __init__(self, table: Table, name: str, secret: bytes = SECRET) -> None:
        self.name = name
        self.node_id = f"{name}-1"
        self.secret = secret
        self.not_ready = ""
        self._table = table

    def is_here(self, workspace_id: str) -> bool:
        owner = self._table.owners.get(workspace_id)
        return isinstance(owner, There) and owner.name == self.name

    async def find(self, workspace_id: str, *, claim: bool = True) -> Here | There | Nobody:
        self._table.looked += 1
        if self.is_here(workspace_id):
            return Here()
        return self._table.owners.get(workspace_id, Here())

    async def find_path(self, path: str) -> tuple[str, Here | There | Nobody]:
        workspace_id = self._table.paths.get(path, "")
        return workspace_id, await self.find(workspace_id)

    def on_moved(self, callback: Callable[[str], None]) -> None:
        self._table.watchers.append(callback)

    def why_not_ready(self) -> str:
        return self.not_ready

    async def forget(self, name: str) -> int:
        known = self._table.nodes.get(name)
        if known is None or known.is_alive:
            return 0
        del self._table.nodes[name]
        return 1

    async def nodes(self) -> list[FakeNode]:
        return list(self._table.nodes.values())


@dataclass
class Node:
    site: Site
    door: FrontDoor
    there: There
    client: RawHttp
    table: Table

    async def owns(self, table: Table) -> Workspace:
        """A workspace that is open here."""
        workspace = await self.site.workspace()
        table.owners[workspace.id] = self.there
        table.paths[workspace.path] = workspace.id
        return workspace


@contextlib.asynccontextmanager
async def node(table: Table, name: str, directory: Path, secret: bytes = SECRET) -> AsyncIterator[Node]:
    directory.mkdir(exist_ok=True)
    with listening(Address(host="127.0.0.1", port=0)) as listener:
        address = bound_address(Address(host="127.0.0.1", port=0), listener.socket)
        pages = Pages(None)

        async def listen() -> Address:
            return address

        pages.listen = listen
        async with serving(directory, Access(TOKEN, pages=pages)) as site:
            there = There(f"{name}-1", name, address.url)
            table.nodes[name] = FakeNode(there.node_id, name, address.url)
            door = FrontDoor(site.app, cast("Whereabouts", FakeWhereabouts(table, name, secret)), LEASE_S)
            site.app.cluster = door
            server = Serving(site.app, listener)
            client = RawHttp(address, TOKEN)
            try:
                yield Node(site, door, there, client, table)
            finally:
                client.close()
                door.close()
                for stream in list(site.app.streams):
                    stream.abort()
                await within(server.close())


@contextlib.asynccontextmanager
async def two_nodes(directory: Path) -> AsyncIterator[tuple[Table, Node, Node]]:
    table = Table()
    async with node(table, "a", directory / "a") as first, node(table, "b", directory / "b") as second:
        yield table, first, second


async def until(condition: Callable[[], object]) -> None:
    """Ask again and again; for what no event tells of."""

    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.001)

    await within(wait())
