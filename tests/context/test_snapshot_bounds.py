"""For a snapshot nothing of the project runs, nothing is written into it, and bounded work is done."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from covey.context import snapshot_contents, snapshot_git, snapshots, stand_in
from covey.context.snapshot import SeenFile
from covey.context.snapshots import Snapshots
from tests.context.around import around, changes_of, compared
from tests.context.taking import patience, repository, taking
from tests.context.test_git_state import ENV, Repository, hostile, plain_git

__all__ = ["patience", "repository", "taking"]
pytestmark = pytest.mark.anyio


# ── what git converts ──


async def test_a_file_whose_line_ends_git_converts_is_not_restored_wrongly(
    taking: Snapshots, repository: Repository
) -> None:
    (repository.path / ".gitattributes").write_text("*.txt text eol=crlf\n*.lf text=auto\n")
    (repository.path / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    (repository.path / "plain.lf").write_bytes(b"one\ntwo\n")
    repository.git("add", "-A")
    repository.git("commit", "-qm", "Line ends")

    def command() -> None:
        (repository.path / "crlf.txt").write_bytes(b"changed\r\n")
        (repository.path / "plain.lf").write_bytes(b"changed\n")

    found = await around(taking, repository.path, command)
    assert found["crlf.txt"] == (None, b"changed\r\n"), "what git has of it is not what was there"
    assert found["plain.lf"] == (b"one\ntwo\n", b"changed\n")


async def test_no_filter_runs_and_what_one_made_is_not_taken_for_the_file(
    taking: Snapshots, repository: Repository, tmp_path: Path
) -> None:
    """A filter that keeps the size: only the attribute tells that git has something else."""
    repository.git("config", "filter.shout.clean", "tr a-z A-Z")
    (repository.path / ".gitattributes").write_text("*.secret filter=shout\n")
    (repository.path / "x.secret").write_text("quiet\n")
    os.utime(repository.path / "x.secret", (5, 5))  # long ago: git need not look at its content again
    repository.git("add", "-A")
    repository.git("commit", "-qm", "Filtered")
    marker = tmp_path / "ran"
    repository.git("config", "filter.shout.clean", f"touch {marker}; cat")
    found = await around(taking, repository.path, lambda: (repository.path / "x.secret").write_text("other\n"))
    assert found == {"x.secret": (None, b"other\n")}
    assert not marker.exists()
    plain_git(repository, "add", "x.secret")
    assert marker.exists(), "without our care it does run: the trap is a real one"


# ── nothing runs, and nothing is written ──


async def test_a_hostile_repository_runs_nothing(taking: Snapshots, repository: Repository, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    hostile(repository, marker)
    found = await around(taking, repository.path, lambda: (repository.path / "a.txt").write_text("two\n"))
    assert "a.txt" in found
    assert not marker.exists(), marker.read_text()
    plain_git(repository, "status")
    assert "run.sh" in marker.read_text()


async def test_a_submodule_runs_nothing(taking: Snapshots, repository: Repository, tmp_path: Path) -> None:
    outer = Repository(tmp_path.resolve() / "outer")
    outer.git("init", "-qb", "main")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repository.path), "sub")
    outer.git("commit", "-qm", "A submodule")
    marker = tmp_path / "ran"
    (outer.path / "run.sh").write_text(f"#!/bin/sh\ntouch {marker}\n")
    (outer.path / "run.sh").chmod(0o755)
    subprocess.run(["git", "config", "core.fsmonitor", str(outer.path / "run.sh")], cwd=outer.path / "sub", check=True)
    await around(taking, outer.path, lambda: (outer.path / "sub" / "a.txt").write_text("two\n"))
    assert not marker.exists()
    plain_git(outer, "status")
    assert marker.exists()


async def test_nothing_is_written_into_the_project_or_its_repository(taking: Snapshots, repository: Repository) -> None:
    (repository.path / "new").write_text("x")
    os.utime(repository.path / "a.txt", (1, 1))

    def everything() -> list[tuple[str, bytes]]:
        paths = sorted(path for path in repository.path.rglob("*") if path.is_file())
        return [(str(path), path.read_bytes()) for path in paths]

    before = everything()
    assert await around(taking, repository.path, lambda: None) == {}
    assert everything() == before


async def test_what_would_wait_for_ever_is_not_opened(taking: Snapshots, repository: Repository) -> None:
    def command() -> None:
        (repository.path / "a.txt").unlink()
        os.mkfifo(repository.path / "a.txt")

    found = await around(taking, repository.path, command)
    assert found == {"a.txt": (b"one\n", None)}


# ── bounds ──


async def test_a_large_file_is_known_to_have_changed_but_is_not_kept(
    taking: Snapshots, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "FILE_BYTES", 10)
    monkeypatch.setattr(snapshot_git, "FILE_BYTES", 10)
    repository.commit("big", "x" * 20, "Large")
    (repository.path / "new").write_text("x" * 20)
    (repository.path / "still").write_text("x" * 20)

    def command() -> None:
        (repository.path / "big").write_text("y" * 20)
        (repository.path / "new").write_text("y" * 20)

    found = await changes_of(taking, repository.path, command)
    assert sorted(found) == ["big", "new"]
    assert found["new"].before == SeenFile(0o100644, None, 20, is_kept=False)


async def test_contents_are_kept_up_to_a_bound_and_those_that_nobody_needs_go(
    taking: Snapshots, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_contents, "KEPT_BYTES", 25)
    for name in "bcd":
        (repository.path / name).write_text(name * 10)
    first = await taking.take(repository.path)
    kept = [loose.version.is_kept for _, loose in sorted(first.loose.items()) if loose.version]
    assert kept == [True, True, False]
    for name in "bcd":
        (repository.path / name).write_text("")
    second = await taking.take(repository.path, first)
    found = await compared(taking, first, second)
    assert found == {"b": (b"b" * 10, b""), "c": (b"c" * 10, b""), "d": (None, b"")}
    await taking.take(repository.path, second)
    assert len(os.listdir(tmp_path / "kept" / "contents")) == 1, "only the empty one is needed now"
    assert len(list((tmp_path / "kept").glob("index-*"))) == 2


async def test_more_changes_than_the_bound_are_cut_and_that_is_said(
    taking: Snapshots, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "CHANGES", 3)

    def command() -> None:
        for number in range(5):
            (repository.path / f"new{number}").write_text("")

    found = await around(taking, repository.path, command)
    assert (sorted(found), found.is_complete) == (["new0", "new1", "new2"], False)


async def test_in_a_large_repository_only_what_changed_is_read(
    taking: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Repository(tmp_path.resolve() / "large")
    made.git("init", "-qb", "main")
    for number in range(2_000):
        if number % 20 == 0:
            (made.path / f"d{number // 20}").mkdir()
        (made.path / f"d{number // 20}" / f"f{number}").write_text(f"{number % 100}\n")
    made.git("add", "-A")
    made.git("commit", "-qm", "Many")
    (made.path / "new").write_text("new\n")
    os.utime(made.path / "new", (5, 5))
    read: list[bytes] = []
    asked: list[str] = []
    real_read, real_output = Snapshots._read, stand_in.output

    def reading(self: Snapshots, path: bytes, status: os.stat_result) -> SeenFile:
        read.append(os.path.relpath(path, os.fsencode(made.path)))
        return real_read(self, path, status)

    def asking(command: list[str], *args: object, **options: object) -> object:
        asked.append(next(word for word in command[1:] if "=" not in word and not word.startswith("-")))
        return real_output(command, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Snapshots, "_read", reading)
    monkeypatch.setattr(snapshot_git, "output", asking)
    before = await taking.take(made.path)
    assert read == [b"new"]
    (made.path / "d7" / "f140").write_text("changed\n")
    after = await taking.take(made.path, before)
    found = await compared(taking, before, after)
    assert found == {"d7/f140": (b"40\n", b"changed\n")}
    assert set(read) == {b"new", b"d7/f140"}
    assert asked == ["diff-files", "ls-files"] * 2 + ["check-attr", "cat-file", "cat-file"]


async def test_a_file_that_did_not_change_is_not_read_again(
    taking: Snapshots, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_RACY_NS", -1)
    for name in "bcd":
        (repository.path / name).write_text(name)
    first = await taking.take(repository.path)
    (repository.path / "c").write_text("other")
    read: list[bytes] = []
    real = Snapshots._read

    def reading(self: Snapshots, path: bytes, status: os.stat_result) -> SeenFile:
        read.append(os.path.basename(path))
        return real(self, path, status)

    monkeypatch.setattr(Snapshots, "_read", reading)
    await taking.take(repository.path, first)
    assert read == [b"c"]


async def test_what_an_earlier_server_has_left_is_removed(tmp_path: Path, repository: Repository) -> None:
    left = tmp_path / "kept" / "contents" / "old"
    left.parent.mkdir(parents=True)
    left.write_text("")
    taking = Snapshots(tmp_path / "kept", ENV)
    await taking.take(repository.path)
    assert not left.exists()
    await taking.aclose()


async def test_settings_of_a_repository_are_read_again_when_they_have_changed(
    taking: Snapshots, repository: Repository
) -> None:
    (repository.path / "a.txt").chmod(0o755)
    assert list((await taking.take(repository.path)).loose) == [b"a.txt"]
    repository.git("config", "core.fileMode", "false")
    assert list((await taking.take(repository.path)).loose) == []
