"""All workspaces of a server that is not there, on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from covey.config.schema import Config, ModelSettings, ProviderSettings
from covey.engine import workspaces as workspaces_module
from covey.engine.commands import settings as settings_module
from covey.engine.shared import Shared
from covey.engine.workspace import Workspace
from covey.engine.workspaces import Workspaces
from covey.engine.world import World
from covey.protocol.who import Who
from tests.sim.loop import run_schedule
from tests.sim.shell import SimJournal, SimModel
from tests.support.memory_store import MemoryStore

CONFIG = Config(providers={"sim": ProviderSettings(type="scripted", models=(ModelSettings(id="m"),))})
A, B = "client-a", "client-b"


class House:
    """All workspaces of a server that is not there."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.store = MemoryStore()
        self.idle = False
        self.load: Callable[[str], Awaitable[Config]] = self._load
        for module in (workspaces_module, settings_module):
            monkeypatch.setattr(module, "load_config", self._load_with_warnings)
        monkeypatch.setattr("covey.engine.agent.open_client", lambda provider_id, settings: SimModel())

    async def _load(self, path: str) -> Config:
        return CONFIG

    async def _load_with_warnings(self, shared: Shared, path: str, env: object = None) -> tuple[Config, Sequence[str]]:
        return await self.load(path), ()

    async def start(self, idle_exit_s: float = 0.0) -> Workspaces:
        loop = asyncio.get_running_loop()
        world = World(lambda: 2_000_000_000.0 + loop.time())
        shared = Shared(
            self.store,
            SimJournal(self.store),
            world,
            self.directory,
            None,
            {},
            end_processes=lambda tag: 0,
            end_jobs=lambda ids: 0,
        )
        self.all = Workspaces(shared, self._on_idle, idle_exit_s)
        await self.all.start()
        return self.all

    def _on_idle(self) -> None:
        self.idle = True

    async def create(self, client_id: str = A, path: str | Path = "") -> Workspace:
        return await self.all.create(str(path or self.directory), Who(client_id=client_id), yolo=False, env={})


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    failure = run_schedule(scenario, ()).failure
    if failure:
        raise failure


async def later(seconds: float) -> None:
    await asyncio.sleep(seconds)  # of the virtual clock
