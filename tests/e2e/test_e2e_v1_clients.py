"""A client of the v1 protocol on the unix socket, call by call: what broke it once, by the numbers of V1_CLIENTS.md."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_model import FakeModel, Recorded, Reply
from tests.support.fake_reply import Call
from tests.support.server import Server, provider_config, text_of, until
from tests.support.v1_client import V1Client

TWO_MODELS = """
[providers.other]
type = "openai-compatible"
base_url = "{url}"
models = [{{ id = "big", sees_images = true, price_prompt = 3.0 }}, {{ id = "little" }}]
"""


@pytest.fixture
def server(tmp_path: Path, model: FakeModel) -> Iterator[Server]:
    """On a socket: a path there has room for a hundred characters."""
    server = Server(tmp_path, provider_config(model.url, TWO_MODELS.format(url=model.url)))
    server.host = f"unix://{tmp_path}/c.sock"
    try:
        server.start()
        yield server
        server.finish()
    finally:
        server.close()


@pytest.fixture
def client(server: Server) -> Iterator[V1Client]:
    client = V1Client(Path(server.host.removeprefix("unix://")))
    client.open(server.project)
    yield client
    client.close()


def tool(request: Recorded, name: str, **params: Any) -> Reply:
    """One call of a tool, then the end."""
    if request.call_number:
        return Reply(text="finished")
    return Reply(text="", tools=(Call(name=name, input=params, id="c1"),))


def test_its_version_check_ends_with_a_refusal_that_lets_it_go_on(client: V1Client) -> None:
    answer = client.request("POST", "/control", {"command": "shutdown_if_idle"}, content_type="text/plain")
    assert answer.status == 415
    assert client.request("GET", "/health").status == 200


def test_break_1_the_options_of_the_screen_are_there_before_anything_is_set(client: V1Client) -> None:
    assert client.config["options"]["tui"] == {}
    assert client.get("/config")["options"]["tui"] == {}


def test_break_2_an_existing_session_can_be_opened_and_shows_what_it_changed(
    client: V1Client, server: Server, model: FakeModel
) -> None:
    (server.project / "a.txt").write_text("one\n")
    steps = [("view", {"file_path": "a.txt"}), ("edit", {"file_path": "a.txt", "old_string": "one", "new_string": "2"})]
    steps += [
        ("write", {"file_path": "b.txt", "content": "new\n"}),
        ("write", {"file_path": "b.txt", "content": "newer\n"}),
    ]

    def answer(request: Recorded) -> Reply:
        if request.call_number == len(steps):
            return Reply(text="finished")
        name, params = steps[request.call_number]
        return Reply(text="", tools=(Call(name=name, input=params, id=f"c{request.call_number}"),))

    model.on(answer)
    client.post("/permissions/skip", {"skip": True})
    session = client.session()
    assert client.get(f"/sessions/{session}/history") == []
    assert client.run("go", session) == (0, "finished")
    client.wait_for("file", lambda file: file["path"].endswith("b.txt"))
    files = client.get(f"/sessions/{session}/history")
    found = [(Path(file["path"]).name, file["version"], file["content"]) for file in files]
    assert found == [("b.txt", 0, ""), ("b.txt", 2, "newer\n"), ("a.txt", 0, "one\n"), ("a.txt", 1, "2\n")]
    assert {file["session_id"] for file in files} == {session}
    now = client.get(f"/sessions/{session}")["updated_at"]
    assert all(now - 60 <= file["updated_at"] <= now + 1 for file in files)
    assert client.get(f"/sessions/{session}/filetracker/files") == []
    client.post(f"/current-session?client_id={client.client_id}", {"session_id": session})


def test_break_3_a_retry_of_the_model_is_not_the_end_of_the_run(client: V1Client, model: FakeModel) -> None:
    busy = Reply(status=429, body='{"error": {"message": "slow down"}}', headers={"retry-after": "0"})
    model.on(lambda request: busy if len(model.requests) == 1 else Reply(text="at last"))
    assert client.run("hello") == (0, "at last")
    assert "slow down" in next(e["reason"] for e in client.of_type("agent_event") if e["type"] == "retry")


QUESTION = {
    "questions": [
        {"question": "Which?", "type": "single_choice", "choices": [{"label": "red"}, {"label": "blue"}]},
    ]
}


@pytest.mark.parametrize(
    ("notes", "heard"),
    [(None, "blue"), ({"2": "a dark one"}, "blue (blue: a dark one)"), ("by hand", "blue (by hand)")],
    ids=["without", "break_6_a_table", "a_text"],
)
def test_break_4_a_question_is_answered_without_its_id(
    client: V1Client, model: FakeModel, notes: Any, heard: str
) -> None:
    model.on(lambda request: tool(request, "question", **QUESTION))
    session = client.session()
    client.prompt(session, "hello", "r1")
    asked = client.wait_for("question_batch_request")
    response = {"request_id": asked["questions"][0]["id"], "selected_ids": ["2"], "fill_in_text": "", "notes": notes}
    body = {"batch_request_id": "", "responses": [response]}
    assert client.post("/questions/answer", body) == {"resolved": True}
    client.wait_for("run_complete")
    assert client.post("/questions/answer", body) == {"resolved": False}
    (result,) = [m for m in client.get(f"/sessions/{session}/messages") if m["role"] == "tool"]
    assert heard in result["parts"][0]["data"]["content"]


def test_break_5_a_question_is_refused_without_a_body(client: V1Client, model: FakeModel) -> None:
    model.on(lambda request: tool(request, "question", **QUESTION))
    client.prompt(client.session(), "hello", "r1")
    client.wait_for("question_batch_request")
    assert client.post("/questions/cancel") == {"resolved": True}
    assert client.wait_for("run_complete")["text"] == "finished"
    assert client.post("/questions/cancel") == {"resolved": False}


def test_break_7_a_summary_is_answered_with_200(client: V1Client, model: FakeModel) -> None:
    session = client.session()
    client.run("hello", session)
    receipt = client.post(f"/agent/sessions/{session}/summarize")
    client.wait_for("run_complete", lambda end: end["run_id"] == receipt["run_id"])
    assert client.get(f"/sessions/{session}")["summary_message_id"]


def test_break_8_a_model_is_chosen_for_the_workspace(client: V1Client, model: FakeModel) -> None:
    session = client.session()
    client.run("before", session)
    big = {"model": "big", "provider": "other", "reasoning_effort": "high", "think": True}
    client.post("/config/model", {"scope": 1, "model_type": "large", "model": big})
    client.wait_for("config_changed")
    small = client.get("/agent/default-small-model?provider_id=other")
    assert small == {"model": "big", "provider": "other"}
    client.post("/config/model", {"scope": 1, "model_type": "small", "model": {"model": "little", "provider": "other"}})
    client.post("/agent/update")
    assert client.get("/agent")["model_cfg"] == {"model": "big", "provider": "other"}
    models = client.get("/config")["models"]
    assert (models["large"]["model"], models["small"]["model"]) == ("big", "little")
    client.run("after", session)
    spoke = [m["model"] for m in client.get(f"/sessions/{session}/messages") if m["role"] == "assistant"]
    assert spoke == ["fake", "big"]
    unknown = {"model_type": "large", "model": {"model": "m", "provider": "nobody"}}
    assert client.request("POST", f"/workspaces/{client.workspace_id}/config/model", unknown).status == 400


def test_break_9_how_it_looks_is_kept_and_nothing_else_is_taken(client: V1Client, server: Server) -> None:
    client.post("/config/compact", {"scope": 0, "enabled": True})
    client.post("/config/set", {"scope": 0, "key": "options.tui.transparent", "value": True})
    client.post("/config/set", {"scope": 0, "key": "options.notifications", "value": "bell"})
    recent = [{"model": "big", "provider": "other", "think": True}]
    client.post("/config/set", {"scope": 0, "key": "recent_models.large", "value": recent})
    for key in ("permissions.allowed_tools", "options.debug", "providers.openai.api_key", "mcp.x"):
        answer = client.request(
            "POST", f"/workspaces/{client.workspace_id}/config/set", {"key": key, "value": ["bash"]}
        )
        assert (answer.status, answer.body["code"]) == (403, "not_by_clients"), key
    for path, body in (("provider-key", {"provider_id": "x", "kind": "string", "api_key": "k"}), ("refresh-oauth", {})):
        answer = client.request("POST", f"/workspaces/{client.workspace_id}/config/{path}", body)
        assert (answer.status, "covey login" in answer.body["message"]) == (403, True)
    assert client.post("/config/import-copilot") == {"token": None, "success": False}
    server.stop()
    server.start()
    client.open(server.project)
    assert client.config["options"]["tui"] == {"compact_mode": True, "transparent": True}
    assert client.config["options"]["notifications"] == "bell"
    assert client.config["recent_models"] == {"large": [{"model": "big", "provider": "other"}]}
    client.post("/config/remove", {"scope": 0, "key": "options.tui.compact_mode"})
    assert client.get("/config")["options"]["tui"] == {"transparent": True}


@pytest.mark.parametrize("title", ["New Session", "non-interactive"])
def test_break_10_a_session_that_nobody_named_is_named_by_its_first_prompt(client: V1Client, title: str) -> None:
    session, named = client.session(title), client.session("mine")
    for each in (session, named):
        client.run("build a birdhouse", each)
    assert client.get(f"/sessions/{session}")["title"] == "build a birdhouse"
    assert client.get(f"/sessions/{named}")["title"] == "mine"


def test_break_11_a_command_runs_beside_the_turn(client: V1Client, server: Server, model: FakeModel) -> None:
    model.on(lambda request: Reply(text="done", gates={0: "go"} if request.prompt == "hello" else {}))
    session = client.session()
    client.prompt(session, "hello", "r1")
    model.wait_for(lambda: len(model.requests) == 1)
    path = f"/agent/sessions/{session}/shell"
    body = {"session_id": session, "command": "pwd; exit 3", "term_width": 80}
    assert client.post(path, body) == {"output": f"{server.project}\n", "exit_code": 3}
    assert client.post(path, {"command": "echo seen", "share": True})["output"] == "seen\n"
    model.release("go")
    client.wait_for("run_complete")
    client.run("what was it?", session)
    parts = [part for m in client.get(f"/sessions/{session}/messages") for part in m["parts"]]
    commands = [part["data"] for part in parts if part["type"] == "shell_command"]
    assert [(c["command"], c["exit_code"]) for c in commands] == [("pwd; exit 3", 3), ("echo seen", 0)]
    said = json.dumps(model.requests[-1].body)
    assert "seen" in said
    assert "exit 3" not in said


def test_break_12_whoever_is_asked_about_a_change_sees_both_contents(
    client: V1Client, server: Server, model: FakeModel
) -> None:
    model.on(lambda request: tool(request, "write", file_path="a.txt", content="new\n"))
    session = client.session()
    client.prompt(session, "hello", "r1")
    asked = client.wait_for("permission_request")
    assert (asked["params"]["old_content"], asked["params"]["new_content"]) == ("", "new\n")
    waiting = client.wait_for("permission_notification")  # break 18
    assert (waiting["tool_call_id"], waiting["granted"], waiting["denied"]) == ("c1", False, False)
    assert client.post("/permissions/grant", {"permission": asked, "action": "allow"}) == {"resolved": True}
    client.wait_for("run_complete")
    (result,) = [m for m in client.get(f"/sessions/{session}/messages") if m["role"] == "tool"]
    assert json.loads(result["parts"][0]["data"]["metadata"])["new_content"] == "new\n"


def test_break_13_sessions_of_agents_are_listed_only_on_demand(client: V1Client, model: FakeModel) -> None:
    model.on(lambda request: tool(request, "agent", prompt="look") if request.prompt == "hello" else Reply(text="seen"))
    first, session = client.session("first"), client.session("mine")
    client.run("hello", session)
    assert {found["id"] for found in client.get("/sessions")} == {session, first}
    everything = client.get("/sessions?children=1")
    (child,) = [found for found in everything if found["parent_session_id"]]
    assert child["parent_session_id"] == session
    listed = [found["id"] for found in client.get("/sessions")]
    assert [found["id"] for found in client.get("/sessions?limit=1")] == listed[:1]
    assert [found["id"] for found in client.get(f"/sessions?before={listed[0]}")] == listed[1:]


def test_break_15_a_cancelled_run_has_the_text_so_far(client: V1Client, model: FakeModel) -> None:
    model.on(lambda request: Reply(text="half ", chunks=3, gates={1: "never"}))
    session = client.session()
    client.prompt(session, "hello", "r1")
    client.wait_for("message", lambda m: m["role"] == "assistant" and text_of(m) == "half ")
    client.post(f"/agent/sessions/{session}/cancel")
    end = client.wait_for("run_complete")
    assert (end["cancelled"], end["text"]) == (True, "half ")
    model.release("never")


def test_break_16_what_was_asked_before_is_there_the_newest_first(client: V1Client) -> None:
    one, two = client.session(), client.session()
    for session, prompt in ((one, "a"), (two, "b"), (one, "c")):
        client.run(prompt, session)
    client.post(f"/agent/sessions/{one}/shell", {"command": "true"})
    assert [text_of(m) for m in client.get("/messages/user")] == ["c", "b", "a"]
    assert [text_of(m) for m in client.get(f"/sessions/{one}/messages/user")] == ["c", "a"]


def test_break_17_models_say_what_they_can_and_cost(client: V1Client) -> None:
    big, little = client.get("/config")["providers"]["other"]["models"]
    assert (big["supports_attachments"], big["cost_per_1m_in"]) == (True, 3.0)
    assert "supports_attachments" not in little


def test_break_19_thoughts_have_times(client: V1Client, model: FakeModel) -> None:
    model.on(lambda request: Reply(reasoning="hm", text="yes"))
    session = client.session()
    client.run("hello", session)
    answer = client.get(f"/sessions/{session}/messages")[-1]
    (thought,) = [part["data"] for part in answer["parts"] if part["type"] == "reasoning"]
    assert 0 < thought["started_at"] <= thought["finished_at"]


def test_break_20_and_21_what_cannot_be_meant_is_refused(client: V1Client, server: Server) -> None:
    relative = {"path": "sub", "client_id": client.client_id}
    assert client.request("POST", "/workspaces", relative).status == 400
    elsewhere = {"path": str(server.project), "client_id": client.client_id, "data_dir": "/elsewhere"}
    answer = client.request("POST", "/workspaces", elsewhere)
    assert (answer.status, answer.body["code"]) == (400, "other_data_dir")
    seen = client.get("")["data_dir"]
    assert client.request("POST", "/workspaces", {**elsewhere, "data_dir": seen}).status == 200


def test_what_is_not_there_is_empty_and_has_its_shape(client: V1Client) -> None:
    empty: dict[str, Any] = {
        "/lsps": {}, "/mcp/states": {}, "/mcp/pending-auth": [], "/mcp/prompts": [],
        "/mcp/auth-url?name=x": {}, "/skills": [], "/project/needs-init": {"needs_init": False},
        "/filetracker/lastread?session_id=s&path=x": "0001-01-01T00:00:00Z",
    }  # fmt: skip
    assert {path: client.get(path) for path in empty} == empty
    assert "AGENTS.md" in client.get("/project/init-prompt")["prompt"]
    client.post("/lsps/start", {"path": "x", "name": "x"})
    for path in ("/lsps/stop", "/project/init"):
        client.post(path)
    client.post("/filetracker/read", {"session_id": "s", "path": "x"})
    # What names a server that there is not, or wants to add one, is refused with a sentence.
    for what in ("read-resource", "get-prompt", "refresh-tools", "refresh-prompts", "auth", "docker/enable"):
        answer = client.request("POST", f"/workspaces/{client.workspace_id}/mcp/{what}", {"name": "x"})
        assert answer.status in (400, 403, 404) and answer.body["message"], what


def test_language_servers_are_shown_started_and_put_to_rest(tmp_path: Path, model: FakeModel) -> None:
    odd, notes = Path(__file__).parent.parent / "lsp" / "odd_server.py", tmp_path / "notes"
    entry = f'[lsp.odd]\ncommand = "{sys.executable}"\nargs = ["{odd}", "push", "{notes}"]\nsuffixes = ["odd"]\n'
    server = Server(tmp_path, provider_config(model.url, entry))
    server.host = f"unix://{tmp_path}/c.sock"
    (trusted := tmp_path / "config/covey/trusted.toml").parent.mkdir(parents=True)
    trusted.write_text(f'directories = ["{server.project.resolve()}"]\n')
    (server.project / "a.odd").write_text("fine")
    server.start()
    client = V1Client(tmp_path / "c.sock")
    try:
        client.open(server.project)
        assert client.get("/lsps") == {"odd": {"name": "odd", "state": 0}}
        assert client.get("/lsps/odd/diagnostics") == {}
        unknown = client.request("GET", f"/workspaces/{client.workspace_id}/lsps/gopls/diagnostics")
        assert (unknown.status, unknown.body["code"]) == (404, "extension_not_found")
        client.post("/lsps/start", {"path": "elsewhere.py"})
        assert client.get("/lsps")["odd"]["state"] == 0, "it is for other files"
        client.post("/lsps/start", {"path": str(server.project / "a.odd")})
        assert client.get("/lsps")["odd"]["state"] == 2
        client.post("/permissions/skip", {"skip": True})
        model.on(lambda request: tool(request, "write", file_path="b.odd", content="BAD BADDER"))
        client.run("break it")
        assert client.get("/lsps")["odd"]["diagnostic_count"] == 2
        [(uri, found)] = client.get("/lsps/odd/diagnostics").items()
        assert uri == (server.project.resolve() / "b.odd").as_uri()
        at = {"line": 0, "character": 0}
        assert found[0] == {"range": {"start": at, "end": at}, "severity": 1, "message": "there is BAD"}
        client.post("/lsps/stop")
        assert client.get("/lsps")["odd"] == {"name": "odd", "state": 4}
        told = [event["state"] for event in client.of_type("lsp_event")]
        assert told[-3:] == [1, 2, 4]
        client.close()
        server.finish()
    finally:
        server.close()
    assert notes.read_text().count("started ") == 1


def test_a_socket_that_was_removed_is_there_again(client: V1Client, server: Server) -> None:
    client.path.unlink()
    until(lambda: client.path.exists())
    assert client.path.stat().st_mode & 0o777 == 0o600
    assert client.run("hello")[0] == 0
    client.path.unlink()
    until(lambda: client.path.exists())
    assert client.request("GET", "/health").status == 200
