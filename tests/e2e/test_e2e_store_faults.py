"""A full disk, a locked store, a broken file: a clear answer, nothing half-recorded, and then it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from tests.support.fake_model import FakeModel, Reply
from tests.support.server import Server, Workspace, outline, provider_config, running, until
from tests.support.small_disk import full, mounted

LARGE = "x" * 300_000
"""A prompt that does not fit into what is left in the store's files."""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """The data directory of the server, on a disk of its own."""
    with mounted(tmp_path / "data") as disk:
        yield disk


@pytest.fixture
def cramped(tmp_path: Path, small_disk: Path, model: FakeModel) -> Iterator[Workspace]:
    with running(tmp_path, provider_config(model.url)) as server:
        workspace = server.workspace()
        yield workspace
        workspace.close()


def fill_the_slack(workspace: Workspace, session: str, prefix: str) -> list[str]:
    """Post until the store refuses: its files may have had some room. Gives the runs that were accepted."""
    accepted: list[str] = []
    for number in range(50):
        run_id = f"{prefix}{number}"
        answer = workspace.request("POST", "/agent", {"session_id": session, "prompt": LARGE, "run_id": run_id})
        if answer.status != 202:
            answer.refused(503, "store_unavailable")
            workspace.request("GET", f"/runs/{run_id}").refused(404, "run_not_found")
            return accepted
        accepted.append(run_id)
    raise AssertionError("the disk is not full")


def test_r1_a_full_disk_refuses_prompts_and_records_nothing_of_them(
    cramped: Workspace, small_disk: Path, model: FakeModel
) -> None:
    session = cramped.session()
    with full(small_disk):
        accepted = fill_the_slack(cramped, session, "r")
        until(lambda: cramped.request("POST", "/sessions", {"title": "t" * 1000}).status == 503)  # the file had room
        assert cramped.server.request("GET", "/v1/health").ok() == {"status": "ok"}
        known = len(cramped.get("/sessions"))
        cramped.request("POST", "/sessions", {"title": "t" * 1000}).refused(503, "store_unavailable")
        assert len(cramped.get("/sessions")) == known
    refused = f"r{len(accepted)}"
    cramped.prompt(session, "now it fits", run_id=refused)
    assert cramped.ended(refused)["state"] == "completed"
    assert [cramped.ended(run_id)["state"] for run_id in accepted] == ["completed"] * len(accepted)


def test_r12_a_run_under_way_ends_properly_once_there_is_room(
    cramped: Workspace, small_disk: Path, model: FakeModel
) -> None:
    model.on(lambda request: Reply(text=LARGE, gates={0: "go"}))
    session, other = cramped.session(), cramped.session()
    stream = cramped.stream()
    cramped.prompt(session, "hello", run_id="active")
    cramped.prompt(session, "next", run_id="queued")
    model.wait_for(lambda: len(model.requests) == 1)
    with full(small_disk):
        fill_the_slack(cramped, other, "r")
        model.release("go")
        until(lambda: cramped.server.open_runs("active") and cramped.run("active").get("waiting_on") == "store")
        assert not [e for e in stream.of_type("run_complete") if e.payload["run_id"] == "active"]
    assert stream.terminal("active")["text"] == LARGE
    assert cramped.ended("queued")["state"] == "completed"
    assert outline(cramped.messages(session)) == ["hello", "assistant end_turn", "next", "assistant end_turn"]


def test_r13_a_server_on_a_full_disk_stops_in_time_and_heals(
    cramped: Workspace, small_disk: Path, model: FakeModel
) -> None:
    model.on(lambda request: Reply(gates={0: "go"}))
    session, other = cramped.session(), cramped.session()
    cramped.prompt(session, "hello", run_id="active")
    model.wait_for(lambda: len(model.requests) == 1)
    with full(small_disk):
        fill_the_slack(cramped, other, "r")
        cramped.server.stop()
    model.release("go")
    cramped.server.start()
    assert cramped.ended("active")["state"] in ("cancelled", "interrupted")
    assert cramped.ended(cramped.prompt(session, "again")["run_id"])["state"] == "completed"


def test_r1_a_locked_store_refuses_and_a_cancel_meanwhile_leaves_no_trace(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    session = workspace.session()
    with server.blocked_store():
        prompt = workspace.begin_prompt(session, "hello", run_id="r1")
        cancel = workspace.begin_cancel(session, "r1")
        prompt.answer().refused(503, "store_unavailable")
    answer = cancel.answer()
    assert answer.status in (200, 503)
    if answer.status == 200:
        assert answer.body["covered"] == []
    workspace.request("GET", "/runs/r1").refused(404, "run_not_found")
    workspace.prompt(session, "hello", run_id="r1")
    assert workspace.ended("r1")["state"] == "completed"
    assert len(model.requests) == 1


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database " * 1000)


def _newer(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 999)
    connection.close()


def _directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "told"), [(_garbage, "not a database"), (_newer, "upgrade Covey"), (_directory, "cannot open")]
)
def test_r15_a_store_that_cannot_be_used_is_said_so_at_the_start(
    tmp_path: Path, model: FakeModel, damage: Callable[[Path], None], told: str
) -> None:
    server = Server(tmp_path, provider_config(model.url))
    server.data_dir.mkdir(mode=0o700)
    damage(server.data_dir / "covey.db")
    with pytest.raises(AssertionError):
        server.start()
    assert server.wait() == 1
    assert told in server.log()
    assert "Traceback" not in server.log()
    server.close()


@pytest.mark.heavy  # as with a full disk: it waits as long as it may
def test_r13_a_server_whose_store_is_locked_stops_in_time_and_heals(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(lambda request: Reply(text="half", ending="silence"))
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    stream.wait_delta()
    with server.blocked_store():
        server.stop()
    assert "Traceback" not in server.log()
    server.start()
    assert workspace.ended("r1")["state"] in ("cancelled", "interrupted")
