"""A server without a socket: the store, the workspaces and the application that answers requests, in one event loop.

`daemon.py` lets the application listen; `covey.open` calls it from the process of a program.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from covey.engine.preferences import load_preferences
from covey.engine.shared import Shared
from covey.engine.workspaces import Workspaces
from covey.engine.world import World
from covey.server.access import Access
from covey.server.app import App
from covey.store.base import Store
from covey.store.journal import Journal
from covey.store.sqlite import SqliteStore

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


class Service:
    """What was started by `start`. It ends in two steps, so that whoever is connected sees the end of its runs."""

    def __init__(self, app: App, journal: Journal) -> None:
        self.app = app
        self._journal = journal
        self._beating = asyncio.create_task(app.beat())

    @classmethod
    async def start(
        cls, options: ServiceOptions, access: Access, stop: Callable[[], None], open_store: OpenStore = SqliteStore
    ) -> Service:
        """Open the store and take up what was open in it. `stop` is called when somebody asks for the end."""
        store = open_store(options.data_dir / "covey.db")
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
        )
        workspaces = Workspaces(shared, stop, options.idle_exit_s)
        service = cls(App(workspaces, access, shared.counts, stop), journal)
        try:
            await workspaces.start()
        except BaseException:
            await service.close()
            raise
        return service

    async def drain(self) -> None:
        """Close every workspace: runs end, and event streams after them (R13). New requests are refused."""
        await self.app.workspaces.close()

    async def close(self) -> None:
        """Write what is left. Nothing is answered any more."""
        self._beating.cancel()
        await self._journal.aclose(FLUSH_S)
