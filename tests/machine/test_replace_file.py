"""A file is replaced in one step, with the mode that it should have, and nothing is left beside it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.machine.replace import copy_owner_and_mode, create_new, name_beside, replace_file


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_new_file_has_the_mode_that_is_asked_for_or_that_of_the_umask(tmp_path: Path) -> None:
    replace_file(tmp_path / "open", b"1")
    replace_file(tmp_path / "private", b"2", mode=0o600)
    assert (mode_of(tmp_path / "open"), mode_of(tmp_path / "private")) == (0o644, 0o600)
    assert (tmp_path / "private").read_bytes() == b"2"


@pytest.mark.parametrize("mode", [None, 0o600])
def test_the_mode_of_the_old_file_stays(tmp_path: Path, mode: int | None) -> None:
    path = tmp_path / "script"
    path.write_bytes(b"old")
    path.chmod(0o4751)
    replace_file(path, b"new", mode=mode)
    assert (path.read_bytes(), mode_of(path)) == (b"new", 0o4751)


def test_the_mode_of_the_old_file_goes_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_bytes(b"old")
    path.chmod(0o644)
    replace_file(path, b"new", mode=0o600, keep_mode=False)
    assert mode_of(path) == 0o600


def test_the_status_is_that_of_the_file_in_place(tmp_path: Path) -> None:
    status = replace_file(tmp_path / "file", b"content")
    found = (tmp_path / "file").stat()
    assert (status.st_ino, status.st_size, status.st_mtime_ns) == (found.st_ino, 7, found.st_mtime_ns)


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"theirs")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    replace_file(tmp_path / "link", b"ours")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"theirs"


@pytest.mark.parametrize("failing", ["replace", "fsync", "fchmod"])
def test_a_failure_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(KeyboardInterrupt):
        replace_file(path, b"new", sync=True)
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("sync", [True, False])
def test_content_and_mode_are_on_the_disk_before_the_rename_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: bool
) -> None:
    calls: list[str] = []
    for name in ("fchmod", "fsync", "replace"):
        monkeypatch.setattr(os, name, lambda *_, name=name: calls.append(name))
    replace_file(tmp_path / "file", b"content", mode=0o600, sync=sync)
    assert calls == (["fchmod", "fsync", "replace"] if sync else ["fchmod", "replace"])


def test_a_new_file_never_takes_the_place_of_another_or_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"theirs")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link"):
        with pytest.raises(FileExistsError):
            create_new(tmp_path / name)
    assert (tmp_path / "file").read_bytes() == b"theirs"
    assert not (tmp_path / "nowhere").exists()


def test_names_beside_a_file_are_in_its_directory_and_differ(tmp_path: Path) -> None:
    one, other = name_beside(tmp_path / "file"), name_beside(tmp_path / "file")
    assert one != other
    assert one.parent == other.parent == tmp_path


def test_the_mode_is_that_of_the_link_or_of_its_target_as_asked_for(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"")
    (tmp_path / "target").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        with create_new("new", dir_fd=directory) as file:
            copy_owner_and_mode("link", file.fileno(), dir_fd=directory)
            assert mode_of(tmp_path / "new") == 0o640
            copy_owner_and_mode("link", file.fileno(), follow_links=False, dir_fd=directory)
            assert mode_of(tmp_path / "new") == mode_of(tmp_path / "link")
            copy_owner_and_mode("gone", file.fileno(), mode=0o604, dir_fd=directory)
            copy_owner_and_mode("gone", file.fileno(), dir_fd=directory)
            assert mode_of(tmp_path / "new") == 0o604
    finally:
        os.close(directory)
