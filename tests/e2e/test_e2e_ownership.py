"""The workspace owns its runs, and clients hold the workspace: who may leave, and what that ends (R1, R2, R17)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.support.fake_model import FakeModel, Reply
from tests.support.server import Server, Workspace, outline, provider_config, running, until


@pytest.fixture
def gated(model: FakeModel) -> FakeModel:
    """A model that answers once the gate `go` is open."""
    model.on(lambda request: Reply(gates={0: "go"}))
    return model


def leave(workspace: Workspace) -> None:
    """Close all streams and say goodbye to the workspace."""
    workspace.close()
    workspace.request("DELETE", f"?client_id={workspace.client_id}").ok()


def test_r1_the_202_does_not_wait_for_the_model(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(gates={-1: "never"}))
    session = workspace.session()
    receipt = workspace.prompt(session, "hello", run_id="r1")
    assert (receipt["run_id"], receipt["session_id"], receipt["seq"]) == ("r1", session, 1)
    assert workspace.run("r1")["state"] == "active"
    assert workspace.get("/agent")["is_busy"] is True
    assert workspace.get(f"/agent/sessions/{session}")["is_busy"] is True
    until(lambda: workspace.run("r1").get("waiting_on") == "model")
    workspace.cancel(session)
    workspace.ended("r1")
    until(lambda: workspace.get("/agent")["is_busy"] is False)


def test_scenario_13_the_request_that_prompted_is_dropped(
    server: Server, workspace: Workspace, gated: FakeModel
) -> None:
    session = workspace.session()
    with server.blocked_store():
        workspace.begin_prompt(session, "hello", run_id="r1").abandon()
    gated.wait_for(lambda: len(gated.requests) == 1)
    gated.release("go")
    assert workspace.ended("r1")["state"] == "completed"
    assert outline(workspace.messages(session)) == ["hello", "assistant end_turn"]


def test_scenario_14_who_prompted_leaves_and_another_stays(
    server: Server, workspace: Workspace, gated: FakeModel
) -> None:
    other = server.workspace()
    b = other.stream()
    session = workspace.session()
    workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    gated.wait_for(lambda: len(gated.requests) == 1)
    leave(workspace)
    gated.release("go")
    assert b.terminal("r1")["text"]
    other.close()


def test_scenario_14_everybody_leaves_and_the_run_still_finishes(
    server: Server, workspace: Workspace, gated: FakeModel
) -> None:
    session = workspace.session()
    workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    gated.wait_for(lambda: len(gated.requests) == 1)
    leave(workspace)
    until(lambda: server.metric("event_streams_open") == 0)
    assert server.metric("workspaces_open") == 1
    gated.release("go")
    until(lambda: server.metric("workspaces_open") == 0)
    later = server.workspace()
    assert later.id == workspace.id
    assert later.run("r1")["state"] == "completed"
    assert outline(later.messages(session)) == ["hello", "assistant end_turn"]


def test_r2_all_streams_break_in_the_middle_of_a_run(workspace: Workspace, gated: FakeModel) -> None:
    session = workspace.session()
    streams = [workspace.stream() for _ in range(5)]
    workspace.prompt(session, "hello", run_id="r1")
    gated.wait_for(lambda: len(gated.requests) == 1)
    for stream in streams:
        stream.close()
    gated.release("go")
    assert workspace.ended("r1")["state"] == "completed"


def test_r17_a_workspace_is_released_with_its_last_claim(server: Server, workspace: Workspace) -> None:
    other = server.workspace()
    assert other.id == workspace.id
    session = workspace.session()
    leave(workspace)
    leave(workspace)  # once more is harmless
    assert server.metric("workspaces_open") == 1
    leave(other)
    until(lambda: server.metric("workspaces_open") == 0)
    again = server.workspace()
    assert (again.id, server.metric("workspaces_open")) == (workspace.id, 1)
    assert [found["id"] for found in again.get("/sessions")] == [session]


def test_r17_a_client_that_says_goodbye_is_gone_for_good(server: Server, workspace: Workspace) -> None:
    stream = workspace.stream()
    assert server.request("DELETE", f"/v1/clients/{workspace.client_id}").status == 200
    stream.wait_end()
    until(lambda: server.metric("workspaces_open") == 0)
    body = {"path": str(server.project), "client_id": workspace.client_id}
    server.request("POST", "/v1/workspaces", body).refused(409, "client_retired")
    server.request("POST", "/v1/workspaces", {**body, "client_id": str(uuid.uuid4())}).ok()


def test_r17_a_goodbye_does_not_end_a_run(server: Server, workspace: Workspace, gated: FakeModel) -> None:
    session = workspace.session()
    workspace.prompt(session, "hello", run_id="r1")
    server.request("DELETE", f"/v1/clients/{workspace.client_id}").ok()
    gated.wait_for(lambda: len(gated.requests) == 1)
    assert server.metric("workspaces_open") == 1
    gated.release("go")
    assert workspace.ended("r1")["state"] == "completed"


def test_r17_a_create_in_the_moment_of_release_gets_a_workspace_that_works(server: Server) -> None:
    """Leaving and coming race: whoever gets a workspace can use it."""
    for _ in range(20):
        leaving = server.workspace()
        goodbye = leaving.begin("DELETE", f"?client_id={leaving.client_id}")
        coming = server.workspace()
        goodbye.answer().ok()
        session = coming.session()
        assert coming.ended(coming.prompt(session, "hello")["run_id"])["state"] == "completed"
        leave(coming)


def test_r17_presence_needs_an_open_stream(server: Server, workspace: Workspace) -> None:
    session = workspace.session()
    here = f"/current-session?client_id={workspace.client_id}"
    workspace.request("POST", here, {"session_id": session}).refused(409, "not_attached")
    stream = workspace.stream()
    workspace.request("POST", here, {"session_id": session}).ok()
    assert workspace.get(f"/sessions/{session}")["attached_clients"] == 1
    stream.wait_for(lambda seen: [e for e in seen if e.type == "presence" and e.payload["session_id"] == session])
    workspace.request("POST", here, {"session_id": "nowhere"}).refused(404, "session_not_found")
    stream.close()
    until(lambda: workspace.get(f"/sessions/{session}")["attached_clients"] == 0)


def test_r17_a_conditional_shutdown_waits_until_nobody_is_there(server: Server, workspace: Workspace) -> None:
    conditional = {"command": "shutdown_if_idle"}
    server.request("POST", "/v1/control", conditional).refused(409, "busy")
    leave(workspace)
    until(lambda: server.request("POST", "/v1/control", conditional).status == 200)
    assert server.wait() == 0


@pytest.fixture
def brief(tmp_path: Path, gated: FakeModel) -> Iterator[Server]:
    """A server that leaves half a second after its last workspace."""
    with running(tmp_path, provider_config(gated.url), options=("--idle-exit", "0.5")) as server:
        yield server


def test_r17_a_server_that_nobody_needs_exits(brief: Server) -> None:
    assert brief.wait() == 0


def workspace_of(brief: Server) -> Workspace:
    """A workspace of a server that does not wait long for somebody to want one. Who was too slow starts it again."""
    for _ in range(10):
        try:
            return brief.workspace()
        except (ConnectionError, HTTPException):
            pass
        except AssertionError as refused:
            if "shutting_down" not in str(refused):
                raise
        assert brief.wait() == 0
        brief.start()
    raise AssertionError("ten times half a second was not enough")


def test_r17_a_server_with_a_run_stays_until_it_has_ended(brief: Server, gated: FakeModel) -> None:
    workspace = workspace_of(brief)
    workspace.prompt(workspace.session(), "hello", run_id="r1")
    gated.wait_for(lambda: len(gated.requests) == 1)
    leave(workspace)
    began = time.monotonic()
    until(lambda: time.monotonic() > began + 1.0)
    assert brief.metric("workspaces_open") == 1
    gated.release("go")
    assert brief.wait() == 0
