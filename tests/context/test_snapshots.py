"""What commands change is known, with what it was before, wherever the files are."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

from covey.context import snapshot_git, snapshot_walk, snapshots
from covey.context.snapshots import Snapshots
from tests.context.around import around, changes_of, compared
from tests.context.taking import patience, repository, taking
from tests.context.test_git_state import Repository

__all__ = ["patience", "repository", "taking"]
pytestmark = pytest.mark.anyio


# ── what is known ──


async def test_a_command_that_changes_nothing(taking: Snapshots, repository: Repository) -> None:
    (repository.path / "new").write_text("x")
    (repository.path / "a.txt").write_text("changed by hand\n")
    found = await around(taking, repository.path, lambda: None)
    assert (found, found.is_complete) == ({}, True)


async def test_files_that_were_as_git_knows_them(taking: Snapshots, repository: Repository) -> None:
    repository.commit("b.bin", "\x00\n", "Another")
    repository.commit("gone.txt", "bye\n", "A third")

    def command() -> None:
        (repository.path / "a.txt").write_text("two\n")  # of the same size
        (repository.path / "b.bin").write_bytes(b"\xff\x00")
        (repository.path / "gone.txt").unlink()
        (repository.path / "new.txt").write_text("hello\n")

    found = await around(taking, repository.path, command)
    assert found == {
        "a.txt": (b"one\n", b"two\n"),
        "b.bin": (b"\x00\n", b"\xff\x00"),
        "gone.txt": (b"bye\n", None),
        "new.txt": (None, b"hello\n"),
    }
    assert found.is_complete


async def test_files_that_were_changed_or_new_already(taking: Snapshots, repository: Repository) -> None:
    (repository.path / "a.txt").write_text("by hand\n")
    (repository.path / "new.txt").write_text("new\n")
    (repository.path / "same.txt").write_text("same\n")

    def command() -> None:
        (repository.path / "a.txt").write_text("by tool\n")
        (repository.path / "new.txt").unlink()
        os.utime(repository.path / "same.txt", (5, 5))

    found = await around(taking, repository.path, command)
    assert found == {"a.txt": (b"by hand\n", b"by tool\n"), "new.txt": (b"new\n", None)}


async def test_a_change_that_is_taken_back_by_the_command(taking: Snapshots, repository: Repository) -> None:
    (repository.path / "a.txt").write_text("by hand\n")
    found = await around(taking, repository.path, lambda: repository.git("checkout", "-q", "a.txt"))
    assert found == {"a.txt": (b"by hand\n", b"one\n")}


async def test_a_commit_and_a_touch_change_no_file(taking: Snapshots, repository: Repository) -> None:
    (repository.path / "a.txt").write_text("two\n")
    (repository.path / "new.txt").write_text("new\n")

    def command() -> None:
        repository.git("add", "-A")
        repository.git("commit", "-qm", "All")
        os.utime(repository.path / "a.txt", (5, 5))

    assert await around(taking, repository.path, command) == {}


async def test_another_branch_is_checked_out(taking: Snapshots, repository: Repository) -> None:
    repository.git("checkout", "-qb", "side")
    repository.commit("a.txt", "side\n", "On the side")
    repository.commit("b.txt", "b\n", "And more")
    found = await around(taking, repository.path, lambda: repository.git("checkout", "-q", "main"))
    assert found == {"a.txt": (b"side\n", b"one\n"), "b.txt": (b"b\n", None)}


async def test_a_renamed_file_is_gone_and_new(taking: Snapshots, repository: Repository) -> None:
    found = await around(taking, repository.path, lambda: repository.git("mv", "a.txt", "z.txt"))
    assert found == {"a.txt": (b"one\n", None), "z.txt": (None, b"one\n")}


async def test_a_mode_and_a_link(taking: Snapshots, repository: Repository) -> None:
    (repository.path / "link").symlink_to("a.txt")
    repository.git("add", "link")
    repository.git("commit", "-qm", "A link")

    def command() -> None:
        (repository.path / "a.txt").chmod(0o755)
        (repository.path / "link").unlink()
        (repository.path / "link").symlink_to("elsewhere")
        (repository.path / "other").symlink_to("/etc/passwd")

    found = await changes_of(taking, repository.path, command)
    assert sorted(found) == ["a.txt", "link", "other"]
    before, after = found["a.txt"].before, found["a.txt"].after
    assert before and after and (before.mode, after.mode) == (0o100644, 0o100755)
    assert before.digest == after.digest
    before, after = found["link"].before, found["link"].after
    assert before and after and before.is_link and after.is_link and before.digest != after.digest
    assert await taking.content(found["other"].after) is None, "where a link leads is not read"


async def test_what_git_ignores_and_what_always_is_is_not_seen(taking: Snapshots, repository: Repository) -> None:
    (repository.path / ".gitignore").write_text("*.o\n")
    (repository.path / ".git" / "info" / "exclude").write_text("*.log\n")

    def command() -> None:
        (repository.path / "node_modules" / "m").mkdir(parents=True)
        for name in ("x.o", "x.log", "node_modules/m/i.js", "seen"):
            (repository.path / name).write_text("")

    assert list(await around(taking, repository.path, command)) == ["seen"]


async def test_only_what_is_below_the_directory_is_seen(taking: Snapshots, repository: Repository) -> None:
    inner = repository.path / "inner"
    inner.mkdir()
    repository.commit("inner/b.txt", "b\n", "Inside")
    repository.commit("innermost.txt", "x\n", "Beside")

    def command() -> None:
        for name in ("a.txt", "innermost.txt", "inner/b.txt", "new", "inner/new"):
            (repository.path / name).write_text("changed\n")

    found = await around(taking, inner, command)
    assert found == {"b.txt": (b"b\n", b"changed\n"), "new": (None, b"changed\n")}


async def test_names_that_are_no_text(taking: Snapshots, repository: Repository) -> None:
    names = [b"\xff\xfe", b"new\nline", b'"quoted" \\', "Ümläut".encode()]
    for name in names:
        (repository.path / os.fsdecode(name)).write_text("before")
    repository.git("add", "-A")
    repository.git("commit", "-qm", "Names")

    def command() -> None:
        for name in names:
            (repository.path / os.fsdecode(name)).write_text("later on")

    found = await around(taking, repository.path, command)
    assert {os.fsencode(name) for name in found} == set(names)
    assert set(found.values()) == {(b"before", b"later on")}


async def test_a_command_that_changes_what_the_one_before_had_changed(
    taking: Snapshots, repository: Repository
) -> None:
    first = await taking.take(repository.path)
    (repository.path / "a.txt").write_text("two\n")
    second = await taking.take(repository.path, first)
    assert await compared(taking, first, second) == {"a.txt": (b"one\n", b"two\n")}
    (repository.path / "a.txt").write_text("six\n")  # of the same size, and at once
    third = await taking.take(repository.path, second)
    assert await compared(taking, second, third) == {"a.txt": (b"two\n", b"six\n")}


# ── where it is looked ──


async def test_a_directory_in_no_repository(taking: Snapshots, tmp_path: Path) -> None:
    root = tmp_path / "plain"
    (root / "sub").mkdir(parents=True)
    (root / ".gitignore").write_text("*.o\n")
    (root / "sub" / "b").write_text("b")

    def command() -> None:
        (root / "sub" / "b").write_text("c")
        (root / "x.o").write_text("")

    found = await around(taking, root, command)
    assert (found, found.is_complete) == ({"sub/b": (b"b", b"c")}, True)
    assert not (root / ".git").exists()


async def test_a_directory_becomes_a_repository(taking: Snapshots, tmp_path: Path) -> None:
    made = Repository(tmp_path / "plain")
    (made.path / "b").write_text("b")

    def command() -> None:
        made.git("init", "-qb", "main")
        made.git("add", "-A")
        made.git("commit", "-qm", "All")
        (made.path / "c").write_text("c")

    assert await around(taking, made.path, command) == {"c": (None, b"c")}


async def test_before_the_first_commit(taking: Snapshots, tmp_path: Path) -> None:
    made = Repository(tmp_path / "p")
    made.git("init", "-qb", "trunk")
    (made.path / "x").write_text("x")
    made.git("add", "x")
    found = await around(taking, made.path, lambda: (made.path / "x").write_text("y"))
    assert found == {"x": (b"x", b"y")}


async def test_a_linked_work_tree(taking: Snapshots, repository: Repository, tmp_path: Path) -> None:
    side = tmp_path.resolve() / "side"
    repository.git("worktree", "add", "-qb", "side", str(side))
    found = await around(taking, side, lambda: (side / "a.txt").write_text("two\n"))
    assert (found, found.is_complete) == ({"a.txt": (b"one\n", b"two\n")}, True)


async def test_inside_of_a_submodule_and_above_it(taking: Snapshots, repository: Repository, tmp_path: Path) -> None:
    outer = Repository(tmp_path.resolve() / "outer")
    outer.git("init", "-qb", "main")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repository.path), "sub")
    outer.git("commit", "-qm", "A submodule")
    sub = outer.path / "sub"
    found = await around(taking, sub, lambda: (sub / "a.txt").write_text("two\n"))
    assert found == {"a.txt": (b"one\n", b"two\n")}
    found = await around(taking, outer.path, lambda: (sub / "a.txt").write_text("six\n"))
    assert (found, found.is_complete) == ({}, False), "git does not look into it, and that is said"


async def test_a_repository_that_lies_in_another(taking: Snapshots, repository: Repository) -> None:
    inner = Repository(repository.path / "inner")
    inner.git("init", "-qb", "main")
    (inner.path / "x").write_text("")
    found = await around(taking, repository.path, lambda: (repository.path / "new").write_text(""))
    assert (list(found), found.is_complete) == (["new"], False)


@pytest.mark.parametrize("version", ["2", "3", "4"])
async def test_every_version_of_an_index(taking: Snapshots, repository: Repository, version: str) -> None:
    names = [f"dir{number % 7}/file{number}.txt" for number in range(50)] + ["x" * 200, "d/" + "y" * 100]
    for name in names:
        (repository.path / name).parent.mkdir(exist_ok=True)
        (repository.path / name).write_text(f"{name}\n")
    repository.git("add", "-A")
    repository.git("update-index", "--index-version", version)
    (repository.path / "later").write_text("")
    repository.git("add", "--intent-to-add", "later")

    def command() -> None:
        for name in names:
            (repository.path / name).write_text("changed\n")

    found = await around(taking, repository.path, command)
    assert found == {name: (f"{name}\n".encode(), b"changed\n") for name in names}


async def test_a_repository_with_longer_ids(taking: Snapshots, tmp_path: Path) -> None:
    made = Repository(tmp_path / "p")
    made.git("init", "-qb", "main", "--object-format=sha256")
    made.commit("a", "1", "With 256 bits")
    assert await around(taking, made.path, lambda: (made.path / "a").write_text("2")) == {"a": (b"1", b"2")}


async def test_packed_objects_and_a_shallow_clone(taking: Snapshots, repository: Repository, tmp_path: Path) -> None:
    repository.git("gc", "-q")
    shallow = Repository(tmp_path / "shallow")
    shallow.git("clone", "-q", "--depth", "1", f"file://{repository.path}", ".")
    for made in (repository, shallow):
        found = await around(taking, made.path, functools.partial((made.path / "a.txt").write_text, "2"))
        assert found == {"a.txt": (b"one\n", b"2")}


async def test_an_index_in_two_files_is_not_guessed_at(taking: Snapshots, repository: Repository) -> None:
    repository.git("update-index", "--split-index")
    found = await around(taking, repository.path, lambda: (repository.path / "a.txt").write_text("2"))
    assert not found.is_complete


async def test_without_git_the_directory_is_walked(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "plain"
    for name in ("a", "a.b/c", "a-b", "sub/x", "node_modules/m", ".git/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("old") if name != "a" else None
    (root / "loop").symlink_to(root)
    taking = Snapshots(tmp_path / "kept", {"PATH": str(tmp_path)}, ignored=["node_modules"])
    assert list((await taking.take(root)).loose) == [b"a-b", b"a.b/c", b"loop", b"sub/x"]

    def command() -> None:
        for name in ("sub/x", "sub/new", "node_modules/m", ".git/x"):
            (root / name).write_text("new")
        (root / "a-b").unlink()

    found = await around(taking, root, command)
    assert found == {"a-b": (b"old", None), "sub/new": (None, b"new"), "sub/x": (b"old", b"new")}
    assert found.is_complete


async def test_a_walk_that_finds_too_many_files_compares_those_that_it_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_walk, "FILES", 2)
    taking = Snapshots(tmp_path / "kept", {"PATH": str(tmp_path)})
    root = tmp_path / "plain"
    root.mkdir()
    for name in "abc":
        (root / name).write_text("old")

    def command() -> None:
        for name in "ac":
            (root / name).write_text("new")

    found = await around(taking, root, command)
    assert (found, found.is_complete) == ({"a": (b"old", b"new")}, False)


async def test_git_that_takes_too_long_is_not_waited_for(
    taking: Snapshots, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "SECONDS", 0.0)
    found = await around(taking, repository.path, lambda: (repository.path / "a.txt").write_text("2"))
    assert (found, found.is_complete) == ({}, False)


async def test_a_cut_that_only_one_of_two_snapshots_has_makes_no_changes_up(
    taking: Snapshots, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "bcdefg":
        (repository.path / name).write_text("old")
    with monkeypatch.context() as then:
        then.setattr(snapshot_git, "FILES", 3)
        before = await taking.take(repository.path)
    for name in ("b", "f"):
        (repository.path / name).write_text("new")
    found = await compared(taking, before, await taking.take(repository.path, before))
    assert (found, found.is_complete) == ({"b": (b"old", b"new")}, False)
