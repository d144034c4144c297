"""What a session has changed is listed by file and turn, with diffs, within bounds; v1 clients see the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from covey.context import snapshot_git, snapshots
from covey.engine.commands import changes, file_history
from covey.lifecycle.changes import OWN_COMMAND
from covey.protocol.changes import ChangedFile, FileDiff, Maker, SessionChanges
from covey.protocol.errors import NotFound
from tests.support.commanding import Commanding, commanding
from tests.support.engine import within

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SECONDS", 60.0)
    monkeypatch.setattr(changes, "SECONDS", 60.0)


async def changes_of(at: Commanding, **query: object) -> SessionChanges:
    return await within(at.workspace.sessions.changes(at.engine.session_id, **query))  # type: ignore[arg-type]


def by_name(at: Commanding, found: SessionChanges) -> dict[str, ChangedFile]:
    return {os.path.relpath(file.path, at.root): file for file in found.files}


async def test_each_file_has_its_status_its_counts_its_diff_and_who_changed_it(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        (at.root / "gone.txt").write_text("1\n2\n")
        command = "sed -i s/one/two/ a.txt; rm gone.txt; printf '\\000' > bin; printf '1\\n' > new.txt"
        run_id = await at.turn(command)
        found = await changes_of(at)
        files = by_name(at, found)
        assert {name: file.change.status for name, file in files.items()} == {
            "a.txt": "modified",
            "bin": "added",
            "gone.txt": "deleted",
            "new.txt": "added",
        }
        assert files["a.txt"].change == FileDiff(
            status="modified", additions=1, deletions=1, diff="--- a.txt\n+++ a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n"
        )
        assert (files["gone.txt"].change.additions, files["gone.txt"].change.deletions) == (0, 2)
        assert (files["bin"].change.is_binary, files["bin"].change.additions, files["bin"].change.diff) == (
            True,
            None,
            "",
        )
        (turn,) = files["a.txt"].turns
        assert (turn.run_id, turn.can_undo, turn.reason, turn.change.diff) == (run_id, True, "", "")
        assert turn.made_by == (Maker(made_by="command", label=command),)
        assert turn.change.additions == 1, "only the text is left out, which is the file's"
        assert (found.missed, found.next) == ((), "")


async def test_a_file_is_listed_with_each_turn_that_changed_it(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        first = await at.turn("sed -i s/one/two/ a.txt")
        await at.shell("sed -i s/two/three/ a.txt")
        second = await at.turn(
            {"tool": "view", "file_path": "a.txt"},
            {"tool": "edit", "file_path": "a.txt", "old_string": "three", "new_string": "four"},
        )
        (file,) = (await changes_of(at)).files
        assert file.change.diff.endswith("-one\n+four\n")
        assert [(turn.run_id, turn.change.diff.splitlines()[3:]) for turn in file.turns] == [
            (first, ["-one", "+two"]),
            ("", ["-two", "+three"]),
            (second, ["-three", "+four"]),
        ]
        assert [turn.made_by[0].made_by for turn in file.turns] == ["command", "person", "tool"]
        assert [turn.made_by[0].label for turn in file.turns][2] == "edit"
        assert [(turn.can_undo, turn.reason) for turn in file.turns] == [(True, ""), (False, OWN_COMMAND), (True, "")]
        (only,) = (await changes_of(at, run_id=first)).files
        assert only.change.diff.endswith("-one\n+two\n")


async def test_a_renamed_file_has_its_old_name_and_no_diff(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        await at.turn("git mv a.txt z.txt")
        (file,) = (await changes_of(at)).files
        assert (file.path, file.change.status, file.change.old_path) == (
            str(at.root / "z.txt"),
            "renamed",
            str(at.root / "a.txt"),
        )
        assert (file.change.additions, file.change.diff) == (0, "")


async def test_what_was_undone_is_not_listed(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        await at.turn("echo 1 > b")
        await at.turn("echo 2 > c")
        await at.undo()
        assert list(by_name(at, await changes_of(at))) == ["b"]


async def test_what_could_not_all_be_looked_at_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_git, "FILES", 2)
    async with commanding(tmp_path) as at:
        run_id = await at.turn("touch 1 2 3 4")
        (missed,) = (await changes_of(at)).missed
        assert (missed.run_id, missed.label) == (run_id, "touch 1 2 3 4")
        assert "too many" in missed.reason


async def test_pages_follow_each_other_without_gaps(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        await at.turn("for n in 1 2 3 4 5; do echo $n > f$n; done")
        names: list[str] = []
        after = ""
        for _ in range(3):
            page = await changes_of(at, after=after, limit=2)
            names += by_name(at, page)
            after = page.next
        assert (names, after) == (["f1", "f2", "f3", "f4", "f5"], "")


async def test_diffs_are_left_out_on_request_and_where_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with commanding(tmp_path) as at:
        await at.turn("echo 1 > f1; echo 2 > f2")
        without = [file.change for file in (await changes_of(at, diffs=False)).files]
        assert [(change.additions, change.diff, change.is_left_out) for change in without] == [(1, "", False)] * 2
        monkeypatch.setattr(changes, "DIFF_CHARS", 40)
        bounded = [file.change for file in (await changes_of(at)).files]
        assert [(bool(change.diff), change.is_left_out, change.additions) for change in bounded] == [
            (True, False, 1),
            (False, True, 1),
        ]
        monkeypatch.setattr(changes, "CONTENT_BYTES", 1)
        assert all(file.change.is_left_out for file in (await changes_of(at)).files)


async def test_a_session_that_nobody_knows_is_not_found(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        with pytest.raises(NotFound):
            await at.workspace.sessions.changes("nobody")


async def test_v1_clients_see_what_commands_changed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_git, "FILES", 3)
    async with commanding(tmp_path) as at:
        await at.turn("sed -i s/one/two/ a.txt; touch b c d e")
        versions = await file_history.file_history(at.workspace._parts, at.engine.session_id)
        contents = [(v.version, v.content) for v in versions if v.path == str(at.root / "a.txt")]
        assert all(v.path for v in versions), "what is not known is no file"
        assert contents == [(0, "one\n"), (1, "two\n")]
