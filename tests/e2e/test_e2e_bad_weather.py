"""Models and networks at their worst: each failure has a clear text, leaves its record, and lets the next run go on."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.machine import refusing_port
from tests.support.server import Server, Workspace, outline, provider_config, running
from tests.support.stream import Stream

pytestmark = pytest.mark.borrows_server

KEY = "sk-do-not-tell-anybody-0123456789"
SETTINGS = f'api_key = "{KEY}"\nmax_attempts = 2\nidle_timeout_s = '
HASTY = "hasty/fake"
"""The same model behind a provider that waits a second for it. Only who tests silence asks it: any answer of a busy
machine may take a second."""
OVERLOADED = 'data: {"error": {"message": "overloaded, come back later"}}\n\n'
NAMELESS = 'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "x"}]}}]}\n\n'

FAILURES: dict[str, tuple[Reply, str]] = {
    "garbage": (Reply(raw=("data: this is no JSON\n\n",), ending="end"), "garbage"),
    "binary": (Reply(raw=("\x00\x01\x02\x03\n\n" * 100,), ending="end"), "nothing that looks like"),
    "nothing": (Reply(raw=(), ending="end"), "nothing that looks like"),
    "not an object": (Reply(raw=("data: [1, 2]\n\n",), ending="end"), "unknown form"),
    "a web page": (Reply(body="<html><body>Welcome</body></html>"), "web page"),
    "a web page with an error": (Reply(status=404, body="<!DOCTYPE html><html></html>"), "web page"),
    "an error in the stream": (Reply(raw=(OVERLOADED,), ending="end"), "overloaded, come back later"),
    "cut within the body": (Reply(text="half", ending="cut"), "cut off"),
    "ended too early": (Reply(text="half", ending="end"), "cut off"),
    "silent in the middle": (Reply(text="half", ending="silence"), "silent for 1 s"),
    "silent from the start": (Reply(gates={-1: "never"}), "silent for 1 s"),
    "a tool call without a name": (Reply(raw=(NAMELESS,), ending="end"), "without a name"),
    "400": (Reply(status=400, body='{"error": {"message": "bad model"}}'), "400: bad model"),
    "401": (Reply(status=401, body=f'{{"error": {{"message": "wrong key {KEY}"}}}}'), "401"),
    "429": (Reply(status=429, body="{}", headers={"retry-after": "0"}), "429"),
    "500": (Reply(status=500, body="oh no"), "500: oh no"),
    "hung up": (Reply(status=0), "closed the connection"),
}


@pytest.fixture
def server_config(model: FakeModel) -> str:
    hasty = f'[providers.hasty]\ntype = "openai-compatible"\nname = "fake"\nbase_url = "{model.url}"\n{SETTINGS}1'
    return provider_config(model.url, hasty, provider=f"{SETTINGS}20")


def check_failed(workspace: Workspace, stream: Stream, session: str, told: str) -> Any:
    """The run `bad` has failed as it should; gives its terminal event."""
    terminal = stream.terminal("bad")
    assert told in terminal["error"]
    assert terminal["error"].startswith(("fake: ", "hasty: "))
    run = workspace.run("bad")
    assert (run["state"], run["error"]) == ("failed", terminal["error"])
    messages = workspace.messages(session)
    assert outline(messages[:2]) == ["bad", "assistant error"]
    assert messages[1]["parts"][-1]["data"]["details"] == terminal["error"]
    assert [(e.payload["run_id"], e.payload["error"]) for e in stream.errors] == [("bad", terminal["error"])]
    return terminal


@pytest.mark.parametrize("name", FAILURES)
def test_r8_a_model_that_fails(server: Server, workspace: Workspace, model: FakeModel, name: str) -> None:
    reply, told = FAILURES[name]
    model.on(lambda request: reply if request.prompt == "bad" else Reply(text="fine"))
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "bad", run_id="bad", model=HASTY if name.startswith("silent") else "")
    workspace.prompt(session, "good", run_id="good")
    assert stream.terminal("good")["text"] == "fine"
    check_failed(workspace, stream, session, told)
    retries = [e.payload for e in stream.of_type("agent_event") if e.payload["type"] == "retry"]
    assert [retry["run_id"] for retry in retries] == ["bad"] * (sum(r.prompt == "bad" for r in model.requests) - 1)
    if name == "401":
        assert stream.errors[0].payload["type"] == "re_authenticate"
    assert KEY.encode() not in bytes(stream.raw)
    assert KEY not in server.log()
    assert KEY not in str(workspace.get("/config")) + str(workspace.get("/providers"))


def test_r8_a_model_that_refuses_connections(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        url = f"http://127.0.0.1:{stack.enter_context(refusing_port())}/v1"
        server = stack.enter_context(running(tmp_path, provider_config(url, provider="max_attempts = 1")))
        workspace = server.workspace()
        session = workspace.session()
        stream = workspace.stream()
        workspace.prompt(session, "bad", run_id="bad")
        assert "connection refused" in stream.terminal("bad")["error"]
        check_failed(workspace, stream, session, "cannot be reached")
        workspace.close()


def test_r8_a_retry_is_told_and_ends_in_one_terminal_event(workspace: Workspace, model: FakeModel) -> None:
    busy = Reply(status=429, body='{"error": {"message": "slow down"}}', headers={"retry-after": "1"})
    model.on(lambda request: busy if len(model.requests) == 1 else Reply(text="at last"))
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    assert stream.terminal("r1")["text"] == "at last"
    (retry,) = [e.payload for e in stream.of_type("agent_event") if e.payload["type"] == "retry"]
    assert (retry["run_id"], retry["session_id"], retry["attempt"]) == ("r1", session, 1)
    assert "slow down" in retry["reason"]
    assert "error" not in retry
    assert retry["retry_at"] >= workspace.run("r1")["started_at"] + 0.9
    assert model.requests[1].at - model.requests[0].at >= 0.9
    assert len(stream.of_type("run_complete")) == 1
    assert not stream.errors


@pytest.mark.parametrize("kind", ["a key that cannot be sent", "an address that is none"])
def test_scenario_15_the_model_cannot_be_built(tmp_path: Path, model: FakeModel, kind: str) -> None:
    config = provider_config(model.url, provider='api_key = "schlüssel"')
    if kind != "a key that cannot be sent":
        config = provider_config("http://127.0.0.1:0/v1")
    with running(tmp_path, config) as server:
        workspace = server.workspace()
        session = workspace.session()
        stream = workspace.stream()
        workspace.prompt(session, "bad", run_id="bad")
        terminal = check_failed(workspace, stream, session, "fake: ")
        workspace.prompt(session, "bad again", run_id="again")
        assert stream.terminal("again")["error"] == terminal["error"]
        ends = [e.payload["run_id"] for e in stream.of_type("run_complete")]
        errors = [e.payload["run_id"] for e in stream.errors]
        assert ends == errors == ["bad", "again"]
        assert not model.requests
        workspace.close()


def test_r1_without_a_model_a_prompt_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with running(
        tmp_path, '[providers.fake]\ntype = "openai-compatible"\nbase_url = "http://127.0.0.1:9/v1"'
    ) as server:
        workspace = server.workspace()
        session = workspace.session()
        answer = workspace.request("POST", "/agent", {"session_id": session, "prompt": "hello"})
        answer.refused(400, "no_model")
        assert "config.toml" in answer.body["message"]
        assert workspace.get("/agent")["is_ready"] is False
        assert workspace.get("/runs") == []


BAD_CALLS = {
    "broken JSON": Call(name="bash", input='{"command": "ls'),
    "not an object": Call(name="bash", input="[1]"),
    "wrong types": Call(name="bash", input={"command": ["ls"]}),
    "an unknown field": Call(name="bash", input={"command": "ls", "sudo": True}),
    "nothing": Call(name="bash", input=""),
    "an unknown tool": Call(name="launch_rockets", input={}),
    "an odd name": Call(name="../../bash\x00🐦", input={}),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_r12_a_tool_call_that_cannot_be_run_gets_a_result(workspace: Workspace, model: FakeModel, name: str) -> None:
    model.on(lambda request: Reply(text="", tools=(BAD_CALLS[name],)) if request.call_number == 0 else Reply())
    session = workspace.session()
    run_id = workspace.prompt(session, "hello")["run_id"]
    assert workspace.ended(run_id)["state"] == "completed"
    messages = workspace.messages(session)
    assert outline(messages) == ["hello", "assistant tool_use", "tool", "assistant end_turn"]
    result = messages[2]["parts"][0]["data"]
    assert (result["is_error"], result["name"]) == (True, BAD_CALLS[name].name)
    tool = [message for message in model.requests[1].body["messages"] if message["role"] == "tool"]
    assert tool[0]["content"] == result["content"]


def test_r8_a_model_that_goes_round_in_circles_is_stopped(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(text="", tools=(Call(name="view", input={"file_path": "nowhere"}),)))
    run = workspace.ended(workspace.prompt(workspace.session(), "hello")["run_id"])
    assert run["state"] == "failed"
    assert "again and again" in run["error"]


def test_r11_a_failure_is_never_taken_for_that_of_another_run(workspace: Workspace, model: FakeModel) -> None:
    def answer(request: Recorded) -> Reply:
        gates = {-1: "go"}
        return Reply(status=400, body="{}", gates=gates) if "bad" in request.prompt else Reply(gates=gates)

    model.on(answer)
    sessions = {name: workspace.session() for name in ("bad 1", "good 1", "bad 2", "good 2")}
    stream = workspace.stream()
    runs = {name: workspace.prompt(session, name)["run_id"] for name, session in sessions.items()}
    model.wait_for(lambda: len(model.requests) == 4)
    model.release("go")
    for name, run_id in runs.items():
        terminal = stream.terminal(run_id)
        assert terminal["session_id"] == sessions[name]
        assert ("error" in terminal) == name.startswith("bad")
    assert {(e.payload["run_id"], e.payload["session_id"]) for e in stream.errors} == {
        (runs[name], sessions[name]) for name in ("bad 1", "bad 2")
    }
