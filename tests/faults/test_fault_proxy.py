"""The bad network itself: each fault does what it says, at the byte it says. Else all tests behind it prove nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.support.fault_proxy import FaultProxy, Plan, Way
from tests.support.machine import refusing_port

TEXT = bytes(range(256)) * 40


@contextlib.contextmanager
def connected(plan: Plan) -> Iterator[tuple[FaultProxy, socket.socket, socket.socket]]:
    """A proxy, and both ends of a connection through it; the client has said `hello`."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        FaultProxy(listener.getsockname()[1], lambda link: plan) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as client,
    ):
        client.sendall(b"hello")
        server, _ = listener.accept()
        server.settimeout(30)
        with server:
            yield proxy, client, server


def exactly(count: int, connection: socket.socket) -> bytes:
    data = b""
    while len(data) < count and (more := connection.recv(count - len(data))):
        data += more
    return data


def all_of(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(4096), b""))


def test_without_a_fault_everything_arrives_in_both_directions() -> None:
    with connected(Plan(up=Way(piece=1), down=Way(piece=100, delay_s=0.0001))) as (proxy, client, server):
        assert exactly(5, server) == b"hello"
        server.sendall(TEXT)
        server.shutdown(socket.SHUT_WR)
        assert all_of(client) == TEXT
        client.sendall(b"bye")
        client.close()
        assert all_of(server) == b"bye"
        (link,) = proxy.links
        assert (link.head, link.up, link.down, link.struck) == (b"hello", 8, len(TEXT), False)


@pytest.mark.parametrize("after", [0, 1, 5000, len(TEXT)])
def test_a_cut_ends_both_sides_at_its_byte(after: int) -> None:
    with connected(Plan(down=Way(after=after, fault="cut"))) as (proxy, client, server):
        with contextlib.suppress(ConnectionError):
            server.sendall(TEXT)
        assert all_of(client) == TEXT[:after]
        with contextlib.suppress(ConnectionError):  # it has not read all that came, so the kernel may say RST
            all_of(server)
        assert proxy.struck == 1


def test_a_reset_is_reported_as_one() -> None:
    with connected(Plan(down=Way(after=10, fault="reset"))) as (proxy, client, server):
        server.sendall(TEXT[:10])
        proxy.wait_for(lambda: proxy.struck == 1)
        with pytest.raises(ConnectionResetError):
            all_of(client)


def test_after_a_half_close_the_other_direction_lives() -> None:
    with connected(Plan(down=Way(after=10, fault="half_close"))) as (_, client, server):
        server.sendall(TEXT)
        assert all_of(client) == TEXT[:10]
        client.sendall(b" and more")
        assert exactly(14, server) == b"hello and more"


def test_a_stalled_connection_stays_open_and_says_nothing() -> None:
    with connected(Plan(down=Way(after=10, fault="stall"))) as (proxy, client, server):
        server.sendall(TEXT)
        assert client.recv(100) == TEXT[:10]
        proxy.wait_for(lambda: proxy.struck == 1)
        client.sendall(b" and more")
        assert exactly(14, server) == b"hello and more"
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.recv(1)
        client.close()
        with contextlib.suppress(ConnectionError):
            assert all_of(server) == b"", "who stalls is informed when the other one leaves"


def test_garbage_is_put_in_between() -> None:
    with connected(Plan(up=Way(after=3, fault="garbage", garbage=b"###"))) as (_, client, server):
        client.shutdown(socket.SHUT_WR)
        assert all_of(server) == b"hel###lo"


def test_a_server_that_is_not_there_hangs_up() -> None:
    with (
        refusing_port() as port,
        FaultProxy(port) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as client,
    ):
        client.sendall(b"hello")
        with contextlib.suppress(ConnectionError):
            assert all_of(client) == b""
        assert not proxy.links


def test_it_stops_with_connections_open_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with connected(Plan(down=Way(fault="stall"))) as (proxy, _, server):
        assert exactly(5, server) == b"hello"
        proxy.wait_for(lambda: len(proxy.links) == 1)
    assert set(threading.enumerate()) <= before
