"""`GET /v1/activity` in a cluster: the streams of all nodes as one.

Each client has its own streams to the other nodes: few watch everything. What is open everywhere comes first, counted
once; a node that joins later, or comes back, adds what it has open as news. One that dies says nothing more: what it
had open goes on at others, which say so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from starlette.types import Receive, Scope, Send

from covey.engine.commands.activity import MergedActivity, ToldActivity
from covey.protocol.errors import ApiError
from covey.server.event_stream import Stream, serve_stream
from covey.server.membership import Ask
from covey.server.peer_connections import PeerConnection, PeerFailed

if TYPE_CHECKING:
    from covey.cluster.whereabouts import There
    from covey.server.all_nodes import AllNodes

log = logging.getLogger(__name__)

BEGIN_S = 3.0
"""How long a node may take to say what it has open; then the stream begins without it."""
LOOK_S = 2.0
"""How often it is looked whether there are other nodes."""


async def serve_activity(nodes: AllNodes, scope: Scope, receive: Receive, send: Send) -> None:
    watching = ActivityWatch(nodes)
    try:
        await watching.begin()
        following = asyncio.create_task(watching.follow())
        try:
            await serve_stream(
                nodes.app.streams, Stream(watching.merged, send, scope.get("covey.page", "")), "", receive
            )
        finally:
            following.cancel()
    finally:
        watching.close()


class ActivityWatch:
    """One client's streams of all nodes."""

    def __init__(self, nodes: AllNodes) -> None:
        self._nodes = nodes
        self._tails: dict[str, _Tail] = {}
        """By the id of the node."""
        self._pumps: set[asyncio.Task[None]] = set()
        self.merged: MergedActivity = nodes.app.workspaces.everywhere.merged_activity()

    async def begin(self) -> None:
        """Ask every node what is open."""
        others = await self._nodes.others()
        await asyncio.gather(*(self._attach(node) for node in others))
        for tail in self._tails.values():
            self.merged.add_present(tail.told)
            self._pump(tail)

    async def follow(self) -> None:
        """Attach to nodes that come, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            with suppress(ApiError):
                for node in await self._nodes.others():
                    if node.node_id not in self._tails and await self._attach(node):
                        tail = self._tails[node.node_id]
                        self.merged.add((*tail.told.runs, *tail.told.asks))
                        self._pump(tail)

    def close(self) -> None:
        self.merged.close()
        for pump in self._pumps:
            pump.cancel()
        for tail in self._tails.values():
            tail.connection.abort()

    async def _attach(self, node: There) -> bool:
        try:
            async with asyncio.timeout(BEGIN_S):
                tail = _Tail(await self._nodes.passing.open(node, Ask("GET", b"/v1/activity")))
                await tail.begin()
        except (PeerFailed, TimeoutError, ApiError, msgspec.MsgspecError) as error:
            log.warning("node %s does not say what goes on there: %r", node.name, error)
            return False
        self._tails[node.node_id] = tail
        return True

    def _pump(self, tail: _Tail) -> None:
        async def pump() -> None:
            with suppress(PeerFailed):
                async for frames in tail.more():
                    self.merged.add(frames)
            self._tails = {node_id: each for node_id, each in self._tails.items() if each is not tail}
            tail.connection.abort()

        task = asyncio.create_task(pump())
        self._pumps.add(task)
        task.add_done_callback(self._pumps.discard)


class _Tail:
    """The stream of one node."""

    def __init__(self, connection: PeerConnection) -> None:
        self.connection = connection
        self.told = ToldActivity()
        self._pieces = connection.pieces()

    async def begin(self) -> None:
        """Read what is open there. Raises PeerFailed."""
        while not self.told.has_begun:
            piece = await anext(self._pieces, b"")
            if not piece:
                raise PeerFailed("it ended", was_sent=True)
            self.told.take(piece)

    async def more(self) -> AsyncIterator[list[str]]:
        """What happens there from then on."""
        yield self.told.rest
        async for piece in self._pieces:
            yield self.told.take(piece)
