"""I: who may speak to the server, and what must not get out of it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from covey.protocol.paths import token_file
from covey.server.listener import CannotServe
from covey.server.token import find_token
from tests.peer_failures.conftest import NewRunId, ask, bash
from tests.support.server import Server, Workspace


@pytest.mark.parametrize(("origin", "status"), [("http://evil.example", 403), ("", 415)])
def test_i1_a_page_that_posts_plain_text_changes_nothing(
    workspace: Workspace, new_run_id: NewRunId, origin: str, status: int
) -> None:
    """A browser sends text/plain without asking first. Not even with the token is it taken."""
    session, run_id = workspace.session(), new_run_id()
    headers = {"Content-Type": "text/plain", "Origin": origin}
    body = {"session_id": session, "prompt": "hello", "run_id": run_id}
    assert workspace.request("POST", "/agent", body, headers=headers).status == status
    workspace.request("GET", f"/runs/{run_id}").refused(404, "run_not_found")
    assert workspace.messages(session) == []


@pytest.mark.parametrize("token", [True, False])
def test_i2_another_host_is_refused_before_anything_else(server: Server, workspace: Workspace, token: bool) -> None:
    headers = {"Host": "evil.example"} if token else {"Host": "evil.example", "Authorization": ""}
    events = f"{workspace.path}/events?client_id={workspace.client_id}"
    for method, path in (("GET", "/v1/health"), ("GET", events), ("GET", "/nowhere"), ("POST", "/v1/control")):
        server.request(method, path, headers=headers).refused(403, "forbidden_host")


def test_i3_there_is_no_server_on_tcp_without_a_token(tmp_path: Path) -> None:
    """Where none is given, one is made. So there is nothing that an address would have to be refused for."""
    made = find_token(tmp_path, None, {"COVEY_TOKEN": " "})
    assert len(made) > 30
    assert stat.S_IMODE(token_file(tmp_path).stat().st_mode) == 0o600
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(CannotServe, match="empty"):
        find_token(tmp_path, tmp_path / "empty", {})


def test_i4_the_token_is_in_no_url_no_log_and_no_event(
    server: Server, workspace: Workspace, new_run_id: NewRunId
) -> None:
    run_id, token = new_run_id(), server.token
    workspace.prompt(
        workspace.session(), ask("hello", bash("env; tr '\\0' '\\n' < /proc/$PPID/cmdline")), run_id=run_id
    )
    stream = workspace.stream()
    workspace.cancel_run(run_id)
    workspace.ended(run_id)
    server.request("GET", f"/v1/workspaces?token={token}", headers={"Authorization": ""}).refused(401, "unauthorized")
    files = [file for file in server.data_dir.rglob("*") if file.is_file() and file.name != "token"]
    stored = b"".join(file.read_bytes() for file in files)
    assert token.encode() not in stored
    assert token.encode() not in bytes(stream.raw)
    assert token not in server.log()
