"""The server as a process: where it listens, what it prints, who may own the data, and what it says about itself."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_model import FakeModel
from tests.support.server import Server, Workspace, provider_config, running


def on_socket(path: Path, method: str, target: str, body: Any = None) -> tuple[int, Any]:
    """One request on a unix socket, without a token."""
    connection = http.client.HTTPConnection("localhost", timeout=30)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    with contextlib.closing(connection):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, target, json.dumps(body) if body is not None else None, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"null")


@pytest.fixture
def local(tmp_path: Path, model: FakeModel) -> Iterator[Server]:
    """A server on a unix socket."""
    server = Server(tmp_path, provider_config(model.url))
    server.host = f"unix://{tmp_path}/run/covey.sock"
    try:
        server.start()
        yield server
        server.finish()
    finally:
        server.close()


def test_r1_a_unix_socket_needs_no_token_and_is_for_its_user_alone(local: Server) -> None:
    path = local.directory / "run" / "covey.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    client_id = str(uuid.uuid4())
    status, found = on_socket(path, "POST", "/v1/workspaces", {"path": str(local.project), "client_id": client_id})
    assert status == 200
    workspace = f"/v1/workspaces/{found['id']}"
    _, session = on_socket(path, "POST", f"{workspace}/sessions", {})
    status, run = on_socket(path, "POST", f"{workspace}/agent", {"session_id": session["id"], "prompt": "hello"})
    assert status == 202
    _, ended = on_socket(path, "GET", f"{workspace}/runs/{run['run_id']}?wait=30")
    assert ended["state"] == "completed"
    assert local.stop() == 0
    assert not path.exists()


def test_r15_a_socket_that_a_kill_left_behind_is_taken_over(local: Server) -> None:
    path = local.directory / "run" / "covey.sock"
    local.kill()
    assert path.exists()
    local.start()
    assert on_socket(path, "GET", "/v1/health") == (200, {"status": "ok"})


def test_r1_exactly_one_line_is_printed_and_no_secret(server: Server, workspace: Workspace) -> None:
    workspace.ended(workspace.prompt(workspace.session(), "hello")["run_id"])
    token, process = server.token, server.process
    server.request("GET", "/v1/version", headers={"Authorization": f"Bearer {token}x"})
    assert process is not None
    assert process.stdout is not None
    server.signal(signal.SIGTERM)
    assert process.stdout.read() == b""
    assert server.wait() == 0
    assert token not in server.log()
    assert stat.S_IMODE((server.data_dir / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE(server.data_dir.stat().st_mode) == 0o700


def test_r1_the_token_is_kept_across_restarts(server: Server) -> None:
    token = server.token
    server.stop()
    server.start()
    assert server.token == token
    assert server.request("GET", "/v1/version").status == 200


def test_r1_a_token_may_come_from_a_file(tmp_path: Path, model: FakeModel) -> None:
    file = tmp_path / "secret"
    file.write_text("my very own token\n")
    with running(tmp_path, provider_config(model.url), options=("--token-file", str(file))) as server:
        assert not (server.data_dir / "token").exists()
        (server.data_dir / "token").write_text("my very own token")
        assert server.request("GET", "/v1/version").status == 200
        wrong = {"Authorization": "Bearer another"}
        server.request("GET", "/v1/version", headers=wrong).refused(401, "unauthorized")


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("tcp://127.0.0.1:99999", "is not an address"),
        ("ftp://x", "is not an address"),
        ("tcp://192.0.2.1:0", "cannot listen"),
    ],
)
def test_r1_an_address_that_cannot_be_used_is_said_so(tmp_path: Path, model: FakeModel, host: str, told: str) -> None:
    server = Server(tmp_path, provider_config(model.url))
    server.host = host
    with pytest.raises(AssertionError):
        server.start()
    assert server.wait() in (1, 2)
    assert told in server.log()
    assert "Traceback" not in server.log()
    server.close()


def test_r1_a_configuration_with_a_mistake_is_said_so_at_the_start(tmp_path: Path) -> None:
    server = Server(tmp_path, "[models]\nlarg = 'x'")
    with pytest.raises(AssertionError):
        server.start()
    assert server.wait() == 1
    assert "larg" in server.log()
    assert "Traceback" not in server.log()
    server.close()


def test_r1_the_server_describes_itself(server: Server, workspace: Workspace) -> None:
    version = server.request("GET", "/v1/version").ok()
    assert set(version) == {"version", "commit", "build_id", "python_version", "platform", "page"}
    document = server.request("GET", "/openapi.json").ok()
    assert document["openapi"].startswith("3.")
    for path in ("/v1/workspaces/{id}/agent", "/v1/workspaces/{id}/events", "/v1/workspaces/{id}/runs/{run_id}/cancel"):
        assert path in document["paths"]
    workspace.ended(workspace.prompt(workspace.session(), "hello")["run_id"])
    assert server.metric("prompts_accepted_total") == 1
    assert server.metric("runs_ended_completed_total") == 1


def test_r17_two_paths_to_one_directory_are_one_workspace(server: Server, tmp_path: Path) -> None:
    link = tmp_path / "link"
    os.symlink(server.project, link)
    one, two = server.workspace(), server.workspace(link)
    other = server.workspace(tmp_path)
    assert one.id == two.id != other.id
    session = one.session()
    assert [found["id"] for found in two.get("/sessions")] == [session]
    assert other.get("/sessions") == []
    other.request("GET", f"/sessions/{session}").refused(404, "session_not_found")
    run_id = one.prompt(session, "hello", run_id="r1")["run_id"]
    two.ended(run_id)
    other.request("GET", f"/runs/{run_id}").refused(404, "run_not_found")
    other.prompt(other.session(), "hello", run_id="r1")
    assert other.ended("r1")["state"] == "completed"


def test_the_token_stays_with_its_owner(tmp_path: Path, model: FakeModel) -> None:
    with running(tmp_path, provider_config(model.url)) as server:
        kept = server.data_dir / "token"
        server.stop()
        kept.chmod(0o644)
        server.start()
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        server.stop()
        named = tmp_path / "named"
        named.write_text(server.token)
        named.chmod(0o644)
        server.options = ("--token-file", str(named))
        server.start()
        assert f"others on this machine may use the token file {named}" in server.log()
