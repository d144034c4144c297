"""Undo on a disk that fails, and on a server that dies in the middle of it: all or nothing, and it is gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.doctor.oracle import examine
from covey.protocol.events import File
from covey.store.base import StoreFailed
from covey.store.sqlite import SqliteStore
from tests.engine.test_undo import undoing
from tests.support.engine import within
from tests.support.undoing import Undoing

pytestmark = pytest.mark.anyio


async def test_a_store_that_cannot_write_changes_nothing(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        at.path("a.py").write_text("zero")
        await at.turn("first", {"a.py": "one"})
        before = at.engine.workspace.sessions.get(at.engine.session_id)
        at.engine.disk.poison = at.engine.session_id
        with pytest.raises(StoreFailed):
            await at.undo()
        at.engine.disk.poison = ""
        after = at.engine.workspace.sessions.get(at.engine.session_id)
        assert (after.message_count, after.prompt_tokens) == (before.message_count, before.prompt_tokens)
        assert (at.text("a.py"), len(at.said()), at.litter()) == ("one", 4, [])
        await at.undo()
        assert at.text("a.py") == "zero"


async def after_a_crash(tmp_path: Path, when: int) -> Undoing:
    """The disk as a crash after this commit of an undo leaves it, with no file or only the first restored."""
    async with undoing(tmp_path) as at:
        at.path("a.py").write_text("zero")
        await at.turn("first", {"a.py": "one", "b.py": "one", "c.py": "one"})
        at.engine.disk.keeps_copies = True
        await at.undo()
        assert len(at.engine.disk.copies) == 3, "what was still to write, the messages and the note, the end"
        left = at.engine.disk.copies[when]
        at.change("b.py", "one")
        at.change("c.py", "by hand, before the next start")
    async with undoing(tmp_path, left) as at:
        await within(at.undos.recover())
        await within(at.undos.recover())
        return at


async def test_an_undo_that_a_crash_cut_off_is_gone_on_with(tmp_path: Path) -> None:
    at = await after_a_crash(tmp_path, 1)
    assert (at.text("a.py"), at.text("b.py")) == ("zero", None)
    assert at.text("c.py") == "by hand, before the next start"
    assert (at.said(), at.engine.store.undos("w", pending=True), at.litter()) == ([], [], [])
    told = [(e.change, e.payload.path) for e in at.engine.log() if isinstance(e.payload, File) and not e.payload.run_id]
    assert ("deleted", str(at.path("b.py"))) in told
    assert str(at.path("c.py")) not in [path for _, path in told]


@pytest.mark.parametrize("when", [0, 2], ids=["before it was noted", "after it was done"])
async def test_an_undo_that_was_not_begun_or_is_done_is_left_alone(tmp_path: Path, when: int) -> None:
    at = await after_a_crash(tmp_path, when)
    assert at.text("b.py") == "one"
    assert bool(at.said()) == (when == 0)


async def test_an_undone_store_is_healthy_and_goes_on(tmp_path: Path) -> None:
    for _ in range(2):
        async with undoing(tmp_path, SqliteStore(tmp_path / "covey.db")) as at:
            await at.turn("first", {"a.py": "one"})
            await at.turn("second", {"a.py": "two", "b.py": "b"})
            await at.undo()
            await at.fork()
        assert examine(tmp_path).findings == []
