"""What commands change is recorded with their results, by whoever ran them, and is taken back by an undo."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from covey.context import snapshot_git, snapshots
from covey.engine import command_changes
from covey.lifecycle.undo import CHANGED, NOT_COMPARABLE, NOT_RESTORABLE, UNSURE
from covey.protocol.events import File
from tests.support.commanding import commanding, git
from tests.support.engine import call, within

pytestmark = pytest.mark.anyio

EVERYTHING = (
    "sed -i s/one/two/ a.txt; echo x > new.txt; mkdir d; printf '\\000\\377' > d/bin; chmod +x run; rm gone.txt"
)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with much to do must not make a snapshot look too slow."""
    monkeypatch.setattr(snapshots, "SECONDS", 60.0)


# ── taken back ──


@pytest.mark.parametrize("repository", [True, False], ids=["in a repository", "in none"])
async def test_an_undo_takes_back_what_a_command_created_changed_deleted_and_made_executable(
    tmp_path: Path, repository: bool
) -> None:
    async with commanding(tmp_path, repository=repository) as at:
        for name in ("run", "gone.txt"):
            (at.root / name).write_text(name)
        (at.root / "gone.txt").chmod(0o600)
        await at.turn(EVERYTHING)
        names = {"a.txt", "new.txt", "d/bin", "run", "gone.txt"}
        assert at.changed() == dict.fromkeys(names, "command")
        assert not (at.root / "gone.txt").exists() and os.access(at.root / "run", os.X_OK)
        done = await at.undo()
        assert {os.path.relpath(path, at.root) for path in done.restored} == names
        assert (done.untracked, done.skipped, done.conflicts) == (False, (), ())
        assert (at.text("a.txt"), at.text("new.txt"), at.text("d/bin")) == ("one\n", None, None)
        assert (at.text("gone.txt"), at.text("run")) == ("gone.txt", "run")
        assert (at.root / "gone.txt").stat().st_mode & 0o777 == 0o600, "nobody else may read it now either"
        assert not os.access(at.root / "run", os.X_OK)


async def test_edits_and_commands_of_a_turn_are_taken_back_together(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        await at.turn(
            "sed -i s/one/two/ a.txt",
            {"tool": "view", "file_path": "a.txt"},
            {"tool": "edit", "file_path": "a.txt", "old_string": "two", "new_string": "three"},
            "sed -i s/three/four/ a.txt",
        )
        assert at.text("a.txt") == "four\n"
        assert [step.origin.made_by for step in at.steps()] == ["command", "tool", "command"]
        assert [step.origin.label for step in at.steps()][1] == "edit"
        done = await at.undo()
        assert (at.text("a.txt"), done.untracked) == ("one\n", False)


async def test_a_checkout_of_another_branch_is_taken_back(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        git(at.root, "checkout", "-qb", "side")
        (at.root / "a.txt").write_text("side\n")
        git(at.root, "commit", "-qam", "Side")
        await at.turn("git checkout -q main")
        assert at.text("a.txt") == "one\n"
        await at.undo()
        assert at.text("a.txt") == "side\n"


async def test_clients_hear_of_each_file(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        run_id = await at.turn("echo x > new.txt; rm a.txt")
        heard = {(e.change, os.path.basename(e.payload.path)) for e in at.engine.log() if isinstance(e.payload, File)}
        assert heard == {("created", "new.txt"), ("deleted", "a.txt")}
        assert {file.run_id for file in at.engine.of_type(File)} == {run_id}


async def test_a_command_that_fails_or_takes_too_long_is_recorded_too(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        await at.turn("echo x > new.txt; exit 3", {"command": "echo y > late.txt; sleep 60", "timeout_s": 0.5})
        assert at.changed() == {"new.txt": "command", "late.txt": "command"}


async def test_a_command_that_is_cancelled_is_recorded_too(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        at.engine.model.answer(*call("bash", command="echo x > new.txt; echo ready; sleep 60"))
        run_id = (await at.engine.post("go")).run_id
        while not (at.root / "new.txt").exists():
            await asyncio.sleep(0.01)
        await at.engine.cancel()
        assert (await at.engine.ended(run_id)).state == "cancelled"
        assert at.changed() == {"new.txt": "command"}
        done = await at.undo()
        assert (at.text("new.txt"), done.untracked) == (None, True), "the call has no result that says it was all"


# ── what is left alone ──


async def test_what_a_person_changed_since_is_a_conflict(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        await at.turn("sed -i s/one/two/ a.txt")
        (at.root / "a.txt").write_text("by hand\n")
        dry = await at.undo(dry_run=True)
        assert [conflict.reason for conflict in dry.conflicts] == [CHANGED]
        done = await at.undo(force_files=("a.txt",))
        assert (at.text("a.txt"), len(done.restored)) == ("one\n", 1)


async def test_a_file_too_large_to_keep_is_listed_and_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "FILE_BYTES", 100)
    monkeypatch.setattr(snapshot_git, "FILE_BYTES", 100)
    async with commanding(tmp_path) as at:
        (at.root / "large").write_text("x" * 200)
        await at.turn("printf %0300d 1 > large; printf %0300d 2 > made; sed -i s/one/two/ a.txt")
        assert set(at.changed()) == {"large", "made", "a.txt"}
        done = await at.undo()
        reasons = {os.path.basename(each.path): each.reason for each in done.skipped}
        assert reasons == {"large": NOT_RESTORABLE, "made": NOT_COMPARABLE}
        assert at.text("a.txt") == "one\n", "the others are restored"
        assert len(at.text("large") or "") == 300


async def test_a_link_is_listed_and_stays_as_it_is(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        await at.turn("ln -s /etc/passwd link; echo x > new.txt")
        assert set(at.changed()) == {"link", "new.txt"}
        done = await at.undo()
        assert [os.path.basename(each.path) for each in done.skipped] == ["link"]
        assert (at.root / "link").is_symlink() and at.text("new.txt") is None


async def test_ignored_files_are_not_recorded(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        (at.root / ".gitignore").write_text("*.o\n")
        await at.turn("echo x > x.o; mkdir node_modules; echo x > node_modules/m; echo x > seen")
        assert at.changed() == {"seen": "command"}


# ── who it was ──


async def test_a_command_of_a_person_is_listed_and_is_no_part_of_a_turn(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        await at.turn("echo x > new.txt")
        await at.shell("sed -i s/one/two/ a.txt")
        assert at.changed() == {"new.txt": "command", "a.txt": "person"}
        assert [step.run_id for step in at.steps() if step.origin.made_by == "person"] == [""]
        await at.undo()
        assert (at.text("a.txt"), at.text("new.txt")) == ("two\n", None)


async def test_commands_that_only_look_are_not_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[str] = []
    begin = command_changes.CommandChanges.begin

    async def beginning(self: command_changes.CommandChanges, session_id: str, made_by: str, command: str) -> object:
        watched.append(command)
        return await begin(self, session_id, made_by, command)  # type: ignore[arg-type]

    monkeypatch.setattr(command_changes.CommandChanges, "begin", beginning)
    async with commanding(tmp_path) as at:
        await at.turn("ls -l", "cat a.txt | head -n 1", {"tool": "view", "file_path": "a.txt"}, "touch b")
        await at.shell("git status")
        assert watched == ["touch b"]
        assert not (await at.undo(dry_run=True)).untracked


async def test_a_turn_without_commands_takes_no_snapshot(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        await at.turn({"tool": "write", "file_path": "b.txt", "content": "b"})
        assert not (tmp_path / "snapshots").exists()


async def test_two_commands_at_once_make_it_unsure_whose_change_it_is(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        theirs = asyncio.ensure_future(at.shell("echo x > theirs; while [ ! -e stop ]; do sleep 0.02; done"))
        while not (at.root / "theirs").exists():
            await asyncio.sleep(0.01)
        await at.turn("echo y > ours")
        (at.root / "stop").write_text("")
        await theirs
        sure = {step.path.rpartition("/")[2]: step.origin.is_sure for step in at.steps() if step.run_id}
        assert sure == {"ours": False}
        done = await at.undo()
        assert [(os.path.basename(each.path), each.reason) for each in done.skipped] == [("ours", UNSURE)]
        assert at.text("ours") == "y\n"


async def test_an_edit_of_another_session_is_not_taken_for_the_commands(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        watch = await at.workspace._parts.changes.begin("other", "command", "make")
        await at.turn({"tool": "write", "file_path": "b.txt", "content": "b"})
        (at.root / "c.txt").write_text("c")
        changes = await at.workspace._parts.changes.end(watch)
        assert [file.path.name for file in changes.files] == ["c.txt"]


async def test_an_undo_is_not_taken_for_a_command_that_runs_beside_it(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        await at.turn({"tool": "write", "file_path": "b.txt", "content": "b"})
        watch = await at.workspace._parts.changes.begin("other", "command", "make")
        await at.undo()
        assert (await at.workspace._parts.changes.end(watch)).files == ()


async def test_what_changes_while_a_job_runs_is_listed_as_unsure_and_that_it_goes_on_is_said(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        job = "while [ ! -e go ]; do sleep 0.02; done; echo x > by-job; touch done; sleep 60"
        wait = "touch go; while [ ! -e done ]; do sleep 0.02; done"
        await at.turn({"command": job, "background": True}, wait)
        assert at.changed() == {"go": "command", "by-job": "command", "done": "command"}
        assert at.missed() == ["a job that it left running went on after the turn"]
        assert (await at.undo(dry_run=True)).untracked


async def test_a_job_that_works_between_commands_is_recorded_at_the_end_of_the_turn(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        job = "while [ ! -e go ]; do sleep 0.02; done; echo x > by-job"
        await at.turn(
            {"command": job, "background": True},
            {"tool": "write", "file_path": "go", "content": ""},
            {"tool": "job_output", "job_id": "job-1", "wait_s": 10},
        )
        assert at.changed() == {"go": "tool", "by-job": "job?"}
        assert at.missed() == []


# ── bounds ──


async def test_what_could_not_all_be_looked_at_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_git, "FILES", 3)
    async with commanding(tmp_path) as at:
        await at.turn("for n in 1 2 3 4 5; do echo $n > f$n; done")
        assert set(at.changed()) <= {"f1", "f2", "f3"}
        assert len(at.missed()) == 1
        assert (await at.undo()).untracked


async def test_a_directory_that_takes_too_long_is_given_a_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SECONDS", -1.0)
    takes: list[Path] = []
    take = snapshots.Snapshots.take

    async def taking(self: snapshots.Snapshots, root: Path, *known: object) -> object:
        takes.append(root)
        return await take(self, root, *known)  # type: ignore[arg-type]

    monkeypatch.setattr(snapshots.Snapshots, "take", taking)
    async with commanding(tmp_path) as at:
        (at.root / "new").touch()  # there is something to look at, however fast git says so
        await at.turn("touch b", "touch c", "touch d")
        assert (len(takes), len(at.missed())) == (1, 3)
        assert (await at.undo()).untracked


async def test_contents_beyond_the_bound_are_listed_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_changes, "CONTENT_BYTES", 10)
    async with commanding(tmp_path) as at:
        await at.turn("printf 123456 > b; printf 123456 > c")
        contents = [at.engine.store.content("", step.after or "") for step in at.steps()]
        assert contents == [b"123456", b"123456"], "the same content is kept once"
        await at.turn("printf 1234567 > b; printf 7654321 > c")
        kept = [at.engine.store.content("", step.after or "") for step in at.steps()[2:]]
        assert kept == [None, None], "what was there before counts too"


async def test_a_cancel_while_a_snapshot_is_taken_leaves_nothing_watched(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        changes = at.workspace._parts.changes
        beginning = asyncio.ensure_future(changes.begin("s", "command", "make"))
        await asyncio.sleep(0)
        beginning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await within(beginning)
        assert changes._watches == []


async def test_nothing_of_the_snapshots_is_left_when_the_workspace_closes(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        await at.turn("touch b")
        assert (tmp_path / "snapshots" / "w").exists()
    assert not (tmp_path / "snapshots" / "w").exists()
