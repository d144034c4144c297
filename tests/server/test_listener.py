"""The file of a unix socket: made again when it is gone, and never taken from whoever serves there now."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.protocol.paths import Address
from covey.server.listener import CannotServe, Listener, listening


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.sock"


@pytest.fixture
def listener(path: Path) -> Iterator[Listener]:
    with listening(Address(path=str(path))) as made:
        yield made


def stranger(path: Path, *, listens: bool) -> socket.socket:
    other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    other.bind(str(path))
    if listens:
        other.listen()
    return other


def connects(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(str(path)) == 0


def test_a_socket_that_is_there_is_left_alone(listener: Listener, path: Path) -> None:
    assert listener.renewed() is None
    assert connects(path)


def test_a_socket_that_was_removed_is_made_again_each_time(listener: Listener, path: Path) -> None:
    for _ in range(2):
        old = listener.socket
        path.unlink()
        made = listener.renewed()
        assert made is listener.socket is not old
        assert connects(path)
        assert path.stat().st_mode & 0o777 == 0o600
        assert listener.renewed() is None
        old.close()


def test_whoever_serves_there_now_keeps_the_place_also_when_we_end(path: Path) -> None:
    with listening(Address(path=str(path))) as listener:
        path.unlink()
        with stranger(path, listens=True):
            assert listener.renewed() is None
            assert listener.renewed() is None
            listener.close()
            assert connects(path)


def test_a_dead_socket_in_its_place_is_replaced_at_the_second_look(listener: Listener, path: Path) -> None:
    path.unlink()
    old = listener.socket
    stranger(path, listens=False).close()
    assert listener.renewed() is None  # it may belong to a server that is just starting
    assert listener.renewed() is listener.socket
    assert connects(path)
    old.close()


def test_another_file_in_its_place_is_never_removed(listener: Listener, path: Path) -> None:
    path.unlink()
    path.write_text("mine")
    assert listener.renewed() is None
    with pytest.raises(CannotServe, match="not a socket"):
        listener.renewed()
    listener.close()
    assert path.read_text() == "mine"


def test_its_file_goes_with_it(path: Path) -> None:
    with listening(Address(path=str(path))):
        assert path.exists()
    assert not path.exists()


def test_a_port_has_no_file_to_look_after() -> None:
    with listening(Address(host="127.0.0.1", port=0)) as listener:
        assert listener.renewed() is None
