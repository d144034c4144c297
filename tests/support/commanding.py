"""A workspace with the real tools in a real repository, whose model calls them as the test says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from covey.engine.workspace import Workspace
from covey.lifecycle.undo import FileStep
from covey.protocol.requests import RunShell, UndoReceipt, UndoTurns
from covey.store.base import Store
from tests.support.engine import Engine, call, running, within

GIT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=directory, env=GIT, check=True, capture_output=True)


class Commanding:
    """An engine, and the files of its workspace."""

    def __init__(self, engine: Engine, root: Path) -> None:
        self.engine = engine
        self.root = root

    @property
    def workspace(self) -> Workspace:
        return self.engine.workspace

    def text(self, name: str) -> str | None:
        path = self.root / name
        return path.read_text() if path.exists() else None

    async def turn(self, *commands: str | dict[str, Any], prompt: str = "go") -> str:
        """A turn with these calls: of bash, or as they are given, by `tool`."""
        for number, each in enumerate(commands):
            params = {"command": each} if isinstance(each, str) else dict(each)
            self.engine.model.answer(*call(params.pop("tool", "bash"), f"c{number}", **params))
        self.engine.model.answer("done")
        return (await self.engine.ended((await self.engine.post(prompt)).run_id)).run_id

    async def shell(self, command: str) -> None:
        await within(self.workspace.shell.run(self.engine.session_id, RunShell(command=command)))

    async def undo(self, **fields: Any) -> UndoReceipt:
        return await within(self.workspace.sessions.undo(self.engine.session_id, UndoTurns(**fields)))

    def steps(self) -> list[FileStep]:
        return self.engine.store.file_steps("w", self.engine.session_id, None)

    def changed(self) -> dict[str, str]:
        """By name: who changed it, and a question mark if that is not sure."""
        return {
            os.path.relpath(step.path, self.root): step.origin.made_by + "?" * (not step.origin.is_sure)
            for step in self.steps()
            if step.path
        }

    def missed(self) -> list[str]:
        return [step.origin.missed for step in self.steps() if step.origin.missed]


@asynccontextmanager
async def commanding(
    directory: Path, *, repository: bool = True, store: Store | None = None
) -> AsyncIterator[Commanding]:
    """In a repository with one file, `a.txt`, or in a directory with the same file in none."""
    root = directory.resolve() / "project"
    if not root.exists():
        root.mkdir()
        (root / "a.txt").write_text("one\n")
        if repository:
            git(root, "init", "-qb", "main")
            git(root, "add", "-A")
            git(root, "commit", "-qm", "First")
    async with running(directory, store=store, project=root) as engine:
        await engine.workspace.asks.set_skip(True)
        yield Commanding(engine, root)
