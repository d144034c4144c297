"""Same id, same run (R14): a client whose answer got lost simply posts again, also after the server was restarted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.fake_model import FakeModel, Reply
from tests.support.server import Server, Workspace, outline, until

pytestmark = pytest.mark.borrows_server


def test_scenario_21_the_same_run_id_posted_ten_times_at_once(workspace: Workspace, model: FakeModel) -> None:
    session = workspace.session()
    with ThreadPoolExecutor(10) as pool:
        receipts = list(pool.map(lambda _: workspace.prompt(session, "hello", run_id="same"), range(10)))
    assert {receipt["seq"] for receipt in receipts} == {receipts[0]["seq"]}
    assert workspace.ended("same")["state"] == "completed"
    assert outline(workspace.messages(session)) == ["hello", "assistant end_turn"]
    assert len(model.requests) == 1
    assert len(workspace.get(f"/runs?session_id={session}")) == 1


def test_r14_posting_again_tells_the_state_of_the_run_that_exists(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(gates={0: "go"}))
    session = workspace.session()
    first = workspace.prompt(session, "hello", run_id="r1")
    assert workspace.prompt(session, "hello", run_id="r1") == {**first, "state": "active"}
    workspace.prompt(session, "later", run_id="r2")
    assert workspace.prompt(session, "later", run_id="r2")["state"] == "queued"
    model.release("go")
    workspace.ended("r2")
    assert workspace.prompt(session, "hello", run_id="r1") == {**first, "state": "completed"}
    assert len(model.requests) == 2


def test_r14_the_same_id_with_other_content_is_refused(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(gates={0: "go"}))
    one, two = workspace.session(), workspace.session()
    body = {"session_id": one, "prompt": "hello", "run_id": "r1"}
    attachment = {"file_path": "a.txt", "file_name": "a.txt", "mime_type": "text/plain", "content": "YQ=="}
    others: list[dict[str, Any]] = [
        {"prompt": "other"},
        {"session_id": two},
        {"mode": "fold"},
        {"attachments": [attachment]},
    ]
    workspace.request("POST", "/agent", body).ok()
    for other in others:
        workspace.request("POST", "/agent", {**body, **other}).refused(409, "run_id_reused")
    model.release("go")
    workspace.ended("r1")
    for other in others:
        workspace.request("POST", "/agent", {**body, **other}).refused(409, "run_id_reused")
    assert [len(workspace.messages(session)) for session in (one, two)] == [2, 0]


def test_r14_the_same_id_in_two_sessions_at_once(server: Server, workspace: Workspace) -> None:
    one, two = workspace.session(), workspace.session()
    with server.blocked_store():
        first = workspace.begin_prompt(one, "hello", run_id="r1")
        second = workspace.begin("POST", "/agent", {"session_id": two, "prompt": "hello", "run_id": "r1"})
        until(lambda: server.open_runs("accepted") == 2)
    assert first.answer().status == 202
    second.answer().refused(409, "run_id_reused")
    assert workspace.ended("r1")["state"] == "completed"
    assert workspace.messages(two) == []


def test_r14_holds_after_a_restart(server: Server, workspace: Workspace, model: FakeModel) -> None:
    """B12: the retry comes after the server was killed and started again."""
    model.on(lambda request: Reply(gates={0: "go"} if request.prompt == "two" else {}))
    session = workspace.session()
    first = workspace.prompt(session, "one", run_id="r1")
    workspace.ended("r1")
    second = workspace.prompt(session, "two", run_id="r2")
    third = workspace.prompt(session, "three", run_id="r3")
    model.wait_for(lambda: len(model.requests) == 2)
    server.kill()
    server.start()
    prompts = {"r1": "one", "r2": "two", "r3": "three"}
    again = [workspace.prompt(session, prompt, run_id=run_id) for run_id, prompt in prompts.items()]
    assert [receipt["seq"] for receipt in again] == [receipt["seq"] for receipt in (first, second, third)]
    assert [workspace.ended(run_id)["state"] for run_id in prompts] == [
        "completed", "interrupted", "completed",
    ]  # fmt: skip
    workspace.request("POST", "/agent", {"session_id": session, "prompt": "other", "run_id": "r1"}).refused(
        409, "run_id_reused"
    )
    assert len(model.requests) == 3
    assert workspace.prompt(session, "four")["seq"] > third["seq"]


def test_r14_a_prompt_whose_answer_was_lost_is_posted_again(server: Server, workspace: Workspace) -> None:
    session = workspace.session()
    with server.blocked_store():
        workspace.begin_prompt(session, "hello", run_id="r1").abandon()
        again = workspace.begin("POST", "/agent", {"session_id": session, "prompt": "hello", "run_id": "r1"})
    assert again.answer().status == 202
    assert workspace.ended("r1")["state"] == "completed"
    assert len(workspace.messages(session)) == 2


def test_r14_a_cancel_does_not_touch_a_run_that_has_ended_while_its_id_is_posted_again(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    session = workspace.session()
    workspace.prompt(session, "hello", run_id="r1")
    before = workspace.ended("r1")
    with server.blocked_store():
        again = workspace.begin_prompt(session, "hello", run_id="r1")
        cancel = workspace.begin("POST", f"/agent/sessions/{session}/cancel")
        server.request("GET", "/v1/health").ok()  # by then it has most likely arrived; if not, all below holds as well
        assert workspace.run("r1") == before, "whoever looks sees the run that there is"
    assert again.answer().ok()["state"] == "completed"
    assert cancel.answer().ok()["covered"] == []
    assert workspace.run("r1") == before
    assert len(model.requests) == 1


def test_r14_an_early_cancel_survives_a_restart(server: Server, workspace: Workspace, model: FakeModel) -> None:
    session = workspace.session()
    workspace.cancel_run("early")
    server.kill()
    server.start()
    workspace.prompt(session, "hello", run_id="early")
    assert workspace.ended("early")["state"] == "cancelled"
    assert not model.requests
