"""A body that is too large gets its 413, also if its sender reads nothing before all of it is sent."""

from __future__ import annotations

import socket

import pytest

from covey.protocol.requests import MAX_BODY_BYTES
from tests.support.server import Server, Workspace

pytestmark = pytest.mark.borrows_server

CHUNK = b"x" * 1024 * 1024


def answer_to(server: Server, path: str, framing: str, *, chunked: bool, connection: str) -> bytes:
    """Send 40 MB with a blocking socket, and only then read."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n{framing}\r\n"
    head += f"Connection: {connection}\r\nContent-Type: application/json\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sender:
        sender.sendall(head.encode())
        for _ in range(40):
            sender.sendall(b"%x\r\n%s\r\n" % (len(CHUNK), CHUNK) if chunked else CHUNK)
        if chunked:
            sender.sendall(b"0\r\n\r\n")
        return b"".join(iter(lambda: sender.recv(65536), b""))


@pytest.mark.parametrize("connection", ["close", "keep-alive"])
@pytest.mark.parametrize("chunked", [False, True], ids=["with_its_length", "in_chunks"])
def test_a_sender_that_reads_nothing_before_it_has_sent_all_gets_its_413(
    server: Server, workspace: Workspace, chunked: bool, connection: str
) -> None:
    assert 40 * len(CHUNK) > MAX_BODY_BYTES
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {40 * len(CHUNK)}"
    answer = answer_to(server, f"{workspace.path}/agent", framing, chunked=chunked, connection=connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 "), head
    assert b"body_too_large" in body
    assert answer.count(b"HTTP/1.1") == 1
    assert server.request("GET", "/v1/health").status == 200
