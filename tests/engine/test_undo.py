"""Undo: turns are taken back with their files, or nothing is touched."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from covey.engine.command_changes import Changes
from covey.engine.recorder import Batch
from covey.engine.turns.file_versions import cause_of, record_changes
from covey.engine.undo import restore, undo
from covey.lifecycle.undo import CHANGED, DELETED, IN_BETWEEN, NOT_KEPT
from covey.protocol.errors import ApiError, Conflict, NotFound
from covey.protocol.events import File
from covey.protocol.messages import Message, Session
from covey.protocol.requests import ForkSession, UndoTurns
from covey.store import base
from covey.store.base import PutFileVersion
from covey.store.sqlite import SqliteStore
from tests.support.disk import Disk
from tests.support.engine import Gate, call, running, within
from tests.support.undoing import Undoing

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def undoing(directory: Path, store: Disk | SqliteStore | None = None) -> AsyncIterator[Undoing]:
    root = directory / "project"
    root.mkdir(exist_ok=True)
    async with running(directory, store=store) as engine:
        yield Undoing(engine, root)


async def refused(attempt: Awaitable[object], code: str) -> str:
    with pytest.raises(ApiError) as raised:
        await attempt
    assert raised.value.code == code
    return raised.value.message


# ── what is taken back ──


async def test_the_last_turn_goes_with_its_messages_and_its_files(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {"a.py": "one", "b/c.py": "made"})
        run_id = await at.turn("second", {"a.py": "two", "b/c.py": None, "new.py": "new"})
        done = await at.undo()
        assert [(turn.run_id, turn.prompt) for turn in done.undone] == [(run_id, "second")]
        assert set(done.restored) == {str(at.path(name)) for name in ("a.py", "b/c.py", "new.py")}
        assert (done.removed_messages, done.skipped, done.conflicts) == (8, (), ())
        assert (at.text("a.py"), at.text("b/c.py"), at.text("new.py")) == ("one", "made", None)
        assert [text for role, text in at.said() if role == "user"] == ["first"]
        assert at.engine.workspace.sessions.get(at.engine.session_id).message_count == 6
        assert at.engine.store.run("w", run_id) is not None, "its run has an answer for whoever posts its id again"
        assert at.litter() == []


async def test_undo_can_be_repeated_until_there_is_nothing_left(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        at.path("a.py").write_text("zero")
        for text in ("one", "two"):
            await at.turn(text, {"a.py": text})
        for left in ("one", "zero"):
            await at.undo()
            assert at.text("a.py") == left
        assert at.said() == []
        assert "nothing to undo" in await refused(at.undo(), "nothing_to_undo")
        await at.turn("again", {"a.py": "three"})
        await at.undo()
        assert at.text("a.py") == "zero"


async def test_all_turns_back_to_a_run_go_at_once(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        at.path("a.py").write_text("zero")
        await at.turn("first", {"a.py": "one"})
        second = await at.turn("second", {"a.py": "two", "b.py": "b"})
        await at.turn("third", {"a.py": "three"})
        done = await at.undo(run_id=second)
        assert [turn.prompt for turn in done.undone] == ["second", "third"]
        assert (at.text("a.py"), at.text("b.py")) == ("one", None)
        assert "undone already" in await refused(at.undo(run_id=second), "nothing_to_undo")


async def test_a_turn_goes_with_the_prompts_that_were_folded_into_it(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        engine, gate = at.engine, Gate()
        await at.turn("first", {"a.py": "one"})
        engine.model.answer("one moment", gate, *call())
        await engine.post("host", "r-host")
        await gate.reached()
        await engine.post("and this", "r-folded", "fold")
        gate.open()
        await engine.ended("r-folded")
        done = await at.undo(run_id="r-folded")
        assert [turn.run_id for turn in done.undone] == ["r-host", "r-folded"]
        assert [text for role, text in at.said() if role == "user"] == ["first"]
        assert at.text("a.py") == "one"


async def test_everybody_is_told_and_the_next_prompt_sees_what_is_left(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        engine = at.engine
        await at.turn("first", {"a.py": "one"})
        await at.turn("second", {"a.py": "two", "new.py": "new"})
        gone = [m.id for m in at.messages() if m.run_id == engine.store.runs("w", "", "", 1)[0].run_id]
        engine.events.clear()
        await at.undo()
        deleted = [e.payload.id for e in engine.events if isinstance(e.payload, Message) and e.change == "deleted"]
        assert deleted == gone[::-1]
        (session,) = engine.of_type(Session)
        assert session.message_count == len(at.messages())
        files = [(e.change, e.payload.path, e.payload.run_id) for e in engine.events if isinstance(e.payload, File)]
        assert files == [("updated", str(at.path("a.py")), None), ("deleted", str(at.path("new.py")), None)]
        await at.turn("third", {})
        assert engine.model.prompts[-1] == ["first", "third"]


async def test_only_the_messages_go_if_the_files_are_kept(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {"a.py": "one"})
        at.path("a.py").write_text("by hand")
        done = await at.undo(keep_files=True)
        assert (done.restored, len(done.undone), at.text("a.py")) == ((), 1, "by hand")
        assert at.said() == []


async def test_a_dry_run_tells_everything_and_changes_nothing(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {"a.py": "one", "b.py": "one"})
        at.path("a.py").write_text("by hand")
        before = at.said()
        done = await at.undo(dry_run=True)
        assert [(conflict.path, conflict.reason) for conflict in done.conflicts] == [(str(at.path("a.py")), CHANGED)]
        assert (done.restored, done.removed_messages) == ((str(at.path("b.py")),), 6)
        assert (at.said(), at.text("b.py")) == (before, "one")


async def test_it_is_said_that_commands_may_have_done_more(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {"a.py": "one"})
        at.engine.model.answer(*call())  # a tool that records nothing
        await at.engine.ended((await at.engine.post("second")).run_id)
        assert (await at.undo()).untracked
        assert not (await at.undo()).untracked


async def test_modes_are_kept(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        at.path("run.sh").write_text("zero")
        at.path("run.sh").chmod(0o751)
        await at.turn("first", {"run.sh": "one"})
        await at.undo()
        assert (at.text("run.sh"), at.path("run.sh").stat().st_mode & 0o777) == ("zero", 0o751)


async def test_a_file_that_is_gone_comes_back_with_its_mode(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        at.path("run.sh").write_text("zero")
        at.path("run.sh").chmod(0o751)
        await at.turn("first", {"run.sh": None})
        await at.undo()
        assert (at.text("run.sh"), at.path("run.sh").stat().st_mode & 0o777) == ("zero", 0o751)


async def test_a_directory_that_was_made_stays(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {"deep/er/a.py": "one"})
        await at.undo()
        assert at.path("deep/er").is_dir() and not at.path("deep/er/a.py").exists()


async def test_a_file_comes_back_with_its_directory(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {"deep/er/a.py": "one"})
        await at.turn("second", {"deep/er/a.py": None})
        at.path("deep/er").rmdir()
        await at.undo()
        assert at.text("deep/er/a.py") == "one"


async def test_what_a_call_changed_is_written_and_told_with_its_result(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {})
        message, batch = at.messages()[0], Batch()
        files = [at.change("a.py", "one"), at.change("a.py", "two"), at.change("a.py", None)]
        record_changes(batch, Changes(tuple(files)), cause_of(message), at.engine.shared.world)
        path = str(at.path("a.py"))
        writes = [write for write in batch.writes if isinstance(write, PutFileVersion)]
        assert [(w.path, w.before, w.after) for w in writes] == [
            (path, None, b"one"), (path, b"one", b"two"), (path, b"two", None),
        ]  # fmt: skip
        changed = [(e.change, e.payload.path, e.payload.run_id) for e in batch.events if isinstance(e.payload, File)]
        assert changed == [(change, path, message.run_id) for change in ("created", "updated", "deleted")]
        assert {e.session_id for e in batch.events} == {at.engine.session_id}


# ── what stands in the way ──


@pytest.mark.parametrize(
    ("text", "why"), [("by hand", CHANGED), (None, DELETED)], ids=["changed by hand", "deleted by hand"]
)
async def test_what_was_done_by_hand_is_a_conflict_and_nothing_is_touched(
    tmp_path: Path, text: str | None, why: str
) -> None:
    async with undoing(tmp_path) as at:
        at.path("a.py").write_text("zero")
        await at.turn("first", {"a.py": "one", "b.py": "b"})
        before, events = at.said(), len(at.engine.events)
        at.change("a.py", text)
        said = await refused(at.undo(), "undo_conflict")
        assert f"{at.path('a.py')}: {why}" in said and "b.py" not in said
        assert (at.said(), at.text("a.py"), at.text("b.py")) == (before, text, "b")
        assert (len(at.engine.events), at.litter()) == (events, [])


async def test_an_edit_by_hand_between_two_turns_is_a_conflict_when_both_are_undone(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        at.path("a.py").write_text("zero")
        first = await at.turn("first", {"a.py": "one"})
        at.change("a.py", "by hand")
        await at.turn("second", {"a.py": "two"})
        assert IN_BETWEEN in await refused(at.undo(run_id=first), "undo_conflict")
        await at.undo()
        assert at.text("a.py") == "by hand"
        assert CHANGED in await refused(at.undo(), "undo_conflict")


async def test_what_another_session_did_to_the_file_is_a_conflict(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        engine = at.engine
        await at.turn("first", {"a.py": "one"})
        first, engine.session_id = engine.session_id, (await engine.workspace.sessions.create("other")).id
        await at.turn("second", {"a.py": "two"})
        engine.session_id = first
        assert CHANGED in await refused(at.undo(), "undo_conflict")
        assert at.text("a.py") == "two"


@pytest.mark.parametrize("absolute", [True, False])
async def test_a_file_that_is_named_is_restored_all_the_same(tmp_path: Path, absolute: bool) -> None:
    async with undoing(tmp_path) as at:
        at.path("a.py").write_text("zero")
        await at.turn("first", {"a.py": "one", "b.py": "one"})
        at.change("a.py", "by hand")
        at.change("b.py", "by hand")
        forced = str(at.path("a.py")) if absolute else "./a.py"
        said = await refused(at.undo(force_files=(forced,)), "undo_conflict")
        assert "b.py" in said and "a.py:" not in said
        await at.undo(force_files=(forced, "b.py"))
        assert (at.text("a.py"), at.text("b.py")) == ("zero", None)


async def test_a_file_that_is_as_before_already_is_no_conflict(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        at.path("a.py").write_text("zero")
        await at.turn("first", {"a.py": "one"})
        at.change("a.py", "zero")
        assert (await at.undo()).restored == ()
        assert at.text("a.py") == "zero"


async def test_a_link_on_the_way_is_not_followed(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        at.path("d").mkdir()
        at.path("d/a.py").write_text("zero")
        await at.turn("first", {"d/a.py": "one"})
        at.path("d").rename(tmp_path / "elsewhere")
        at.path("d").symlink_to(tmp_path / "elsewhere")
        assert restore.LINKED in await refused(at.undo(force_files=("d/a.py",)), "undo_conflict")
        assert at.text("d/a.py") == "one"


@pytest.mark.parametrize("kind", ["link", "directory", "fifo"])
async def test_what_is_no_file_any_more_is_a_conflict(tmp_path: Path, kind: str) -> None:
    async with undoing(tmp_path) as at:
        path = at.path("a.py")
        await at.turn("first", {"a.py": "one"})
        path.rename(at.path("b.py"))
        if kind == "link":
            path.symlink_to("b.py")
        elif kind == "directory":
            path.mkdir()
        else:
            os.mkfifo(path)
        assert restore.NO_FILE in await refused(at.undo(force_files=("a.py",)), "undo_conflict")
        assert at.text("b.py") == "one"


async def test_a_content_that_is_not_kept_cannot_be_restored_but_the_messages_can_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "CONTENT_BYTES", 10)
    async with undoing(tmp_path) as at:
        at.path("a.py").write_text("x" * 11)
        await at.turn("first", {"a.py": "one"})
        assert NOT_KEPT in await refused(at.undo(force_files=("a.py",)), "undo_conflict")
        assert at.text("a.py") == "one"
        await at.undo(keep_files=True)
        assert at.said() == []


async def test_a_directory_that_cannot_be_written_is_told_before_anything_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with undoing(tmp_path) as at:
        at.path("a.py").write_text("zero")
        at.path("b.py").write_text("zero")
        await at.turn("first", {"a.py": "one", "b.py": "one"})
        real = restore.Staged._write

        def full(self: restore.Staged, directory: int, name: str, content: bytes) -> None:
            if name == "b.py":
                raise OSError(28, "No space left on device")
            real(self, directory, name, content)

        monkeypatch.setattr(restore.Staged, "_write", full)
        assert "b.py: it cannot be written: No space left" in await refused(at.undo(), "undo_conflict")
        assert (at.text("a.py"), at.text("b.py"), len(at.said()), at.litter()) == ("one", "one", 6, [])


async def test_a_change_in_the_very_moment_is_not_overwritten_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with undoing(tmp_path) as at:
        at.path("a.py").write_text("zero")
        await at.turn("first", {"a.py": "one", "b.py": "one"})
        real = undo._put_all

        def late(staged: list[restore.Staged]) -> object:
            at.change("a.py", "in the last moment")
            return real(staged)

        monkeypatch.setattr(undo, "_put_all", late)
        done = await at.undo()
        assert [(skipped.path, "meanwhile" in skipped.reason) for skipped in done.skipped] == [
            (str(at.path("a.py")), True)
        ]
        assert done.restored == (str(at.path("b.py")),)
        assert (at.text("a.py"), at.text("b.py"), at.litter()) == ("in the last moment", None, [])


# ── whom it refuses ──


async def test_what_does_not_exist_is_not_found(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {})
        with pytest.raises(NotFound, match="no session"):
            await at.undos.undo("nobody", UndoTurns())
        await refused(at.undo(run_id="nobody"), "run_not_found")
        at.engine.session_id = (await at.engine.workspace.sessions.create("other")).id
        run_id = at.engine.store.runs("w", "", "", 1)[0].run_id
        await refused(at.undo(run_id=run_id), "run_not_found")
        await refused(at.undo(), "nothing_to_undo")


async def test_a_busy_session_is_not_undone_and_one_that_is_being_undone_takes_no_prompt(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        engine, gate = at.engine, Gate()
        await at.turn("first", {"a.py": "one"})
        engine.model.answer("busy", gate)
        run_id = (await engine.post("second")).run_id
        await gate.reached()
        assert "busy" in await refused(at.undo(), "session_busy")
        gate.open()
        await engine.ended(run_id)
        engine.disk.hold()
        task = await engine.soon(at.undo())
        await refused(at.undo(), "session_busy")
        with pytest.raises(Conflict, match="being undone"):
            await engine.post("too early")
        with pytest.raises(Conflict, match="being undone"):
            await at.undos.fork(engine.session_id, ForkSession())
        engine.disk.release()
        await within(task)
        await at.undos.fork(engine.session_id, ForkSession())


async def test_whoever_asked_may_leave_and_it_is_done_all_the_same(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {"a.py": "one"})
        at.engine.disk.hold()
        task = await at.engine.soon(at.undo())
        task.cancel()
        at.engine.disk.release()
        await within(at.undos.drained())
        assert (at.said(), at.text("a.py")) == ([], None)
