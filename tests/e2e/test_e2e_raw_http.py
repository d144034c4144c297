"""Below the requests: bytes that are no HTTP, heads and bodies without end, and many requests in one packet."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import oracle
from tests.support.fake_model import FakeModel
from tests.support.server import Server, Workspace, provider_config, running, until

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with FakeModel() as model, running(tmp_path_factory.mktemp("raw_http"), provider_config(model.url)) as server:
        workspace = server.workspace()
        workspace.session()
        yield workspace


@pytest.fixture
def place(shared: Workspace) -> Iterator[Workspace]:
    """Whatever the test sends: afterwards nothing is recorded, and the server is well."""
    before = oracle.read(shared.server.data_dir)
    yield shared
    assert oracle.read(shared.server.data_dir) == before
    assert shared.server.request("GET", "/v1/health").ok() == {"status": "ok"}


def head(server: Server, method: str, path: str, *lines: str, close: bool = True) -> bytes:
    """The head of a request that would be right, with further lines."""
    known = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {server.token}"]
    return "\r\n".join([*known, *lines, *(["Connection: close"] if close else []), "", ""]).encode("latin-1")


NOT_HTTP = {
    "garbage": b"\x00\x01\x02 garbage\r\n\r\n",
    "a TLS greeting": bytes.fromhex("16030100c8010000c40303") + bytes(50),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an unknown method": b"BREW /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a path that is not ASCII": b"GET /v1/\xff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a bare CR in a header": b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\rb\r\n\r\n",
    "a NUL in a header": b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\0b\r\n\r\n",
}


@pytest.mark.parametrize("name", NOT_HTTP)
def test_r1_what_is_not_http_is_refused(place: Workspace, name: str) -> None:
    assert place.server.raw(NOT_HTTP[name]).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 2", "Transfer-Encoding: chunked"),
        ("Content-Length: 2", "Content-Length: 3"),
        ("Content-Length: -2",),
        ("Content-Length: 99999999999999999999999",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: gzip"),
    ],
)
def test_r1_a_length_that_can_be_read_in_two_ways_is_refused(place: Workspace, lines: tuple[str, ...]) -> None:
    request = head(place.server, "POST", f"{place.path}/sessions", "Content-Type: application/json", *lines)
    assert place.server.raw(request + b"{}").startswith(b"HTTP/1.1 400 ")


def test_r1_a_name_must_be_given_and_only_once(place: Workspace) -> None:
    """I2: what a proxy reads and what we read must be the same."""
    for hosts in (b"", b"Host: evil.example\r\nHost: 127.0.0.1\r\n", b"Host: 127.0.0.1\r\nHost: evil.example\r\n"):
        answer = place.server.raw(b"GET /v1/health HTTP/1.1\r\n" + hosts + b"Connection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert b'"code":"forbidden_host"' in answer


def test_r1_a_body_that_never_ends_is_not_recorded(place: Workspace) -> None:
    streams = place.server.metric("event_streams_open")
    for promise in ("Content-Length: 400", "Transfer-Encoding: chunked"):
        request = head(place.server, "POST", f"{place.path}/sessions", "Content-Type: application/json", promise)
        with socket.create_connection(("127.0.0.1", place.server.port)) as connection:
            connection.sendall(request + b'{"ti')
    assert place.server.metric("event_streams_open") == streams


def test_r1_a_head_that_never_ends_does_not_fill_the_memory(place: Workspace) -> None:
    """Anybody on this machine can connect: what they send before the token is seen is bounded."""
    before = place.server.resident_bytes()
    with socket.create_connection(("127.0.0.1", place.server.port), timeout=20) as connection:
        connection.sendall(b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        sent = 0
        try:
            while sent < 64 * MIB:
                sent += connection.send(b"X: " + b"x" * MIB + b"\r\n")
        except OSError:
            pass
    assert sent < 64 * MIB, f"took {sent} bytes of headers; memory grew by {place.server.resident_bytes() - before}"


def test_r1_a_large_but_sane_head_is_taken(place: Workspace) -> None:
    request = head(place.server, "GET", "/v1/version", *(f"X-{n}: {'y' * 100}" for n in range(100)))
    assert place.server.raw(request).startswith(b"HTTP/1.1 200 ")


def test_r1_many_requests_in_one_packet_are_answered_in_order(place: Workspace) -> None:
    server = place.server
    paths = ["/v1/health", "/nowhere", "/v1/version", f"{place.path}/sessions", "/v1/health"]
    requests = [head(server, "GET", path, close=number == 4) for number, path in enumerate(paths)]
    answer = server.raw(b"".join(requests))
    statuses = [piece[:3] for piece in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"404", b"200", b"200", b"200"]


def test_r2_a_prompt_and_its_cancel_in_one_packet(server: Server, workspace: Workspace, model: FakeModel) -> None:
    """Both are answered, and the run has one end, whichever was handled first."""
    session = workspace.session()
    stream = workspace.stream()
    body = json.dumps({"session_id": session, "prompt": "hello", "run_id": "r1"}).encode()
    json_body = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    prompt = head(server, "POST", f"{workspace.path}/agent", *json_body, close=False) + body
    cancel = head(server, "POST", f"{workspace.path}/agent/sessions/{session}/cancel")
    answer = server.raw(prompt + cancel)
    assert answer.count(b"HTTP/1.1 202 ") == answer.count(b"HTTP/1.1 200 ") == 1
    terminal = stream.terminal("r1")
    assert ("cancelled" in terminal) == (b'"covered":[{' in answer)
    assert len(workspace.messages(session)) == 2


def test_r2_a_client_that_half_closes_after_its_prompt(server: Server, workspace: Workspace) -> None:
    session = workspace.session()
    body = json.dumps({"session_id": session, "prompt": "hello", "run_id": "r1"}).encode()
    json_body = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    with server.blocked_store(), socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(head(server, "POST", f"{workspace.path}/agent", *json_body) + body)
        connection.shutdown(socket.SHUT_WR)
        until(lambda: server.open_runs("accepted") == 1)
    assert workspace.ended("r1")["state"] == "completed"


def test_r1_an_expected_continue_is_given(workspace: Workspace) -> None:
    lines = ("Content-Type: application/json", "Expect: 100-continue", "Content-Length: 2")
    answer = workspace.server.raw(head(workspace.server, "POST", f"{workspace.path}/sessions", *lines) + b"{}")
    assert answer.startswith(b"HTTP/1.1 100 ")
    assert b"HTTP/1.1 200 " in answer


def test_r1_a_head_request_is_answered_without_a_body(place: Workspace) -> None:
    answer = place.server.raw(head(place.server, "HEAD", "/v1/version"))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"\r\n\r\n")


def test_silent_connections_do_not_use_up_the_files_of_a_server(tmp_path: Path, model: FakeModel) -> None:
    """Without a token: anybody on this machine can connect."""
    server = Server(tmp_path, provider_config(model.url))
    server.wrapper = ("sh", "-c", 'ulimit -n 64; exec "$@"', "sh")
    with contextlib.ExitStack() as stack:
        stack.callback(server.close)
        server.start()
        for number in range(200):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            connection.sendall((b"", b"GET /v1/he", b"POST /v1/control HTTP/1.1\r\nHost: 127.0.0.1\r\n")[number % 3])
        workspace = server.workspace()
        run = workspace.ended(workspace.prompt(workspace.session(), "hello")["run_id"])
        assert run["state"] == "completed"
        assert server.descriptors() < 64
        workspace.close()
        server.finish()


def test_a_body_of_another_type_is_refused_where_none_is_needed(place: Workspace) -> None:
    request = head(place.server, "POST", f"{place.path}/agent/update", "Content-Type: text/plain", "Content-Length: 2")
    assert place.server.raw(request + b"hi").startswith(b"HTTP/1.1 415 ")


def test_an_absolute_address_names_us_or_nobody(place: Workspace) -> None:
    for target, status in (("http://127.0.0.1/v1/health", b"200"), ("http://evil.example/v1/health", b"400")):
        assert place.server.raw(head(place.server, "GET", target)).startswith(b"HTTP/1.1 " + status)
