"""A program that somebody has allowed cannot allow everything else: a real server on a socket, and real processes."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from covey.sandbox import probe
from covey.sandbox.plan import Views
from tests.e2e.test_e2e_unasked_commands import asks_for
from tests.support.fake_model import FakeModel
from tests.support.server import Pending, Server, Workspace, provider_config, until

ATTACK = """
import http.client, json, socket, sys

class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect({path!r})

for method, path, body in {requests!r}:
    try:
        connection = Connection("localhost")
        connection.request(method, path, json.dumps(body), {{"Content-Type": "application/json"}})
        answer = connection.getresponse()
        print(answer.status, json.loads(answer.read()).get("code"))
    except OSError as error:
        print("unreachable")
"""


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self._path)


class SocketServer(Server):
    """A server that listens on a socket, as it does by default: whoever can reach it is the user."""

    def begin(self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None) -> Pending:
        connection = _Connection(self.host.removeprefix("unix://"))
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json"} if data else {})
        pending = Pending(connection)
        self._sent.append(pending)
        return pending


@pytest.fixture
def on_socket(tmp_path: Path, model: FakeModel) -> Iterator[SocketServer]:
    server = SocketServer(tmp_path, provider_config(model.url))
    # In the workspace, where a command may change everything else.
    server.project.chmod(0o700)
    server.host = f"unix://{server.project}/covey.sock"
    try:
        server.start()
        yield server
        server.finish()
    finally:
        server.close()


def answered(workspace: Workspace, session: str, **answer: Any) -> str:
    """Allow the one command of a prompt in this way, and give what it printed."""
    run_id = workspace.prompt(session, "go")["run_id"]
    until(lambda: workspace.get("/permissions"))
    (request,) = workspace.get("/permissions")
    body = {"permission": {"id": request["id"]}, "action": "allow", **answer}
    assert workspace.request("POST", "/permissions/grant", body).ok()["resolved"]
    workspace.ended(run_id)
    parts = [part for message in workspace.messages(session) for part in message["parts"]]
    return str([part["data"]["content"] for part in parts if part["type"] == "tool_result"][-1])


@pytest.mark.skipif(probe.probed().views is Views.NONE, reason="the socket is hidden by a view")
def test_s14_an_approved_program_can_neither_reach_the_server_nor_approve_anything(
    on_socket: SocketServer, model: FakeModel
) -> None:
    asks_for(model, "python3 attack.py")
    workspace = on_socket.workspace()
    session = workspace.session()
    requests = [
        ("POST", f"{workspace.path}/permissions/skip", {"skip": True}),
        ("PUT", f"{workspace.path}/sessions/{session}", {"mode": "sandboxed"}),
        ("POST", f"{workspace.path}/agent", {"session_id": session, "prompt": "x", "yolo": True}),
        ("POST", f"{workspace.path}/agent", {"session_id": session, "prompt": "x", "allow": ["bash"]}),
        ("POST", f"{workspace.path}/agent", {"session_id": session, "prompt": "x", "accept_edits": True}),
        ("POST", f"{workspace.path}/agent", {"session_id": session, "prompt": "x", "sandbox": "off"}),
        ("POST", "/v1/workspaces", {"path": str(on_socket.project), "client_id": "evil", "yolo": True}),
    ]
    path = on_socket.host.removeprefix("unix://")
    (on_socket.project / "attack.py").write_text(ATTACK.format(path=path, requests=requests))
    assert answered(workspace, session, network=True).split("\n\n")[0].split("\n") == ["unreachable"] * len(requests)

    asks_for(model, "python3 attack.py")
    other = workspace.session()
    refused = answered(workspace, other, unsandboxed=True)
    assert refused.split("\n\n")[0].split("\n") == ["403 may_not_approve"] * len(requests)
    assert workspace.get("/permissions/skip") == {"skip": False}
    assert "mode" not in workspace.get(f"/sessions/{session}")
    workspace.close()


def test_who_may_approve_changes_the_mode_of_a_session(workspace: Workspace) -> None:
    session = workspace.session()
    changed = workspace.request("PUT", f"/sessions/{session}", {"mode": "accept_edits"}).ok()
    assert changed["mode"] == workspace.get(f"/sessions/{session}")["mode"] == "accept_edits"
    workspace.request("PUT", f"/sessions/{session}", {"mode": "reckless"}).refused(400, "invalid_request")
    assert "mode" not in workspace.request("PUT", f"/sessions/{session}", {"mode": "ask"}).ok()
    workspace.request("PUT", f"/sessions/{session}", {"mode": "plan"}).ok()
    assert "mode" not in workspace.request("PUT", f"/sessions/{session}", {"mode": None}).ok()
