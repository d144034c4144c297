"""A workspace with MCP servers that do what a mode says: see `hostile_mcp.py`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from covey.config.schema import McpSettings
from covey.engine.extensions.mcp_server import McpServer
from covey.protocol.extensions import ExtensionView
from covey.protocol.messages import ToolResult
from covey.tools import process_table
from tests.support.engine import Engine, Model, call, config, running, within

TAG = f"covey-mcp-test-{os.getpid()}"
"""Of all processes of the servers: other tests run at the same time, in workspaces of the same id."""
HOSTILE = Path(__file__).parent / "hostile_mcp.py"


def hostile(mode: str, log: Path, **more: Any) -> McpSettings:
    """The entry of a server in this mode."""
    return McpSettings(command=sys.executable, args=("-S", str(HOSTILE), mode, str(log)), **more)


class McpEngine:
    """An open workspace, and what a test does with its servers."""

    def __init__(self, engine: Engine, model: Model, logs: Path) -> None:
        self.engine = engine
        self.model = model
        self._logs = logs

    def server(self, name: str = "h") -> McpServer:
        found = self.engine.workspace._extensions.mcp.find(name)
        assert found
        return found

    def view(self, name: str = "h") -> ExtensionView:
        return self.server(name).view()

    @property
    def tools(self) -> list[str]:
        return [name for name in self.engine.workspace._extensions.tools() if name.startswith("mcp__")]

    def log(self, name: str = "h") -> list[str]:
        path = self._logs / name
        return path.read_text().splitlines() if path.exists() else []

    def messages(self, name: str = "h") -> list[dict[str, Any]]:
        """What the server was sent."""
        return [json.loads(line) for line in self.log(name) if line.startswith("{")]

    def starts(self, name: str = "h") -> int:
        return sum(line.startswith("started") for line in self.log(name))

    async def until(self, condition: Callable[[], object]) -> None:
        async def wait() -> None:
            while not condition():
                await asyncio.sleep(0.005)  # states are told by events that are not kept

        await within(wait())

    async def known(self, *names: str) -> None:
        """Until each server has been started once, and has shown what it is."""
        names = names or ("h",)
        await self.until(lambda: all(self.view(name).state not in ("off", "starting") for name in names))

    async def approve(self, *names: str) -> None:
        """Until their tools are approved."""
        await self.known(*names)
        for request in self.engine.workspace.extensions.approvals():
            await self.engine.workspace.extensions.answer(request.id, approve=True)

    async def run(self, *tools: tuple[str, dict[str, Any]], allow: bool = True) -> list[ToolResult]:
        """A run whose model calls these tools, one in each step; gives the results."""
        for number, (name, arguments) in enumerate(tools):
            self.model.answer(*call(name, f"c{number}", **arguments))
        await self.engine.workspace.asks.set_skip(allow)
        receipt = await self.engine.post("go")
        await self.engine.ended(receipt.run_id)
        of_run = [message for message in self.engine.messages() if message.run_id == receipt.run_id]
        return [result for message in of_run for result in message.tool_results]

    def processes(self) -> int:
        return len(process_table.tagged(TAG))


def tagged() -> AbstractContextManager[object]:
    """The processes of all servers are found by `TAG`."""
    return mock.patch("covey.engine.extensions.kind.workspace_tag", return_value=TAG)


@asynccontextmanager
async def mcp_running(
    directory: Path, modes: dict[str, str] | str, *, project: Path | None = None, **settings: Any
) -> AsyncIterator[McpEngine]:
    """A workspace with a server for each mode, by name. Nothing of them is left at the end."""
    named = {"h": modes} if isinstance(modes, str) else modes
    logs, data = directory / "logs", directory / "data"
    root = project or directory / "project"
    for path in (logs, data, root):
        path.mkdir(exist_ok=True)
    servers = {name: hostile(mode, logs / name, **settings) for name, mode in named.items()}
    model = Model()
    configured = msgspec.structs.replace(config(), mcp=servers)
    with tagged():
        async with running(data, settings=configured, project=root, model=model) as engine:
            yield McpEngine(engine, model, logs)
            await engine.close()
            assert not process_table.tagged(TAG), "a process is left"
