"""What a session has changed, as v1 clients see it: two versions of each file, and never a false difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.engine.commands import file_history as history_module
from covey.engine.commands.file_history import ends
from covey.lifecycle.undo import FileStep
from covey.protocol.errors import NotFound
from covey.store.base import Change, PutFileVersion, PutUndo, UndoRow
from tests.support.engine import Engine, running

pytestmark = pytest.mark.anyio


def step(path: str, before: str | None, after: str | None, run_id: str = "r") -> FileStep:
    return FileStep(run_id, "m", path, before, after, 0, True)


def test_a_file_has_its_first_state_and_its_last_the_last_changed_first() -> None:
    steps = [step("a", None, "1"), step("b", "x", "y"), step("a", "1", "2"), step("c", "p", "q", "gone")]
    found = [(e.first.path, e.first.before, e.last.after, e.steps) for e in ends(steps, {"gone"})]
    assert found == [("a", None, "2", 2), ("b", "x", "y", 1)]


async def put(engine: Engine, path: str, before: bytes | None, after: bytes | None, run_id: str = "r") -> None:
    version = PutFileVersion(engine.session_id, run_id, path, before, after, message_id=engine.shared.world.new_id())
    await engine.journal.write(Change("w", (version,)))


async def shown(engine: Engine) -> list[tuple[str, int, str]]:
    files = await engine.workspace.sessions.history(engine.session_id)
    return [(file.path, file.version, file.content) for file in files]


async def test_contents_come_along_unless_they_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as engine:
        await put(engine, "/p/a", b"one", b"two \xff")
        await put(engine, "/p/b", b"here", None)
        assert await shown(engine) == [("/p/b", 0, "here"), ("/p/b", 1, ""), ("/p/a", 0, "one"), ("/p/a", 1, "two �")]
        monkeypatch.setattr(history_module, "CONTENT_BYTES", 4)
        assert await shown(engine) == [("/p/b", 0, "here"), ("/p/b", 1, ""), ("/p/a", 0, ""), ("/p/a", 1, "")]
        monkeypatch.setattr(history_module, "ANSWER_BYTES", 3)
        assert {content for _, _, content in await shown(engine)} == {""}
        now = engine.shared.world.now_s()
        files = await engine.workspace.sessions.history(engine.session_id)
        assert all(now - 60 < file.created_at <= now for file in files)
        with pytest.raises(NotFound):
            await engine.workspace.sessions.history("none")


async def test_what_was_undone_is_not_shown(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await put(engine, "/p/a", b"1", b"2", "kept")
        await put(engine, "/p/a", b"2", b"3", "undone")
        undo = UndoRow(engine.shared.world.new_id(), engine.session_id, ("undone",), 1.0, done=True)
        await engine.journal.write(Change("w", (PutUndo(undo),)))
        assert await shown(engine) == [("/p/a", 0, "1"), ("/p/a", 1, "2")]
