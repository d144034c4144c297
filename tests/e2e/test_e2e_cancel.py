"""Cancelling, from outside: what a cancel covers, what it leaves behind, and what it never touches (R3 to R6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import (
    Server,
    Workspace,
    finish_of,
    outline,
    provider_config,
    running,
    text_of,
    until,
)

pytestmark = pytest.mark.borrows_server


def hanging(request: Recorded) -> Reply:
    """Some words, then nothing more for ever."""
    return Reply(text="word ", chunks=3, ending="silence")


def test_scenario_01_one_prompts_another_cancels(workspace: Workspace, model: FakeModel) -> None:
    model.on(hanging)
    session = workspace.session()
    a = workspace.stream()
    other = workspace.server.workspace()
    b = other.stream()
    run = workspace.prompt(session, "write a long text")
    b.wait_delta()
    receipt = other.cancel(session)
    assert receipt["covered"] == [{"run_id": run["run_id"], "state_found": "active"}]
    assert receipt["mark"] == run["seq"]
    for stream in (a, b):
        terminal = stream.terminal(run["run_id"])
        assert terminal["cancelled"] is True
        assert "error" not in terminal
        finished = [e.payload for e in stream.of_type("message") if e.payload["role"] == "assistant"][-1]
        assert finish_of(finished) == "canceled"
        assert not stream.errors
    both = min(len(a.durable), len(b.durable))  # what follows its end may be on its way to one of them
    assert a.durable[:both] == b.durable[:both]
    other.close()


def test_scenario_02_cancel_before_the_run_enters(server: Server, workspace: Workspace, model: FakeModel) -> None:
    session = workspace.session()
    stream = workspace.stream()
    with server.blocked_store():
        prompt = workspace.begin_prompt(session, "never answered", run_id="r1")
        cancel = workspace.begin_cancel(session, "r1")
    assert prompt.answer().status == 202
    assert cancel.answer().ok()["covered"] == [{"run_id": "r1", "state_found": "accepted"}]
    assert stream.terminal("r1")["cancelled"] is True
    assert outline(workspace.messages(session)) == ["never answered", "assistant canceled"]
    assert workspace.run("r1")["cancelled_by"] == "session_cancel"
    assert not model.requests
    assert not stream.errors


def test_scenario_02_a_cancel_overtakes_its_prompt(workspace: Workspace, model: FakeModel) -> None:
    session = workspace.session()
    assert workspace.cancel_run("early")["covered"] == [{"run_id": "early", "state_found": "unknown"}]
    workspace.prompt(session, "too late", run_id="early")
    run = workspace.ended("early")
    assert (run["state"], run["cancelled_by"]) == ("cancelled", "run_cancel")
    assert outline(workspace.messages(session)) == ["too late", "assistant canceled"]
    assert not model.requests


def test_scenario_03_cancel_while_idle_does_not_poison_the_next_prompt(workspace: Workspace) -> None:
    session = workspace.session()
    assert workspace.cancel(session)["covered"] == []
    run = workspace.prompt(session, "hello")
    assert workspace.ended(run["run_id"])["state"] == "completed"
    assert outline(workspace.messages(session)) == ["hello", "assistant end_turn"]


def test_scenario_04_cancel_after_active_before_the_answer_exists(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    """The first run ends while nothing can be written: the second is active then, but has not begun its answer."""
    model.on(lambda request: Reply(text="first", gates={1: "end"}))
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "one", run_id="r1")
    model.wait_for(lambda: len(model.requests) == 1)
    workspace.prompt(session, "two", run_id="r2")
    with server.blocked_store():
        model.release("end")
        until(lambda: workspace.run("r2")["state"] == "active")
        cancel = workspace.begin_cancel(session, "r2")
    assert cancel.answer().ok()["covered"] == [{"run_id": "r2", "state_found": "active"}]
    assert stream.terminal("r2")["cancelled"] is True
    assert workspace.run("r1")["state"] == "completed"
    assert outline(workspace.messages(session)) == ["one", "assistant end_turn", "two", "assistant canceled"]
    assert len(model.requests) == 1
    assert not stream.errors


def test_scenario_05_one_cancel_covers_all_that_were_accepted(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    session = workspace.session()
    stream = workspace.stream()
    with server.blocked_store():
        prompts = [workspace.begin_prompt(session, text, run_id=text) for text in ("one", "two")]
        cancel = workspace.begin_cancel(session, "one", "two")
    assert [prompt.answer().status for prompt in prompts] == [202, 202]
    assert [covered["run_id"] for covered in cancel.answer().ok()["covered"]] == ["one", "two"]
    for run_id in ("one", "two"):
        assert stream.terminal(run_id)["cancelled"] is True
    assert outline(workspace.messages(session)) == ["one", "assistant canceled", "two", "assistant canceled"]
    assert workspace.queued(session) == []
    assert not model.requests


def test_scenario_06_a_prompt_accepted_after_the_cancel_is_not_touched(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    session = workspace.session()
    with server.blocked_store():
        for text in ("one", "two"):
            workspace.begin_prompt(session, text, run_id=text)
        cancel = workspace.begin_cancel(session, "one", "two")
        workspace.begin_prompt(session, "three", run_id="three")
    assert [covered["run_id"] for covered in cancel.answer().ok()["covered"]] == ["one", "two"]
    assert workspace.ended("three")["state"] == "completed"
    assert outline(workspace.messages(session)) == [
        "one", "assistant canceled", "two", "assistant canceled", "three", "assistant end_turn",
    ]  # fmt: skip
    assert len(model.requests) == 1


def test_scenario_07_active_and_not_yet_entered_are_both_cancelled(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(hanging)
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "active", run_id="r1")
    stream.wait_delta()
    with server.blocked_store():
        workspace.begin_prompt(session, "follow-up", run_id="r2")
        cancel = workspace.begin_cancel(session, "r1", "r2")
    found = [(covered["run_id"], covered["state_found"]) for covered in cancel.answer().ok()["covered"]]
    assert found == [("r1", "active"), ("r2", "accepted")]
    assert stream.terminal("r1")["cancelled"] is True
    assert stream.terminal("r2")["cancelled"] is True
    assert outline(workspace.messages(session)) == ["active", "assistant canceled", "follow-up", "assistant canceled"]
    assert "queued" not in [e.payload["state"] for e in stream.of_type("run") if e.payload["run_id"] == "r2"]
    assert len(model.requests) == 1


def test_scenario_10_a_cancel_covers_the_queue_up_to_its_mark(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(lambda request: hanging(request) if request.prompt == "active" else Reply())
    session = workspace.session()
    stream = workspace.stream()
    active = workspace.prompt(session, "active", run_id="r0")
    for run_id in ("r1", "r2"):
        workspace.prompt(session, run_id, run_id=run_id)
    stream.wait_delta()
    with server.blocked_store():
        cancel = workspace.begin_cancel(session, "r0")
        workspace.begin_prompt(session, "three", run_id="r3")
    receipt = cancel.answer().ok()
    assert [covered["run_id"] for covered in receipt["covered"]] == ["r0", "r1", "r2"]
    assert receipt["mark"] == active["seq"] + 2
    assert workspace.ended("r3")["state"] == "completed"
    assert [workspace.run(run_id)["state"] for run_id in ("r0", "r1", "r2")] == ["cancelled"] * 3
    assert outline(workspace.messages(session)) == ["active", "assistant canceled", "three", "assistant end_turn"]


def test_scenario_11_cancel_with_a_queued_prompt(workspace: Workspace, model: FakeModel) -> None:
    model.on(hanging)
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "active", run_id="r1")
    workspace.prompt(session, "queued", run_id="r2")
    stream.wait_delta()
    assert [c["state_found"] for c in workspace.cancel(session)["covered"]] == ["active", "queued"]
    assert stream.terminal("r1")["cancelled"] is True
    assert stream.terminal("r2")["cancelled"] is True
    assert stream.terminal("r2")["message_id"] == ""
    assert workspace.queued(session) == []
    assert workspace.get(f"/agent/sessions/{session}/prompts/queued") == 0
    ends = [e for e in stream.of_type("run_complete") if e.payload["run_id"] == "r2"]
    assert len(ends) == 1


def test_scenario_16_a_cancel_after_the_end_was_decided_changes_nothing(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(lambda request: Reply(text="whole answer", gates={1: "end"}))
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    model.wait_for(lambda: len(model.requests) == 1)
    with server.blocked_store():
        model.release("end")
        until(lambda: server.open_runs("active") == 0)
        cancel = workspace.begin("POST", f"/agent/sessions/{session}/cancel")
        too_late = workspace.begin("POST", "/runs/r1/cancel")
    assert cancel.answer().ok()["covered"] == []
    assert too_late.answer().ok()["covered"] == []
    terminal = stream.terminal("r1")
    assert terminal["text"] == "whole answer"
    assert "cancelled" not in terminal


def test_scenario_16_a_late_error_of_the_model_changes_nothing(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(text="half", ending="cut", gates={1: "cut"}))
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    stream.wait_delta()
    workspace.cancel(session)
    model.release("cut")
    assert stream.terminal("r1")["cancelled"] is True
    model.on(lambda request: Reply())
    workspace.prompt(session, "again", run_id="r2")
    assert stream.terminal("r2")["text"]
    assert [e.payload["run_id"] for e in stream.of_type("run_complete")] == ["r1", "r2"]
    assert not stream.errors


def test_r4_cancelling_twice_is_harmless(workspace: Workspace, model: FakeModel) -> None:
    model.on(hanging)
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    stream.wait_delta()
    cancels = [workspace.begin("POST", f"/agent/sessions/{session}/cancel") for _ in range(5)]
    cancels += [workspace.begin("POST", "/runs/r1/cancel") for _ in range(5)]
    assert [cancel.answer().status for cancel in cancels] == [200] * 10
    assert workspace.ended("r1")["state"] == "cancelled"
    model.on(lambda request: Reply())
    assert workspace.ended(workspace.prompt(session, "again")["run_id"])["state"] == "completed"


def test_r4_one_run_is_cancelled_by_its_id_and_not_its_neighbours(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(gates={0: "go"}))
    session = workspace.session()
    for run_id in ("r1", "r2", "r3"):
        workspace.prompt(session, run_id, run_id=run_id)
    assert workspace.cancel_run("r2")["covered"] == [{"run_id": "r2", "state_found": "queued"}]
    model.release("go")
    assert [workspace.ended(run_id)["state"] for run_id in ("r1", "r2", "r3")] == [
        "completed",
        "cancelled",
        "completed",
    ]
    assert workspace.run("r2")["cancelled_by"] == "run_cancel"
    assert workspace.cancel_run("r1")["covered"] == []


def test_r4_a_cancel_stays_in_its_session(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(gates={0: "go"}))
    one, two = workspace.session(), workspace.session()
    workspace.prompt(one, "one", run_id="r1")
    workspace.prompt(two, "two", run_id="r2")
    model.wait_for(lambda: len(model.requests) == 2)
    workspace.cancel(one)
    assert workspace.ended("r1")["state"] == "cancelled"
    model.release("go")
    assert workspace.ended("r2")["state"] == "completed"


@pytest.fixture
def unhurried(tmp_path: Path, model: FakeModel) -> Iterator[Workspace]:
    """Here no turn is abandoned and no silent model given up before a test fails: only a cancel can end them."""
    config = provider_config(model.url, "[limits]\ncancel_grace_s = 300", provider="idle_timeout_s = 300")
    with running(tmp_path, config) as server:
        workspace = server.workspace()
        yield workspace
        workspace.close()


@pytest.mark.parametrize("gate", [-1, 0], ids=["before the status line", "before the first word"])
def test_r5_a_silent_model_does_not_delay_a_cancel(unhurried: Workspace, model: FakeModel, gate: int) -> None:
    model.on(lambda request: Reply(gates={gate: "never"}))
    session = unhurried.session()
    stream = unhurried.stream()
    unhurried.prompt(session, "hello", run_id="r1")
    model.wait_for(lambda: len(model.requests) == 1)
    unhurried.cancel(session)
    assert stream.terminal("r1")["cancelled"] is True
    model.wait_for(lambda: model.requests[0].closed_early_at is not None)
    assert not stream.errors


def test_r5_a_cancel_during_the_wait_before_a_retry(unhurried: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(status=429, body="{}", headers={"retry-after": "50"}))
    session = unhurried.session()
    stream = unhurried.stream()
    unhurried.prompt(session, "hello", run_id="r1")
    stream.wait_for(lambda seen: [e for e in seen if e.type == "agent_event" and e.payload["type"] == "retry"])
    assert unhurried.run("r1")["waiting_on"] == "retry"
    unhurried.cancel(session)
    assert stream.terminal("r1")["cancelled"] is True
    assert not stream.errors


def test_r6_text_streamed_before_the_cancel_is_kept(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(text="{n} ünïcödé 🐦 ", chunks=40, ending="silence"))
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    seen = "".join(f"{n} ünïcödé 🐦 " for n in range(40))
    stream.wait_for(lambda events: "".join(e.payload["delta"] for e in events if e.type == "message_delta") == seen)
    workspace.cancel(session)
    assert workspace.ended("r1")["text"] == seen
    assert text_of(workspace.messages(session)[-1]) == seen


def test_r12_a_tool_call_that_was_cancelled_is_closed_and_the_session_goes_on(
    workspace: Workspace, model: FakeModel
) -> None:
    call = Call(name="bash", input={"command": "echo started > started; exec sleep 1000"})
    model.on(lambda request: Reply(text="", tools=(call,)) if request.call_number == 0 else Reply())
    workspace.request("POST", "/permissions/skip", {"skip": True}).ok()
    session = workspace.session()
    workspace.prompt(session, "hello", run_id="r1")
    until((workspace.server.project / "started").exists)
    assert workspace.run("r1")["waiting_on"] == "tool:bash"
    workspace.cancel(session)
    assert workspace.ended("r1")["state"] == "cancelled"
    messages = workspace.messages(session)
    assert outline(messages) == ["hello", "assistant canceled", "tool"]
    assert messages[-1]["parts"][0]["data"]["is_error"] is True
    model.on(lambda request: Reply())
    assert workspace.ended(workspace.prompt(session, "again")["run_id"])["state"] == "completed"
    asked = [m["role"] for m in model.requests[-1].body["messages"][1:]]
    assert asked == ["user", "assistant", "tool", "assistant", "user"], "a note stands before the next prompt (R18)"
