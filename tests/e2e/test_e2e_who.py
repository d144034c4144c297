"""Who did what, over the wire: names of clients, places in the queue, parked prompts and interrupts (R7)."""

from __future__ import annotations

import uuid

import pytest

from tests.support.fake_model import FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, until

pytestmark = pytest.mark.borrows_server


def gated(request: Recorded) -> Reply:
    return Reply(text=f"about {request.prompt.split()[-1]}", gates={0: "go"})


def queue_of(workspace: Workspace, session: str, *prompts: str) -> None:
    """One run under way, and the others waiting."""
    workspace.prompt(session, "active", run_id="active")
    for prompt in prompts:
        workspace.prompt(session, prompt, run_id=prompt)
    until(lambda: workspace.queued(session) == list(prompts))


def change(workspace: Workspace, session: str, run_id: str, client_id: str = "", **fields: object) -> object:
    path = f"/agent/sessions/{session}/prompts/{run_id}?client_id={client_id}"
    return workspace.request("PATCH", path, fields).ok()


def test_runs_say_who_posted_and_who_cancelled_them(server: Server, model: FakeModel) -> None:
    model.on(gated)
    kim = server.workspace(client_name="Kim", client_kind="tui")
    lee = server.workspace(client_name=" Lee\n\x1b[2J ", client_kind="web")
    stream = lee.stream()
    session = kim.session()
    body = {"session_id": session, "prompt": "hello", "run_id": "r1"}
    assert kim.request("POST", f"/agent?client_id={kim.client_id}", body).status == 202
    lee.request("POST", f"/agent/sessions/{session}/cancel?client_id={lee.client_id}").ok()
    stream.terminal("r1")
    run = kim.ended("r1")
    assert (run["posted_by"], run["cancelled_by"], run["cancelled_by_client"]) == ("Kim", "session_cancel", "Lee [2J")
    kim.prompt(session, "nobody said who", run_id="r2")
    kim.cancel_run("r2")
    assert {"posted_by", "cancelled_by_client"}.isdisjoint(kim.ended("r2"))
    lee.close()


def test_presence_says_who_is_there(server: Server) -> None:
    kim = server.workspace(client_name="Kim", client_kind="tui")
    watcher = server.workspace(client_name="Lee")
    stream = watcher.stream()
    kim.stream()
    seen = stream.wait_for(lambda events: [e.payload for e in events if e.payload.get("client_id") == kim.client_id])
    assert (seen[0]["name"], seen[0]["kind"], seen[0]["attached"]) == ("Kim", "tui", True)
    kim.close()
    watcher.close()


def test_an_unknown_kind_of_client_is_refused(server: Server) -> None:
    body = {"path": str(server.project), "client_id": str(uuid.uuid4()), "client_kind": "robot"}
    server.request("POST", "/v1/workspaces", body).refused(400, "invalid_request")


def test_r7_the_queue_is_reordered_by_anybody(workspace: Workspace, model: FakeModel) -> None:
    model.on(gated)
    session = workspace.session()
    queue_of(workspace, session, "a", "b", "c")
    change(workspace, session, "c", first=True)
    assert workspace.queued(session) == ["c", "a", "b"]
    change(workspace, session, "c", after="b")
    assert workspace.queued(session) == ["a", "b", "c"]
    change(workspace, session, "b", before="a", prompt="better")
    assert workspace.queued(session) == ["better", "a", "c"]
    runs = sorted(workspace.get(f"/runs?session_id={session}&state=queued"), key=lambda run: run["place"])
    assert [run["run_id"] for run in runs] == ["b", "a", "c"]
    model.release("go")
    starts = {run_id: workspace.ended(run_id)["started_at"] for run_id in "abc"}
    assert sorted(starts, key=lambda run_id: starts[run_id]) == ["b", "a", "c"]


@pytest.mark.parametrize(
    "fields",
    [{}, {"before": "a", "after": "b"}, {"first": True, "after": "b"}, {"park": True, "unpark": True}],
    ids=str,
)
def test_a_change_that_says_nothing_or_too_much_is_refused(
    workspace: Workspace, model: FakeModel, fields: dict[str, object]
) -> None:
    model.on(gated)
    session = workspace.session()
    queue_of(workspace, session, "a", "b")
    workspace.request("PATCH", f"/agent/sessions/{session}/prompts/a", fields).refused(400, "invalid_request")
    assert workspace.queued(session) == ["a", "b"]
    model.release("go")


def test_r7_a_parked_prompt_waits_for_its_editor_and_no_longer(server: Server, model: FakeModel) -> None:
    model.on(gated)
    workspace, kim = server.workspace(), server.workspace(client_name="Kim")
    workspace.stream()
    editing = kim.stream()
    session = workspace.session()
    queue_of(workspace, session, "a", "b")
    assert change(workspace, session, "a", kim.client_id, park=True)["parked_by"] == "Kim"  # type: ignore[index]
    model.release("go")
    workspace.ended("b")
    assert workspace.run("a")["state"] == "queued"
    assert not workspace.get(f"/agent/sessions/{session}")["is_busy"]
    editing.close()
    server.request("DELETE", f"/v1/clients/{kim.client_id}").ok()
    ended = workspace.ended("a")
    assert ended["state"] == "completed"
    assert "parked_by" not in ended
    workspace.close()


def test_r7_an_interrupt_cancels_the_active_run_and_is_next(workspace: Workspace, model: FakeModel) -> None:
    model.on(gated)
    session = workspace.session()
    stream = workspace.stream()
    queue_of(workspace, session, "a")
    workspace.prompt(session, "now", run_id="now", mode="interrupt")
    assert stream.terminal("active")["cancelled"]
    assert workspace.run("active")["cancelled_by"] == "interrupt"
    model.release("go")
    workspace.ended("a")
    assert workspace.run("now")["started_at"] < workspace.run("a")["started_at"]
    assert not [event for event in stream.events if event.type == "agent_event" and event.payload.get("error")]
