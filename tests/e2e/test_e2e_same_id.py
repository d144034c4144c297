"""R14 from outside: a run id that was posted before is answered with its run, whatever is in the way of a new one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fake_model import FakeModel, Reply
from tests.support.server import Server, Workspace, provider_config, running


@pytest.fixture
def narrow(tmp_path: Path, model: FakeModel) -> Iterator[Workspace]:
    """A workspace in whose queue one prompt may wait."""
    with running(tmp_path, provider_config(model.url, "[limits]\nqueue_per_session = 1")) as server:
        workspace = server.workspace()
        yield workspace
        workspace.close()


def ended(workspace: Workspace) -> str:
    """A session with the completed run "r1"."""
    session = workspace.session()
    workspace.prompt(session, "hello", run_id="r1")
    workspace.ended("r1")
    return session


def test_r14_a_full_queue_is_no_answer_to_who_posts_again(narrow: Workspace, model: FakeModel) -> None:
    session = ended(narrow)
    model.on(lambda request: Reply(gates={0: "go"}))
    for run_id in ("active", "waits"):
        narrow.prompt(session, run_id, run_id=run_id)
    body = {"session_id": session, "prompt": "hello", "run_id": "r1"}
    assert narrow.request("POST", "/agent", {**body, "run_id": "r2"}).status == 429
    again = narrow.request("POST", "/agent", body)
    assert (again.status, again.body["state"], again.body["seq"]) == (202, "completed", 1)
    narrow.request("POST", "/agent", {**body, "prompt": "other"}).refused(409, "run_id_reused")
    model.release("go")


def test_r14_neither_is_a_model_that_is_not_there_any_more(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    session = workspace.session()
    body = {"session_id": session, "prompt": "hello", "model": "fake/fake"}
    workspace.request("POST", "/agent", {**body, "run_id": "r1"}).ok()
    workspace.ended("r1")
    server.config.write_text(provider_config(model.url).replace("fake", "other"))
    workspace.request("POST", "/agent/update").ok()
    assert workspace.request("POST", "/agent", {**body, "run_id": "r2"}).status == 400
    assert workspace.request("POST", "/agent", {**body, "run_id": "r1"}).ok()["state"] == "completed"
    server.config.write_text(provider_config(model.url))


def test_r14_an_id_that_the_server_made_can_be_posted_again(workspace: Workspace) -> None:
    session = workspace.session()
    first = workspace.prompt(session, "hello")
    workspace.ended(first["run_id"])
    again = workspace.prompt(session, "hello", run_id=first["run_id"])
    assert (again["seq"], again["state"]) == (first["seq"], "completed")


def test_r14_who_uses_an_id_for_something_else_does_not_disturb_its_run(workspace: Workspace) -> None:
    session = ended(workspace)
    done = threading.Event()
    refused: list[int] = []

    def disturb() -> None:
        while not done.is_set():
            body = {"session_id": session, "prompt": "something else", "run_id": "r1"}
            refused.append(workspace.request("POST", "/agent", body).status)

    disturbers = [threading.Thread(target=disturb) for _ in range(3)]
    for disturber in disturbers:
        disturber.start()
    try:
        for _ in range(100):
            assert workspace.prompt(session, "hello", run_id="r1")["state"] == "completed"
            run = workspace.run("r1")
            assert (run["state"], run["seq"], run["prompt"]) == ("completed", 1, "hello")
            assert [run["state"] for run in workspace.get("/runs")] == ["completed"]
    finally:
        done.set()
        for disturber in disturbers:
            disturber.join()
    assert set(refused) == {409}
