"""Three nodes, a PostgreSQL and every way between them: each way is a link that can be cut."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from tests.chaos.links import Link
from tests.support.nodes import Node, cluster_config
from tests.support.postgres import PostgresProcess

ANY = ""
"""The node of a fault that may befall each of them."""
CONNECTIONS = 40
"""What the database has room for: three nodes take 15, those who look at it some more."""
LOOK_S = 0.1
"""How often the database is looked at: so exact are the times."""


@dataclass
class Member:
    """A node, with the ways to and from it."""

    node: Node
    to_store: Link
    from_peers: Link
    from_clients: Link
    is_struck: bool = False
    """Some fault is at it: it is not expected to be ready."""

    @property
    def links(self) -> tuple[Link, ...]:
        return self.to_store, self.from_peers, self.from_clients


@dataclass
class Sight:
    """What the database says at this moment, seen directly: no link of the cluster is needed."""

    owners: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By workspace: the name of the node that owns it, and the fence."""
    active: dict[str, set[str]] = field(default_factory=dict)
    """By workspace: its active runs."""
    open_runs: int = 0
    at: float = 0.0


@dataclass(frozen=True)
class Tenure:
    """Since when, by the clock on the wall, a node owns a workspace: until the next one does."""

    node: str
    fence: int
    since: float


class Cluster:
    def __init__(self, postgres: PostgresProcess, database: str, members: list[Member]) -> None:
        self.postgres = postgres
        self.database = database
        self.members = members
        self.sight = Sight()
        self.tenures: dict[str, list[Tenure]] = {}
        """By workspace: who has owned it, in order."""

    @property
    def url(self) -> str:
        return self.postgres.url(self.database)

    @property
    def ports(self) -> list[int]:
        """Where clients go."""
        return [member.from_clients.port for member in self.members]

    async def start(self) -> None:
        for member in self.members:
            await self.run(member.node.start)
        for member in self.members:
            await self.run(member.node.wait_ready)

    @staticmethod
    async def run(call: object, *args: object) -> object:
        """Something that waits, on a thread."""
        assert callable(call)
        return await asyncio.to_thread(call, *args)

    async def settled(self, bound_s: float = 60.0) -> list[str]:
        """Wait until every node is ready again; those that are not in time."""
        deadline = time.monotonic() + bound_s
        for member in self.members:
            while not await asyncio.to_thread(member.node.is_ready):
                if time.monotonic() > deadline:
                    return [m.node.name for m in self.members if not await asyncio.to_thread(m.node.is_ready)]
                await asyncio.sleep(0.1)
        return []

    async def look(self) -> None:
        """Keep `sight` true, until cancelled. The database may be away."""
        while True:
            with contextlib.suppress(Exception):  # whatever a database says that is being killed
                connection = await asyncpg.connect(self.url, timeout=3)
                try:
                    while True:
                        self.sight = await self._seen(connection)
                        self._note_tenures(time.time())
                        await asyncio.sleep(LOOK_S)
                finally:
                    connection.terminate()
            await asyncio.sleep(LOOK_S)

    async def supervise(self) -> None:
        """Start again whoever has ended by itself, until cancelled: a node that finds no store at its start does."""
        while True:
            await asyncio.sleep(1.0)
            for member in self.members:
                if member.node.process and not member.node.is_running and not member.is_struck:
                    await self.run(member.node.start)

    @staticmethod
    async def _seen(connection: asyncpg.Connection[asyncpg.Record]) -> Sight:
        owners = await connection.fetch(
            "SELECT workspace_id, coalesce(n.name, '') AS name, fence FROM logs l LEFT JOIN nodes n ON n.id = l.owner",
            timeout=3,
        )
        runs = await connection.fetch("SELECT workspace_id, run_id, state FROM runs WHERE NOT ended", timeout=3)
        sight = Sight(open_runs=len(runs), at=time.monotonic())
        sight.owners = {row["workspace_id"]: (row["name"], row["fence"]) for row in owners}
        for row in runs:
            if row["state"] == "active":
                sight.active.setdefault(row["workspace_id"], set()).add(row["run_id"])
        return sight

    def _note_tenures(self, now: float) -> None:
        for workspace, (node, fence) in self.sight.owners.items():
            before = self.tenures.setdefault(workspace, [])
            if not before or (before[-1].node, before[-1].fence) != (node, fence):
                before.append(Tenure(node, fence, now))

    def owned_between(self, workspace: str, node: str, began: float, over: float) -> bool:
        """Whether the node has owned the workspace at some moment of that time; ANY: whether somebody has."""
        tenures = self.tenures.get(workspace, [])
        ends = [*(tenure.since for tenure in tenures[1:]), float("inf")]
        return any(
            node in (tenure.node, ANY) and tenure.since <= over and end >= began
            for tenure, end in zip(tenures, ends, strict=True)
        )

    def mend(self) -> None:
        for member in self.members:
            for link in member.links:
                link.mend()


@asynccontextmanager
async def cluster(directory: Path, model_url: str, *, lease_s: float, nodes: int = 3) -> AsyncIterator[Cluster]:
    """Not started yet. Whatever happens, nothing of it is left at the end."""
    postgres = await asyncio.to_thread(lambda: PostgresProcess.fresh(max_connections=str(CONNECTIONS)))
    members: list[Member] = []
    try:
        database = "chaos"
        await asyncio.to_thread(postgres.sql, f"CREATE DATABASE {database}")
        config = cluster_config(model_url, lease_s=lease_s)
        for number in range(nodes):
            to_store = Link(postgres.port)
            await to_store.open()
            name = "abcdefgh"[number]
            node = Node(name, directory / name, config, postgres.tcp_url(database, to_store.port))
            from_peers, from_clients = Link(node.port), Link(node.port)
            await from_peers.open()
            await from_clients.open()
            node.advertised = from_peers.port
            members.append(Member(node, to_store, from_peers, from_clients))
        yield Cluster(postgres, database, members)
    finally:
        for member in members:
            await asyncio.to_thread(member.node.kill)
            for link in member.links:
                await link.close()
        await asyncio.to_thread(postgres.remove)
