"""Runs behind other runs: turns of their own, folding, editing, dropping, and how many may wait (R3, R7, R10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, outline, provider_config, running, text_of, until

pytestmark = pytest.mark.borrows_server

LOOK = Call(name="view", input={"file_path": "notes.txt"})


def gated(request: Recorded) -> Reply:
    """An answer that says what was asked, once the test lets it."""
    return Reply(text=f"about {request.prompt.split()[-1]}", gates={0: "go"})


def two_steps(request: Recorded) -> Reply:
    """A tool call, once the test lets it, and then an answer."""
    is_first = all(message["role"] != "tool" for message in request.body["messages"])
    return Reply(text="", tools=(LOOK,), gates={0: "go"}) if is_first else Reply(text="done")


@pytest.fixture(autouse=True)
def notes(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "notes.txt").write_text("some notes\n")


def test_scenario_08_prompts_with_a_run_id_get_turns_of_their_own(workspace: Workspace, model: FakeModel) -> None:
    model.on(gated)
    session = workspace.session()
    stream = workspace.stream()
    first = workspace.prompt(session, "apples", run_id="r1")
    second = workspace.prompt(session, "pears", run_id="r2")
    assert (first["state"], second["state"]) == ("active", "queued")
    assert second["seq"] == first["seq"] + 1
    assert workspace.queued(session) == ["pears"]
    model.release("go")
    assert stream.terminal("r1")["text"] == "about apples"
    assert stream.terminal("r2")["text"] == "about pears"
    assert outline(workspace.messages(session)) == ["apples", "assistant end_turn", "pears", "assistant end_turn"]
    answers = [message["id"] for message in workspace.messages(session) if message["role"] == "assistant"]
    assert [e.payload["message_id"] for e in stream.of_type("run_complete")] == answers


def test_scenario_09_prompts_without_a_run_id_are_folded_at_the_next_step(
    workspace: Workspace, model: FakeModel
) -> None:
    model.on(two_steps)
    session = workspace.session()
    stream = workspace.stream()
    host = workspace.prompt(session, "first")["run_id"]
    model.wait_for(lambda: len(model.requests) == 1)
    folded = [workspace.prompt(session, text)["run_id"] for text in ("also this", "and that")]
    model.release("go")
    ends = [stream.terminal(run_id) for run_id in (host, *folded)]
    assert [end.get("folded_into") for end in ends] == [None, host, host]
    assert [end["text"] for end in ends] == ["done"] * 3
    assert outline(workspace.messages(session)) == [
        "first", "assistant tool_use", "tool", "also this", "and that", "assistant end_turn",
    ]  # fmt: skip
    assert [workspace.run(run_id)["state"] for run_id in (host, *folded)] == ["completed", "folded", "folded"]
    assert len(model.requests) == 2
    assert "also this" in model.requests[1].prompt


def test_r7_what_finds_no_further_step_gets_a_turn_of_its_own(workspace: Workspace, model: FakeModel) -> None:
    model.on(gated)
    session = workspace.session()
    first = workspace.prompt(session, "apples")["run_id"]
    model.wait_for(lambda: len(model.requests) == 1)
    second = workspace.prompt(session, "pears")["run_id"]
    model.release("go")
    assert workspace.ended(first)["text"] == "about apples"
    assert workspace.ended(second)["text"] == "about pears"
    assert workspace.run(second)["state"] == "completed"


def test_r7_the_caller_may_say_which_it_wants(workspace: Workspace, model: FakeModel) -> None:
    model.on(two_steps)
    session = workspace.session()
    workspace.prompt(session, "first", run_id="host")
    model.wait_for(lambda: len(model.requests) == 1)
    own = workspace.prompt(session, "on its own", mode="own_turn")["run_id"]
    workspace.prompt(session, "joins in", run_id="joins", mode="fold")
    model.release("go")
    assert workspace.ended("joins")["folded_into"] == "host"
    assert workspace.ended(own)["state"] == "completed"
    assert outline(workspace.messages(session))[:5] == [
        "first", "assistant tool_use", "tool", "joins in", "assistant end_turn",
    ]  # fmt: skip


def test_r8_folded_runs_end_as_their_host_does(workspace: Workspace, model: FakeModel) -> None:
    def answer(request: Recorded) -> Reply:
        reply = two_steps(request)
        return reply if reply.tools else Reply(text="on and on", ending="silence")

    model.on(answer)
    session = workspace.session()
    stream = workspace.stream()
    host = workspace.prompt(session, "first")["run_id"]
    model.wait_for(lambda: len(model.requests) == 1)
    folded = workspace.prompt(session, "also this")["run_id"]
    model.release("go")
    stream.wait_state(folded, "folded")
    stream.wait_delta()
    workspace.cancel_run(folded)  # what was folded into a turn can only end with it
    assert workspace.run(folded)["state"] == "folded"
    workspace.cancel(session)
    assert stream.terminal(host)["cancelled"] is True
    assert stream.terminal(folded)["cancelled"] is True
    assert stream.terminal(folded)["folded_into"] == host


def test_scenario_12_clearing_the_queue_leaves_the_active_run_alone(workspace: Workspace, model: FakeModel) -> None:
    model.on(gated)
    session = workspace.session()
    stream = workspace.stream()
    for run_id in ("r1", "r2", "r3"):
        workspace.prompt(session, run_id, run_id=run_id)
    receipt = workspace.request("POST", f"/agent/sessions/{session}/prompts/clear").ok()
    assert [covered["run_id"] for covered in receipt["covered"]] == ["r2", "r3"]
    for run_id in ("r2", "r3"):
        assert stream.terminal(run_id) == {
            "session_id": session, "run_id": run_id, "message_id": "", "cancelled": True,
        }  # fmt: skip
        assert workspace.run(run_id)["cancelled_by"] == "queue_clear"
    assert workspace.queued(session) == []
    model.release("go")
    assert stream.terminal("r1")["text"] == "about r1"


def test_scenario_18_the_queue_goes_on_after_a_failure(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda r: Reply(status=400, body="{}", gates={-1: "go"}) if r.prompt == "r1" else Reply(text="fine"))
    session = workspace.session()
    stream = workspace.stream()
    for run_id in ("r1", "r2", "r3"):
        workspace.prompt(session, run_id, run_id=run_id)
    model.release("go")
    assert "400" in stream.terminal("r1")["error"]
    assert stream.terminal("r2")["text"] == stream.terminal("r3")["text"] == "fine"
    assert [(e.payload["type"], e.payload["run_id"]) for e in stream.of_type("agent_event")] == [
        ("error", "r1"), ("agent_finished", "r2"), ("agent_finished", "r3"),
    ]  # fmt: skip


def test_r10_a_cancel_finds_the_next_run_the_moment_the_last_one_ends(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    """While the end of the first run is being written, a cancel covers the second: there is no gap between them."""
    model.on(gated)
    session = workspace.session()
    for run_id in ("r1", "r2", "r3"):
        workspace.prompt(session, run_id, run_id=run_id)
    model.wait_for(lambda: len(model.requests) == 1)
    with server.blocked_store():
        model.release("go")
        until(lambda: workspace.run("r2")["state"] == "active")
        cancel = workspace.begin_cancel(session, "r2")
    found = [(covered["run_id"], covered["state_found"]) for covered in cancel.answer().ok()["covered"]]
    assert found == [("r2", "active"), ("r3", "queued")]
    states = [workspace.ended(run_id)["state"] for run_id in ("r1", "r2", "r3")]
    assert states == ["completed", "cancelled", "cancelled"]


def test_r3_many_prompts_run_in_the_order_of_their_seq(workspace: Workspace, model: FakeModel) -> None:
    session = workspace.session()
    stream = workspace.stream()
    pending = [
        workspace.begin("POST", "/agent", {"session_id": session, "prompt": f"p{n}", "run_id": f"r{n}"})
        for n in range(30)
    ]
    seqs = {answer["run_id"]: answer["seq"] for answer in (p.answer().ok() for p in pending)}
    for run_id in seqs:
        assert "error" not in stream.terminal(run_id)
    ended = [e.payload["run_id"] for e in stream.of_type("run_complete")]
    assert ended == sorted(seqs, key=lambda run_id: seqs[run_id])
    assert sorted(seqs.values()) == list(range(1, 31))


def test_r1_a_queued_prompt_can_be_edited_until_it_runs(workspace: Workspace, model: FakeModel) -> None:
    model.on(gated)
    session = workspace.session()
    prompts = f"/agent/sessions/{session}/prompts"
    workspace.prompt(session, "apples", run_id="r1")
    workspace.prompt(session, "pears", run_id="r2")
    workspace.request("PATCH", f"{prompts}/r1", {"prompt": "plums"}).refused(409, "too_late")
    workspace.request("PATCH", f"{prompts}/r2", {"prompt": "  "}).refused(400, "empty_prompt")
    edited = workspace.request("PATCH", f"{prompts}/r2", {"prompt": "plums"}).ok()
    assert (edited["prompt"], edited["state"]) == ("plums", "queued")
    assert workspace.queued(session) == ["plums"]
    model.release("go")
    assert workspace.ended("r2")["text"] == "about plums"
    workspace.request("PATCH", f"{prompts}/r2", {"prompt": "figs"}).refused(409, "too_late")
    assert [text_of(m) for m in workspace.messages(session) if m["role"] == "user"] == ["apples", "plums"]


def test_r1_a_prompt_edited_before_it_is_recorded_runs_once_with_the_text_that_was_told(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(gated)
    session = workspace.session()
    workspace.prompt(session, "apples", run_id="r1")
    with server.blocked_store():
        workspace.begin_prompt(session, "pears", run_id="r2")
        edit = workspace.begin("PATCH", f"/agent/sessions/{session}/prompts/r2", {"prompt": "plums"})
    assert edit.answer().ok()["prompt"] == "plums"
    model.release("go")
    assert workspace.ended("r2")["text"] == "about plums"


def test_r8_one_queued_prompt_can_be_dropped(workspace: Workspace, model: FakeModel) -> None:
    model.on(gated)
    session = workspace.session()
    stream = workspace.stream()
    prompts = f"/agent/sessions/{session}/prompts"
    for run_id in ("r1", "r2", "r3"):
        workspace.prompt(session, run_id, run_id=run_id)
    workspace.request("DELETE", f"{prompts}/r1").refused(409, "too_late")
    assert workspace.request("DELETE", f"{prompts}/r2").ok()["covered"] == [{"run_id": "r2", "state_found": "queued"}]
    workspace.request("DELETE", f"{prompts}/r2").refused(409, "too_late")
    assert stream.terminal("r2")["cancelled"] is True
    assert workspace.run("r2")["cancelled_by"] == "queue_remove"
    model.release("go")
    assert stream.terminal("r3")["text"] == "about r3"


def test_r8_deleting_a_session_ends_its_runs_first(workspace: Workspace, model: FakeModel) -> None:
    model.on(gated)
    session = workspace.session()
    stream = workspace.stream()
    for run_id in ("r1", "r2"):
        workspace.prompt(session, run_id, run_id=run_id)
    model.wait_for(lambda: len(model.requests) == 1)
    workspace.request("DELETE", f"/sessions/{session}").ok()
    for run_id in ("r1", "r2"):
        assert stream.terminal(run_id)["cancelled"] is True
        assert workspace.run(run_id)["cancelled_by"] == "session_delete"
    stream.wait_for(lambda seen: [e for e in seen if (e.type, e.change) == ("session", "deleted")])
    workspace.request("GET", f"/sessions/{session}").refused(404, "session_not_found")
    workspace.request("POST", "/agent", {"session_id": session, "prompt": "x"}).refused(404, "session_not_found")


def test_r8_a_prompt_that_arrives_while_its_session_is_deleted_is_not_stranded(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(gated)
    session = workspace.session()
    workspace.prompt(session, "first", run_id="r1")
    model.wait_for(lambda: len(model.requests) == 1)
    with server.blocked_store():
        delete = workspace.begin("DELETE", f"/sessions/{session}")
        model.wait_for(lambda: model.requests[0].ended)  # r1 has been stopped
        prompt = workspace.begin("POST", "/agent", {"session_id": session, "prompt": "late", "run_id": "r2"})
        until(lambda: prompt.is_answered() or server.open_runs("accepted") == 1)
    answer = prompt.answer()
    model.release("go")
    delete.answer().ok()
    if answer.status == 202:
        assert workspace.ended("r2")["state"] == "cancelled"
    else:
        answer.refused(404, "session_not_found")
    assert server.open_runs("active") == server.open_runs("accepted") == 0


@pytest.fixture
def narrow(tmp_path: Path, model: FakeModel) -> Iterator[Workspace]:
    """A workspace in which two prompts may wait."""
    with running(tmp_path, provider_config(model.url, "[limits]\nqueue_per_session = 2")) as server:
        yield server.workspace()


def test_r1_a_full_queue_refuses_with_a_retryable_answer(narrow: Workspace, model: FakeModel) -> None:
    model.on(gated)
    session = narrow.session()
    for run_id in ("r1", "r2", "r3"):
        narrow.prompt(session, run_id, run_id=run_id)
    body = {"session_id": session, "prompt": "r4", "run_id": "r4"}
    answer = narrow.request("POST", "/agent", body)
    answer.refused(429, "queue_full")
    assert answer.body["retry_after"] > 0
    assert int(answer.headers["retry-after"]) > 0
    narrow.request("GET", "/runs/r4").refused(404, "run_not_found")
    again = narrow.request("POST", "/agent", {**body, "prompt": "r3", "run_id": "r3"})
    assert (again.status, again.body["state"]) == (202, "queued")
    model.release("go")
    narrow.ended("r3")
    assert narrow.request("POST", "/agent", body).status == 202
    narrow.ended("r4")


def test_scenario_19_summarising_is_a_run_like_any_other(workspace: Workspace, model: FakeModel) -> None:
    """In the middle of a run: test_e2e_agent, through every wire format."""
    session = workspace.session()
    workspace.ended(workspace.prompt(session, "hello")["run_id"])
    model.on(lambda request: Reply(text="They said hello."))
    stream = workspace.stream()
    answer = workspace.request("POST", f"/agent/sessions/{session}/summarize")
    assert answer.status == 200
    text = stream.terminal(answer.body["run_id"])["text"]
    assert text.startswith("They said hello.") and text.endswith("in their own words, the newest last:\nhello")
    assert workspace.ended(answer.body["run_id"])["state"] == "completed"
    (summary,) = (message for message in workspace.messages(session) if message.get("is_summary_message"))
    assert workspace.get(f"/sessions/{session}")["summary_message_id"] == summary["id"]
