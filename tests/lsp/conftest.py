"""A workspace with language servers: the real host and real processes, in a directory that is trusted."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from covey.config.schema import Config, LspSettings, ToolSettings
from covey.engine.extensions.kind import ExtensionParts
from covey.engine.extensions.lsp import LspHost
from covey.engine.ownership import SoleOwner
from covey.tools.base import ToolContext, ToolOutput
from covey.tools.files import FileReads
from covey.tools.processes import LocalProcesses

ODD = Path(__file__).with_name("odd_server.py")


@dataclass
class Languages:
    root: Path
    home: Path
    announced: list[Any] = field(default_factory=list)
    config: Config = field(default_factory=Config)
    reads: FileReads = field(default_factory=FileReads)

    def __post_init__(self) -> None:
        environ = {"XDG_CONFIG_HOME": str(self.home), "HOME": str(self.home)}
        shared: Any = SimpleNamespace(environ=environ, ownership=SoleOwner())
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.host = LspHost(
            ExtensionParts(
                self.workspace_id,
                self.root,
                shared,
                LocalProcesses(self.root),
                None,  # type: ignore[arg-type] # what is the user's own is not asked about
                lambda: self.config,
                lambda: {"PATH": path, "HOME": str(self.home)},
                self.announced.append,
            ),
            self.reads,
            after_edit_s=60.0,  # how fast a machine is is not tested
        )

    @property
    def workspace_id(self) -> str:
        return f"w{os.getpid()}-{id(self)}"

    @property
    def notes(self) -> list[str]:
        file = self.home / "notes"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def pids(self) -> list[int]:
        return [int(line.split()[1]) for line in self.notes if line.startswith("started ")]

    async def use(self, *names: str, auto: bool = False, **servers: LspSettings) -> None:
        """Odd servers with these modes for `.odd` files, and others as they are given."""
        args = (str(ODD), "", str(self.home / "notes"))
        odd = {
            f"odd{n}": LspSettings(command=sys.executable, args=(args[0], mode, args[2]), suffixes=("odd",))
            for n, mode in enumerate(names)
        }
        tools = ToolSettings(language_servers="auto" if auto else "configured")
        self.config = Config(tools=tools, lsp={**odd, **servers})
        await self.host.reload()

    def trust(self, *, is_trusted: bool = True) -> None:
        directory = self.home / "covey"
        directory.mkdir(exist_ok=True)
        listed = f'"{self.root}"' if is_trusted else ""
        (directory / "trusted.toml").write_text(f"directories = [{listed}]\n")

    def file(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    async def call(self, tool_name: str, **params: Any) -> ToolOutput:
        import msgspec

        tool = self.host.tools()[tool_name]
        context = ToolContext(self.root, "s", "r", "c", {}, "tag")
        given = tool.decode(msgspec.json.encode(params).decode())
        if tool.prepare:
            given = await tool.prepare(given, context)
        tool.intent(given, context)
        return await tool.run(given, context)

    def states(self, name: str = "odd0") -> list[str]:
        return [event.extension.state for event in self.announced if event.name == name]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def languages(tmp_path: Path) -> AsyncIterator[Languages]:
    (root := tmp_path / "project").mkdir()
    (home := tmp_path / "home").mkdir()
    made = Languages(root.resolve(), home)
    made.trust()
    yield made
    await made.host.close()
