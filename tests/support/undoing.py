"""Turns that really change files, and undo and fork over a workspace in process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from covey.engine.command_changes import Changes
from covey.engine.recorder import Batch, Recorder
from covey.engine.turns.file_versions import cause_of, record_changes
from covey.engine.undo.undo import Undos
from covey.protocol.messages import Message
from covey.protocol.requests import ForkSession, UndoReceipt, UndoTurns
from covey.tools.base import FileVersion, ToolOutput
from tests.support.engine import Engine, call, within


class Undoing:
    """An engine whose turns write files. Each `turn` is one prompt with one call for each file that it changes."""

    def __init__(self, engine: Engine, root: Path) -> None:
        self.engine = engine
        self.root = root.resolve()
        workspace = engine.workspace
        self.undos = Undos(
            workspace.id,
            str(self.root),
            engine.shared,
            workspace._parts.recorder,
            workspace._parts.book,
            workspace._view,
            workspace._parts.lanes,
            workspace._admission.check_open,
            workspace._parts.agent.effects,
            workspace._parts.changes.touching,
        )

    def path(self, name: str) -> Path:
        return self.root / name

    def text(self, name: str) -> str | None:
        return self.path(name).read_text() if self.path(name).exists() else None

    async def turn(self, prompt: str, changes: dict[str, str | None], run_id: str = "") -> str:
        """A turn that gives files new contents (None: removes them), as tools do, and records that."""
        wanted = list(changes.items())
        versions: list[FileVersion] = []

        async def act() -> ToolOutput:
            versions.append(self.change(*wanted[len(versions)]))
            return ToolOutput("changed", files=(versions[-1],))

        idle, self.engine.tool.act = self.engine.tool.act, act
        for number in range(len(wanted)):
            self.engine.model.answer(*call(call_id=f"c{number}", subject=f"{prompt} {number}"))
        self.engine.model.answer(f"did {prompt}")
        run = await self.engine.ended((await self.engine.post(prompt, run_id)).run_id)
        self.engine.tool.act = idle
        await self._record(run.run_id, versions)
        return run.run_id

    async def _record(self, run_id: str, versions: list[FileVersion]) -> None:
        """What the engine writes with each result: it may do so itself by now."""
        ids = [run_id]
        if self.engine.store.file_steps("w", self.engine.session_id, ids):
            return
        results = [m for m in self.engine.messages() if m.run_id == run_id and m.role == "tool"]
        recorder: Recorder = self.engine.workspace._parts.recorder
        for version, message in zip(versions, results, strict=True):
            batch = Batch()
            record_changes(batch, Changes((version,)), cause_of(message), self.engine.shared.world)
            await within(recorder.write(Batch(batch.writes)))  # the run has ended: nothing more is published of it

    def change(self, name: str, text: str | None) -> FileVersion:
        path = self.path(name)
        before = path.read_bytes() if path.exists() else None
        mode = path.stat().st_mode & 0o7777 if path.exists() else 0
        after = None if text is None else text.encode()
        if after is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(after)
        return FileVersion(path, before, after, mode)

    async def undo(self, **fields: Any) -> UndoReceipt:
        return await within(self.undos.undo(self.engine.session_id, UndoTurns(**fields)))

    async def fork(self, message_id: str = "", title: str = "") -> str:
        request = ForkSession(message_id=message_id, title=title)
        return (await within(self.undos.fork(self.engine.session_id, request))).id

    def said(self, session_id: str = "") -> list[tuple[str, str]]:
        return [(m.role, m.text) for m in self.messages(session_id)]

    def messages(self, session_id: str = "") -> list[Message]:
        return self.engine.store.messages("w", session_id or self.engine.session_id, "", 0)

    def litter(self) -> list[str]:
        """Files of ours that should not be there any more."""
        return [name for _, _, names in os.walk(self.root) for name in names if name.startswith(".covey")]
