"""Nodes of a cluster in the process of a test: their workspaces and their life, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from covey.cluster.node import Node, NodeTimes
from covey.cluster.whereabouts import Whereabouts
from covey.engine.shared import Shared
from covey.engine.workspace import Workspace
from covey.engine.workspaces import Workspaces
from covey.engine.world import World
from covey.protocol.requests import PostPrompt
from covey.protocol.who import Who
from covey.store.journal import Journal
from covey.store.postgres.nodes import NodeTable
from covey.store.postgres.schema import FORMAT
from covey.store.postgres.store import PostgresStore

LEASE_S = 30.0
"""No lease runs out by itself in a test: what happens is said by the test."""


class TestNode:
    """One node. It looks around only when the test says so."""

    __test__ = False

    def __init__(self, name: str, node: Node, shared: Shared, secret: bytes) -> None:
        self.name = name
        self.node = node
        self.shared = shared
        self.workspaces = Workspaces(shared, lambda: None, 0.0)
        self.whereabouts = Whereabouts(node, self.workspaces, secret)
        self.clock = 0.0

    async def open(self, path: Path) -> Workspace:
        return await self.workspaces.create(str(path), Who(client_id="client"), yolo=False, env={})


@asynccontextmanager
async def node_in_process(
    url: str, name: str, directory: Path, config: Path, *, version: int = FORMAT, times: NodeTimes | None = None
) -> AsyncIterator[TestNode]:
    times = times or NodeTimes(lease_s=LEASE_S, look_s=3600.0)
    store = await asyncio.to_thread(PostgresStore, url, f"{name}-1")
    table = NodeTable(url, times.lease_s, version=version)
    node = Node(name, f"http://{name}.invalid", f"home of {name}", store, table, times)
    await node.join()
    directory.mkdir(parents=True, exist_ok=True)
    journal = Journal(store)
    shared = Shared(
        store, journal, World(), directory, config, {"HOME": str(directory), "PATH": "/usr/bin:/bin"}, ownership=node
    )
    made = TestNode(name, node, shared, b"secret")
    await made.workspaces.start()
    node.begin(made.workspaces)
    try:
        yield made
    finally:
        await made.workspaces.close()
        await node.leave()
        await journal.aclose(5.0)


async def post(workspace: Workspace, session_id: str, prompt: str, run_id: str) -> str:
    receipt = await workspace.runs.post(PostPrompt(session_id=session_id, prompt=prompt, run_id=run_id))
    return receipt.state


async def ended(workspace: Workspace, run_id: str) -> str:
    run = await workspace.runs.get(run_id, wait_s=30.0)
    assert run.ended, run
    return run.state
