"""A prompt with a schema: its run ends with JSON that fits, or says what does not. One answer is asked for again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from covey.lifecycle.output_schema import MAX_BYTES
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, finish_of, provider_config, running, text_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"files": {"type": "array", "items": {"type": "string"}}},
    "required": ["files"],
}
GOOD, BAD = '{"files": ["a.py"]}', '{"files": "a.py"}'
MISFIT = "$.files must be a list"


def system_of(request: Recorded) -> str:
    return str(request.body["messages"][0]["content"])


def answers(request: Recorded) -> Reply:
    """Each prompt says what it wants to see."""
    if "cannot be used" in request.prompt:
        return Reply(text=BAD if "nevermore" in json.dumps(request.body) else GOOD)
    if "look first" in request.prompt and request.call_number == 0:
        return Reply(tools=(Call(name="ls", input={"path": "."}),))
    if "wait" in request.prompt:
        return Reply(text=GOOD, gates={0: "go"})
    return Reply(text=f"```json\n{GOOD}\n```" if "good" in request.prompt else BAD)


@pytest.fixture(scope="module")
def model() -> Iterator[FakeModel]:
    with FakeModel() as fake:
        fake.on(answers)
        yield fake


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("schema"), provider_config(model.url)) as started:
        yield started


def test_an_answer_that_fits_is_the_output_of_the_run(workspace: Workspace, model: FakeModel) -> None:
    session, stream = workspace.session(), workspace.stream()
    workspace.prompt(session, "good: look first", run_id="fits", output_schema=SCHEMA)
    terminal = stream.terminal("fits")
    assert terminal.get("output") == {"files": ["a.py"]}, terminal
    assert workspace.ended("fits")["output"] == terminal["output"]
    assert "error" not in terminal
    assert not [e for e in stream.of_type("agent_event") if e.payload["type"] == "retry"]
    request = next(r for r in reversed(model.requests) if "good: look first" in r.prompt)
    assert json.dumps(SCHEMA, separators=(",", ":")) in system_of(request)


def test_an_answer_that_does_not_fit_is_asked_for_again_once(workspace: Workspace, model: FakeModel) -> None:
    session, stream = workspace.session(), workspace.stream()
    workspace.prompt(session, "say it", run_id="again", output_schema=SCHEMA)
    assert stream.terminal("again")["output"] == {"files": ["a.py"]}
    (retry,) = [e.payload for e in stream.of_type("agent_event") if e.payload["type"] == "retry"]
    assert (retry["run_id"], MISFIT in retry["reason"], "error" in retry) == ("again", True, False)
    asked, rejected, answer = workspace.messages(session)
    assert (text_of(asked), text_of(rejected), text_of(answer)) == ("say it", BAD, GOOD)
    assert MISFIT in rejected["parts"][-1]["data"]["details"]
    assert finish_of(answer) == "end_turn"
    assert len([e for e in stream.of_type("run_complete") if e.payload["run_id"] == "again"]) == 1
    correction = next(r.prompt for r in reversed(model.requests) if "cannot be used" in r.prompt)
    assert MISFIT in correction
    # What a later turn of the session reads is the same conversation, with the correction in it.
    workspace.prompt(session, "good, and then?", run_id="later")
    stream.terminal("later")
    later = next(r for r in reversed(model.requests) if "good, and then?" in r.prompt)
    assert correction in json.dumps(later.body, ensure_ascii=False)
    assert "JSON Schema" not in system_of(later)


def test_a_run_that_never_fits_fails_and_says_what_does_not_fit(workspace: Workspace) -> None:
    session, stream = workspace.session(), workspace.stream()
    workspace.prompt(session, "nevermore", run_id="never", output_schema=SCHEMA)
    terminal = stream.terminal("never")
    assert terminal["error"] == f"the answer does not fit the schema: {MISFIT}"
    assert (terminal["text"], "output" in terminal) == (BAD, False)
    assert workspace.ended("never")["state"] == "failed"
    assert [e.payload["error"] for e in stream.errors] == [terminal["error"]]
    workspace.prompt(session, "nevermore", run_id="one-step", output_schema=SCHEMA, max_steps=1)
    assert MISFIT in stream.terminal("one-step")["error"]


def test_the_schema_is_part_of_what_was_posted(workspace: Workspace) -> None:
    session = workspace.session()
    fields = {"session_id": session, "prompt": "good", "run_id": "same"}
    first = workspace.prompt(session, "good", run_id="same", output_schema=SCHEMA)
    again = workspace.request("POST", "/agent", {**fields, "output_schema": SCHEMA}).ok()
    assert again["seq"] == first["seq"]
    others: list[dict[str, Any]] = [{}, {"output_schema": {}}, {"output_schema": {**SCHEMA, "required": []}}]
    for other in others:
        workspace.request("POST", "/agent", {**fields, **other}).refused(409, "run_id_reused")


def test_a_prompt_with_a_schema_waits_for_a_turn_of_its_own_and_lets_nobody_in(
    workspace: Workspace, model: FakeModel
) -> None:
    session, stream = workspace.session(), workspace.stream()
    workspace.prompt(session, "wait", run_id="host", output_schema=SCHEMA)
    model.wait_for(lambda: model.requests[-1].prompt == "wait")
    queued = workspace.prompt(session, "good", mode="fold", output_schema=SCHEMA)
    plain = workspace.prompt(session, "good too", mode="fold")
    assert workspace.queued(session) == ["good", "good too"]
    model.release("go")
    for run_id in ("host", queued["run_id"]):
        assert stream.terminal(run_id)["output"] == {"files": ["a.py"]}
    assert "folded_into" not in stream.terminal(queued["run_id"])
    assert "output" not in stream.terminal(plain["run_id"])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "text"},
        {"$ref": "https://example.com/schema"},
        {"properties": {"a": {"pattern": "(a+)+$"}}},
        {"description": "x" * MAX_BYTES},
        {"anyOf": [{"$ref": "#"}]},
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(workspace: Workspace, schema: dict[str, Any]) -> None:
    body = {"session_id": workspace.session(), "prompt": "good", "output_schema": schema}
    answer = workspace.request("POST", "/agent", body)
    answer.refused(400, "unusable_schema")
    assert answer.body["message"].startswith("output_schema cannot be used: ")
    workspace.request("POST", "/agent", {**body, "output_schema": [schema]}).refused(400, "invalid_request")


def test_a_cancel_and_a_kill_in_the_middle_of_the_second_answer(server: Server, model: FakeModel) -> None:
    """Last: the server is another process afterwards."""
    stuck = [Reply(text='{"files": ', ending="silence"), Reply(text='{"files": ', ending="silence")]
    model.on(lambda request: stuck.pop() if "cannot be used" in request.prompt and stuck else answers(request))
    opened = server.workspace()
    session, stream = opened.session(), opened.stream()
    opened.prompt(session, "say it", run_id="cancelled", output_schema=SCHEMA)
    stream.wait_for(lambda seen: any(e.type == "agent_event" and e.payload["type"] == "retry" for e in seen))
    opened.cancel_run("cancelled")
    assert stream.terminal("cancelled")["cancelled"] is True
    opened.prompt(session, "say it", run_id="killed", output_schema=SCHEMA)
    opened.prompt(session, "good", run_id="waits", output_schema=SCHEMA)
    model.wait_for(lambda: not stuck)
    stream.wait_state("waits", "queued")
    stream.close()
    server.kill()
    server.start()
    killed, waited = opened.ended("killed"), opened.ended("waits")
    assert (killed["state"], "output" in killed) == ("interrupted", False)
    assert (waited["state"], waited["output"]) == ("completed", {"files": ["a.py"]})
    opened.request("POST", "/agent", {"session_id": session, "prompt": "good", "run_id": "waits"}).refused(
        409, "run_id_reused"
    )
    opened.close()
