"""A server without a socket: the store, the workspaces and the application that answers requests, in one event loop.

`daemon.py` lets the application listen; `covey.open` calls it from the process of a program.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from covey.engine.ownership import SoleOwner
from covey.engine.preferences import load_preferences
from covey.engine.shared import Shared
from covey.engine.workspaces import Workspaces
from covey.engine.world import World
from covey.server.access import Access
from covey.server.app import App
from covey.store.base import Store
from covey.store.journal import Journal
from covey.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from covey.cluster.joining import Joined
    from covey.config.schema import ClusterSettings

FLUSH_S = 1.5
"""How long the journal may take to write its last changes; draining has had its own time before."""

OpenStore = Callable[[Path], Store]


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    data_dir: Path
    """Which the caller owns (`data_dir.owned`)."""
    config_file: Path | None
    environ: Mapping[str, str]
    sockets: tuple[Path, ...] = ()
    """Where it listens or may come to listen, if that is a file: no command may reach it."""
    idle_exit_s: float = 0.0
    cluster: ClusterSettings | None = None
    """None: one server, with a store of its own."""
    backups: int = 0
    """Of the store, how many are kept."""


class Service:
    """What was started by `start`. It ends in two steps, so that whoever is connected sees the end of its runs."""

    def __init__(self, app: App, journal: Journal, joined: Joined | None = None) -> None:
        self.app = app
        self._journal = journal
        self._joined = joined
        self._beating = asyncio.create_task(app.beat())

    @classmethod
    async def start(
        cls, options: ServiceOptions, access: Access, stop: Callable[[], None], open_store: OpenStore = SqliteStore
    ) -> Service:
        """Open the store and take up what was open in it. `stop` is called when somebody asks for the end."""
        joined = await _joined(options)
        store = joined.store if joined else open_store(options.data_dir / "covey.db")
        if isinstance(store, SqliteStore):
            store.backups.kept = options.backups
        journal = Journal(store)
        shared = Shared(
            store,
            journal,
            World(),
            options.data_dir,
            options.config_file,
            options.environ,
            sockets=options.sockets,
            preferences=load_preferences(options.data_dir),
            ownership=joined.node if joined else SoleOwner(),
        )
        workspaces = Workspaces(shared, stop, options.idle_exit_s)
        service = cls(App(workspaces, access, shared.counts, stop), journal, joined)
        try:
            await workspaces.start()
            if joined:
                joined.node.counts = shared.counts
                joined.node.begin(workspaces)
                _open_front_door(service.app, joined)
        except BaseException:
            await service.close()
            raise
        return service

    async def drain(self) -> None:
        """Close every workspace: runs end, and event streams after them (R13). New requests are refused.

        A node of a cluster hands them over instead (N10), and answers until that is done.
        """
        if self._joined:
            await self._joined.node.drain()
            if self.app.cluster:
                await self.app.cluster.leave()
        await self.app.workspaces.close()

    async def close(self) -> None:
        """Write what is left. Nothing is answered any more."""
        self._beating.cancel()
        if self.app.cluster:
            self.app.cluster.close()
        if self._joined:
            await self._joined.node.leave()
        await self._journal.aclose(FLUSH_S)


def _open_front_door(app: App, joined: Joined) -> None:
    """From now on requests go to the node that owns their workspace."""
    from covey.cluster import metrics
    from covey.cluster.whereabouts import Whereabouts
    from covey.server.front_door import FrontDoor

    whereabouts = Whereabouts(joined.node, app.workspaces, joined.secret)
    app.cluster = FrontDoor(app, whereabouts, joined.node.times.lease_s)
    joined.node.on_look.append(whereabouts.look)
    joined.node.on_given_away = app.cluster.nodes.adopt_elsewhere
    app.cluster_metrics = lambda: metrics.lines(joined.node, joined.store, len(app.workspaces.owned()))


async def _joined(options: ServiceOptions) -> Joined | None:
    if options.cluster is None:
        return None
    from covey.cluster.joining import join

    return await join(options.cluster, options.data_dir)
