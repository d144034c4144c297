"""Where client and server meet, and how they know that they are of the same build."""

from __future__ import annotations

import os
from pathlib import Path
from pwd import getpwuid

import pytest

from covey.protocol.build import build_id_of, commit_of, current_build
from covey.protocol.paths import (
    SOCKET_PATH_MAX_BYTES,
    Address,
    BadAddress,
    UnsafeDirectory,
    default_data_dir,
    default_socket,
    is_private,
    make_private,
    token_file,
)

UID = os.getuid()


@pytest.mark.parametrize(
    ("text", "address", "url"),
    [
        ("unix:///run/a.sock", Address(path="/run/a.sock"), "http://localhost"),
        ("tcp://127.0.0.1:8790", Address(host="127.0.0.1", port=8790), "http://127.0.0.1:8790"),
        ("http://127.0.0.1:8790/", Address(host="127.0.0.1", port=8790), "http://127.0.0.1:8790"),
        ("tcp://[::1]:80", Address(host="::1", port=80), "http://[::1]:80"),
        ("tcp://localhost:0", Address(host="localhost", port=0), "http://localhost:0"),
    ],
)
def test_addresses(text: str, address: Address, url: str) -> None:
    assert Address.parse(text) == address
    assert address.url == url
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize(
    "text",
    ["", "x", "unix://", "tcp://", "tcp://host", "tcp://host:", "tcp://:1", "tcp://h:99999", "tcp://h:1x", "ws://h:1"],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(BadAddress, match=r"unix://PATH or tcp://ADDR:PORT"):
        Address.parse(text)


def test_a_relative_socket_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert Address.parse("unix://a.sock").path == str(tmp_path / "a.sock")


def test_the_data_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_data_dir() == tmp_path / "covey"
    assert token_file(tmp_path) == tmp_path / "token"
    monkeypatch.setenv("HOME", "/home/me")
    for value in ("", "relative/is/ignored"):
        monkeypatch.setenv("XDG_DATA_HOME", value)
        assert default_data_dir() == Path("/home/me/.local/share/covey")


def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing says that the data is elsewhere."""
    monkeypatch.setenv("HOME", getpwuid(UID).pw_dir)
    for name in ("XDG_DATA_HOME", "COVEY_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_another_home_of_the_same_user_has_a_socket_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    at_home(monkeypatch)
    names = [default_socket().name]
    for variable in ("HOME", "XDG_DATA_HOME", "COVEY_DATA_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
        names.append(default_socket().name)
    assert names[0] == f"covey-{UID}.sock"
    assert len(set(names)) == 4


def test_a_data_directory_can_be_named_by_a_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COVEY_DATA_DIR", str(tmp_path))
    assert default_data_dir() == tmp_path


def test_the_socket_is_in_the_runtime_directory_if_that_is_private(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    at_home(monkeypatch)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("TMPDIR", "/t")
    in_temp = Path(f"/t/covey-{UID}/covey-{UID}.sock")
    assert default_socket() == runtime / f"covey-{UID}.sock"
    runtime.chmod(0o755)
    assert default_socket() == in_temp
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "none"))
    assert default_socket() == in_temp
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert default_socket() == in_temp


def test_a_path_that_is_too_long_for_a_socket_is_avoided(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir(mode=0o700)
    at_home(monkeypatch)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    monkeypatch.setenv("TMPDIR", str(deep))
    assert default_socket() == Path(f"/tmp/covey-{UID}/covey-{UID}.sock")
    assert len(os.fsencode(default_socket(tmp_path))) <= SOCKET_PATH_MAX_BYTES


def test_each_data_directory_has_a_socket_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    one, other = default_socket(tmp_path / "one"), default_socket(tmp_path / "other")
    assert len({default_socket(), one, other}) == 3
    assert default_socket(tmp_path / "covey") == default_socket()
    (tmp_path / "link").symlink_to(tmp_path / "one")
    assert default_socket(tmp_path / "link") == one


def test_directories_that_are_private(tmp_path: Path) -> None:
    made = tmp_path / "a" / "b"
    make_private(made)
    make_private(made)
    assert is_private(made)
    made.chmod(0o710)
    with pytest.raises(UnsafeDirectory, match="chmod 700"):
        make_private(made)
    made.chmod(0o1777)
    with pytest.raises(UnsafeDirectory, match="Choose another place") as shared:
        make_private(made)
    assert "chmod" not in str(shared.value), "others need a directory that is shared, such as /tmp"
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(UnsafeDirectory):
        make_private(tmp_path / "link")
    (tmp_path / "file").write_text("")
    with pytest.raises(UnsafeDirectory):
        make_private(tmp_path / "file")


def test_the_build_id_changes_with_every_file(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    source = tmp_path / "inner" / "a.py"
    source.write_text("x = 1")
    os.utime(source, (1, 1))
    first = build_id_of(tmp_path)
    assert build_id_of(tmp_path) == first
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_text("compiled")
    assert build_id_of(tmp_path) == first
    os.utime(source, (2, 2))
    touched = build_id_of(tmp_path)
    (tmp_path / "b.md").write_text("more")
    assert len({first, touched, build_id_of(tmp_path)}) == 3


def test_the_commit_of_a_checkout(tmp_path: Path) -> None:
    assert commit_of(tmp_path) == ""
    heads = tmp_path / ".git" / "refs" / "heads"
    heads.mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert commit_of(tmp_path) == ""
    (heads / "main").write_text("0123456789abcdef0123456789abcdef01234567\n")
    assert commit_of(tmp_path) == "0123456789ab"
    (tmp_path / ".git" / "HEAD").write_text("fedcba9876543210fedcba9876543210fedcba98\n")
    assert commit_of(tmp_path) == "fedcba987654"


def test_the_current_build() -> None:
    build = current_build()
    assert build.version
    assert len(build.build_id) == 12
