"""One real server is killed in the middle of everything and started again: D9, D11, D12, E4 and G4 look at the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.peer_failures.conftest import CONFIG, ask, bash
from tests.support.fake_model import FakeModel
from tests.support.machine import is_alive, pid_in
from tests.support.server import Server, Workspace, running, until
from tests.support.stream import Stream

TOOL = "setsid sleep 1000 & echo $! > child.pid; echo $$ > shell.pid; wait"


@dataclass(frozen=True)
class Restarted:
    server: Server
    workspace: Workspace
    session: str
    unused: str
    before: Stream
    """All that was told before the kill."""
    processes: list[int]
    """What the tool had started."""


@pytest.fixture(scope="module")
def restarted(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[Restarted]:
    """Killed while "a" is in a tool call, "b" waits behind it, and a session has never been used."""
    with running(tmp_path_factory.mktemp("restart"), CONFIG.format(url=model.url)) as server:
        workspace = server.workspace()
        session, unused = workspace.session("used"), workspace.session("unused")
        before = workspace.stream()
        workspace.prompt(session, ask("a", bash(TOOL)), run_id="a")
        workspace.prompt(session, "b", run_id="b")
        before.wait_state("b", "queued")
        files = [server.project / name for name in ("child.pid", "shell.pid")]
        until(lambda: all(file.exists() and file.read_text().endswith("\n") for file in files))
        server.kill()
        before.wait_end()
        server.start()
        yield Restarted(server, workspace, session, unused, before, [pid_in(file) for file in files])
        workspace.close()


def test_d9_sessions_are_listed_although_a_dead_server_left_its_lock(restarted: Restarted) -> None:
    assert f'"pid": {restarted.server.pid}' in (restarted.server.data_dir / "server.lock").read_text()
    listed = {session["id"]: session["title"] for session in restarted.workspace.get("/sessions")}
    assert listed == {restarted.session: "used", restarted.unused: "unused"}


def test_d11_a_session_that_never_ran_can_be_used(restarted: Restarted) -> None:
    run = restarted.workspace.prompt(restarted.unused, "hello")
    assert restarted.workspace.ended(run["run_id"])["state"] == "completed"


def test_d12_watchers_are_told_of_the_runs_that_were_recovered(restarted: Restarted) -> None:
    watching = restarted.workspace.stream(last_event_id=restarted.before.last_id)
    assert watching.terminal("a")["interrupted"] is True
    assert watching.terminal("b")["text"]
    of_b = [event for event in watching.of_type("run") if event.payload["run_id"] == "b"]
    recorded = [event.payload["state"] for event in of_b if event.id]  # without an id: what it waits on meanwhile
    assert recorded == ["active", "completed"]


def test_e4_an_old_cursor_hides_nothing_new_and_repeats_nothing_old(restarted: Restarted) -> None:
    after = restarted.workspace.stream(last_event_id=restarted.before.last_id)
    after.terminal("b")
    ids = [event.id.split(".") for event in (*restarted.before.durable, *after.durable)]
    numbers = [int(number) for _, number in ids]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len({epoch for epoch, _ in ids}) == 1


def test_g4_the_tools_of_a_killed_server_are_found_and_ended_at_the_next_start(restarted: Restarted) -> None:
    restarted.workspace.ended("a")
    until(lambda: not any(is_alive(pid) for pid in restarted.processes))
