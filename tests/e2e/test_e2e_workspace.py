"""What a workspace brings to its runs: attachments, environment, configuration; and that no workspace hurts another."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from tests.support.fake_model import Call, FakeModel, Reply
from tests.support.server import Server, Workspace, finish_of, provider_config


def attachment(name: str, kind: str, content: bytes) -> dict[str, Any]:
    return {"file_path": name, "file_name": name, "mime_type": kind, "content": base64.b64encode(content).decode()}


def test_r1_a_text_file_alone_is_a_prompt(workspace: Workspace, model: FakeModel) -> None:
    session = workspace.session()
    notes = attachment("notes.txt", "text/plain", "some nötes 🐦".encode())
    run_id = workspace.prompt(session, "", attachments=[notes])["run_id"]
    assert workspace.ended(run_id)["state"] == "completed"
    (part,) = workspace.messages(session)[0]["parts"]
    assert part["type"] == "binary"
    assert base64.b64decode(part["data"]["Data"]).decode() == "some nötes 🐦"
    assert "some nötes 🐦" in str(model.requests[0].body["messages"][-1])


def test_r15_attachments_of_a_queued_prompt_survive_a_kill(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(lambda request: Reply(gates={0: "never"}))
    session = workspace.session()
    workspace.prompt(session, "first", run_id="r1")
    notes = attachment("notes.txt", "text/plain", b"some notes")
    workspace.prompt(session, "look at this", run_id="r2", attachments=[notes])
    model.wait_for(lambda: len(model.requests) == 1)
    server.kill()
    model.on(lambda request: Reply())
    server.start()
    assert workspace.ended("r2")["state"] == "completed"
    assert "some notes" in str(model.requests[-1].body["messages"][-1])
    again = workspace.prompt(session, "look at this", run_id="r2", attachments=[notes])
    assert again["state"] == "completed"


def test_r8_an_answer_that_is_too_long_or_filtered_is_a_normal_end(workspace: Workspace, model: FakeModel) -> None:
    session = workspace.session()
    for finish, reason in (("length", "max_tokens"), ("content_filter", "content_filter"), ("stop", "end_turn")):
        model.on(lambda request, finish=finish: Reply(text="so far", finish=finish))  # type: ignore[misc] # its default
        run = workspace.ended(workspace.prompt(session, "hello")["run_id"])
        assert (run["state"], run["text"]) == ("completed", "so far")
        assert finish_of(workspace.messages(session)[-1]) == reason


def test_r8_usage_is_told_with_the_end_and_kept_with_the_session(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(usage=(1000, 20)))
    session = workspace.session()
    stream = workspace.stream()
    for run_id in ("r1", "r2"):
        workspace.prompt(session, "hello", run_id=run_id)
        usage = {"prompt_tokens": 1000, "completion_tokens": 20, "cost": 0.0, "cached_tokens": 0}
        assert stream.terminal(run_id)["usage"] == usage
    found = workspace.get(f"/sessions/{session}")
    assert (found["prompt_tokens"], found["completion_tokens"], found["title"]) == (1000, 20, "hello")


def test_r2_a_new_configuration_does_not_disturb_a_run(
    server: Server, workspace: Workspace, model: FakeModel, tmp_path: Path
) -> None:
    model.on(lambda request: Reply(text=f"by {request.body['model']}", gates={0: "go"}))
    session = workspace.session()
    workspace.prompt(session, "hello", run_id="r1")
    model.wait_for(lambda: len(model.requests) == 1)
    server.config.write_text(provider_config(model.url).replace('"fake/fake"', '"fake/other"'))
    workspace.request("POST", "/agent/update").ok()
    assert workspace.get("/agent")["model"]["id"] == "other"
    model.release("go")
    assert workspace.ended("r1")["text"] == "by fake"
    assert workspace.ended(workspace.prompt(session, "again")["run_id"])["text"] == "by other"


def test_r2_a_broken_configuration_is_refused_and_the_old_one_stays(server: Server, workspace: Workspace) -> None:
    server.config.write_text("[models\n")
    workspace.request("POST", "/agent/update").refused(400, "invalid_request")
    assert workspace.ended(workspace.prompt(workspace.session(), "hello")["run_id"])["state"] == "completed"


def test_r17_workspaces_do_not_touch_each_other(server: Server, model: FakeModel, tmp_path: Path) -> None:
    call = Call(name="bash", input={"command": "echo $WHO > who.txt"})
    model.on(lambda request: Reply(text="", tools=(call,)) if request.call_number == 0 else Reply())
    places = {name: tmp_path / name for name in ("one", "two")}
    workspaces = {}
    for name, path in places.items():
        path.mkdir()
        workspaces[name] = server.workspace(path, yolo=True, env={"WHO": name})
    streams = {name: workspace.stream() for name, workspace in workspaces.items()}
    for name, workspace in workspaces.items():
        workspace.prompt(workspace.session(), f"in {name}", run_id="same")
    for name, stream in streams.items():
        assert stream.terminal("same")["text"]
        assert (places[name] / "who.txt").read_text() == f"{name}\n"
        prompts = {e.payload["prompt"] for e in stream.of_type("run")}
        assert prompts == {f"in {name}"}
    workspaces["one"].close()
    workspaces["one"].request("DELETE", f"?client_id={workspaces['one'].client_id}").ok()
    assert not streams["two"].ended
    workspaces["two"].close()
