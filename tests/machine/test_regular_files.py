"""Only regular files are opened, whatever else stands in their place, and nothing is waited for."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from covey.machine.regular import NotRegular, open_regular, read_regular


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    return path


def test_a_file_is_read_up_to_the_limit_and_its_size_is_returned(file: Path) -> None:
    assert read_regular(file, 100) == (b"content", 7)
    assert read_regular(str(file), 3) == (b"con", 7)


@pytest.mark.parametrize("look_first", [True, False])
@pytest.mark.parametrize("kind", ["fifo", "directory", "link", "device", "nothing", "nul", "socket", "below_a_file"])
def test_nothing_else_is_read_or_waited_for(tmp_path: Path, file: Path, kind: str, look_first: bool) -> None:
    path = tmp_path / "other"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case "link":
            path.symlink_to(file)
        case "device":
            path = Path("/dev/null")
        case "nul":
            path = tmp_path / "a\0b"
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
        case "below_a_file":
            path = file / "a"
    assert read_regular(path, 100, look_first=look_first) is None


def test_a_file_that_may_not_be_read_is_none(file: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    file.chmod(0)
    assert read_regular(file, 100) is None


@pytest.mark.parametrize("look_first", [True, False])
def test_a_link_is_followed_only_where_that_is_meant(tmp_path: Path, file: Path, look_first: bool) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    with open_regular(link, follow_links=True, look_first=look_first) as (opened, status):
        assert (opened.read(), status.st_size) == (b"content", 7)
    with pytest.raises((NotRegular, OSError)), open_regular(link, look_first=look_first):
        pass


@pytest.mark.parametrize("look_first", [True, False])
def test_a_directory_is_distinguished_from_other_things(tmp_path: Path, look_first: bool) -> None:
    with pytest.raises(NotRegular) as found, open_regular(tmp_path, look_first=look_first):
        pass
    assert found.value.is_directory
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(NotRegular) as found, open_regular(tmp_path / "fifo", look_first=look_first):
        pass
    assert not found.value.is_directory


def test_who_looks_first_opens_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(os, "open", lambda path, *args, **options: opened.append(path))
    with pytest.raises(NotRegular), open_regular("/dev/null"):
        pass
    assert opened == []


@pytest.mark.parametrize("follow_links", [True, False])
def test_what_takes_the_place_of_a_file_after_the_look_is_not_waited_for(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, follow_links: bool
) -> None:
    os.mkfifo(tmp_path / "fifo")
    real = os.open

    def swapped(path: Path, flags: int, *, dir_fd: int | None = None) -> int:
        os.replace(tmp_path / "fifo", file)
        return real(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(NotRegular), open_regular(file, follow_links=follow_links):
        pass


def test_a_name_is_looked_up_in_an_open_directory(file: Path) -> None:
    directory = os.open(file.parent, os.O_RDONLY)
    try:
        with open_regular("file", dir_fd=directory) as (opened, _):
            assert opened.read() == b"content"
    finally:
        os.close(directory)


def test_no_descriptor_is_left_open(tmp_path: Path, file: Path) -> None:
    before = os.listdir("/dev/fd")
    for path in (file, tmp_path, tmp_path / "none"):
        read_regular(path, 1)
        read_regular(path, 1, look_first=False)
    assert os.listdir("/dev/fd") == before
