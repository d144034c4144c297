"""What somebody who only has the protocol's page would try, and where a careless server answers something else."""

from __future__ import annotations

from tests.support.fake_model import FakeModel, Reply
from tests.support.server import Server, Workspace, provider_config, until

MIB = 1024 * 1024


def test_r17_looking_at_a_released_workspace_does_not_open_it(server: Server, workspace: Workspace) -> None:
    session = workspace.session("kept")
    workspace.request("DELETE", f"?client_id={workspace.client_id}").ok()
    until(lambda: server.request("GET", "/v1/workspaces").ok() == [])
    for _ in range(3):
        workspace.request("GET", "").refused(404, "workspace_released")
    assert server.request("GET", "/v1/workspaces").ok() == []
    assert workspace.get(f"/sessions/{session}")["title"] == "kept", "who asks for something in it opens it"
    assert workspace.get("")["id"] == workspace.id


def test_a_queued_prompt_is_not_found_in_another_session(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(gates={0: "go"}))
    here, there = workspace.session(), workspace.session()
    for run_id in ("r1", "r2"):
        workspace.prompt(here, run_id, run_id=run_id)
    path = f"/agent/sessions/{there}/prompts/r2"
    workspace.request("PATCH", path, {"prompt": "new"}).refused(404, "run_not_found")
    workspace.request("DELETE", path).refused(404, "run_not_found")
    assert workspace.queued(here) == ["r2"]
    model.release("go")


def test_null_is_as_good_as_nothing(server: Server, workspace: Workspace) -> None:
    session = workspace.request("POST", "/sessions", {"title": None}).ok()["id"]
    receipt = workspace.prompt(session, "hello", run_id=None, attachments=None, mode=None)
    assert workspace.ended(receipt["run_id"])["state"] == "completed"
    workspace.request("POST", "/agent", {"session_id": None, "prompt": "hello"}).refused(400, "invalid_request")
    workspace.request("POST", "/agent", {"session_id": session, "prompt": None}).refused(400, "empty_prompt")
    workspace.request("POST", "/agent", {"session_id": session, "prompt": 3, "mode": None}).refused(
        400, "invalid_request"
    )


def test_what_is_not_http_is_refused_in_the_same_shape(server: Server) -> None:
    for nonsense in (b"FOO / HTTP/1.1\r\n\r\n", b"\0\1\2", b"GET / HTTP/9.9\r\n\r\n"):
        head, _, body = server.raw(nonsense).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ") and b"application/json" in head
        assert body.startswith(b'{"message":"') and body.endswith(b'","code":"bad_http"}')


def test_an_agent_whose_model_nobody_knows_can_be_looked_at(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    server.config.write_text('[models]\nlarge = "zz/none"\n')
    workspace.request("POST", "/agent/update").ok()
    found = workspace.get("/agent")
    assert (found["is_ready"], found["model"]) == (False, None)
    run = workspace.prompt(workspace.session(), "hello")
    assert 'no model is known as "zz/none"' in workspace.ended(run["run_id"])["error"]
    server.config.write_text(provider_config(model.url))


def test_r16_many_who_missed_something_large_do_not_fill_the_memory(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    """Each of them would hold the whole event several times over while it is sent."""
    size = 8 * MIB
    model.on(lambda request: Reply(text="x" * (size // 16), chunks=16))
    before_it = workspace.stream()
    session = workspace.session()
    until(lambda: before_it.last_id)
    last_id = before_it.last_id
    workspace.prompt(session, "hello", run_id="r1")
    workspace.ended("r1")
    before_it.close()
    resident = server.resident_bytes()
    streams = [workspace.stream(last_event_id=last_id) for _ in range(30)]
    peak = 0

    def all_have_it() -> bool:
        nonlocal peak
        peak = max(peak, server.resident_bytes())
        return all(stream.of_type("run_complete") for stream in streams)

    until(all_have_it, timeout=60)
    assert peak - resident < 300 * MIB  # without a bound it is more than a gigabyte
