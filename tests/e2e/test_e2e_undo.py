"""Undo with a real server, real tools and real files: also when the server is killed at any commit of it."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support import oracle
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, provider_config, running

GONE = (ConnectionError, http.client.HTTPException, TimeoutError, OSError)
ALLOW = '[permissions]\nallow = ["write", "bash"]\n'
FILES = ("a.txt", "b.txt", "c/d.txt")


def answer(request: Recorded) -> Reply:
    """The prompt says what is written into each of the files; `bash` runs a command instead."""
    if request.call_number:
        return Reply(text="done")
    if request.prompt == "bash":
        return Reply(text="", tools=(Call(name="bash", input={"command": "echo x > made"}, id="c"),))
    writes = [
        Call(name="write", input={"file_path": name, "content": request.prompt}, id=f"{request.prompt}-{name}")
        for name in FILES
    ]
    return Reply(text="", tools=tuple(writes))


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel(answer) as fake:
        yield fake


def talk(workspace: Workspace, *prompts: str) -> str:
    session = workspace.session()
    for prompt in prompts:
        assert workspace.ended(workspace.prompt(session, prompt)["run_id"])["state"] == "completed"
    return session


def contents(server: Server) -> set[str]:
    """What is in the files: one text for all of them, or the world is half way."""
    found = {(server.project / name).read_text() if (server.project / name).exists() else "" for name in FILES}
    assert not list(server.project.rglob(".covey*")), "something was left behind"
    return found


def test_an_undo_takes_back_what_tools_wrote_and_the_model_has_to_look_again(tmp_path: Path, model: FakeModel) -> None:
    with running(tmp_path, provider_config(model.url, ALLOW)) as server:
        workspace = server.workspace()
        session = talk(workspace, "one", "two")
        kept = workspace.messages(session)[:6]
        done = workspace.request("POST", f"/sessions/{session}/undo").ok()
        assert [turn["prompt"] for turn in done["undone"]] == ["two"]
        assert (contents(server), workspace.messages(session)) == ({"one"}, kept)
        workspace.ended(workspace.prompt(session, "two")["run_id"])
        results = [part["data"] for m in workspace.messages(session)[6:] for part in m["parts"] if m["role"] == "tool"]
        assert len(results) == 3 and all("View it again" in result["content"] for result in results)
        assert contents(server) == {"one"}, "what the model has seen is not there any more"


def test_what_a_command_made_is_taken_back_too(tmp_path: Path, model: FakeModel) -> None:
    with running(tmp_path, provider_config(model.url, ALLOW)) as server:
        workspace = server.workspace()
        session = talk(workspace, "bash")
        assert (server.project / "made").exists()
        undone = workspace.request("POST", f"/sessions/{session}/undo").ok()
        assert undone["removed"] == [str(server.project / "made")] and not undone.get("untracked")
        assert not (server.project / "made").exists()


@contextmanager
def faulty(server: Server, fault: str) -> Iterator[Server]:
    server.program = ("-m", "tests.support.faulty_server", fault)
    server.env["PYTHONPATH"] = str(Path(__file__).parents[2])
    server.start()
    try:
        yield server
    finally:
        server.program = ("-m", "covey")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_server_killed_at_any_commit_of_an_undo_leaves_all_or_nothing(
    tmp_path: Path, model: FakeModel, when: str
) -> None:
    outcomes = []
    survived = False
    for number in range(1, 30):
        directory = tmp_path / str(number)
        directory.mkdir()
        server = Server(directory, provider_config(model.url, ALLOW))
        server.may_log_errors = True
        try:
            server.start()
            session = talk(server.workspace(), "one")
            (server.project / "own.txt").write_text("mine")
            server.stop()
            with faulty(server, f"kill:{when}:{number}"):
                survived = undone_by(server, session)
            server.start()
            left = len(server.workspace().messages(session))
            outcomes.append(not left)
            assert (contents(server), left) in (({""}, 0), ({"one"}, 6))
            assert (server.project / "own.txt").read_text() == "mine"
            server.stop()
            oracle.check(server.data_dir, all_ended=True)
        finally:
            server.close()
        if survived:
            break
    assert survived and outcomes[-1], "at last no commit is left at which it could be killed"
    assert True in outcomes[:-1] or when == "before", "it was killed in the middle, and went on"


def undone_by(server: Server, session: str) -> bool:
    """Ask for the undo. True if the server has lived to answer."""
    with suppress(*GONE):
        server.workspace().request("POST", f"/sessions/{session}/undo").ok()
        server.stop()
        return True
    server.wait()
    return False
