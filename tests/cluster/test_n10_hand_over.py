"""N10: an upgrade cancels and interrupts nothing: SIGTERM on a node hands its workspaces over."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from covey.engine import workspace as engine_workspace
from covey.store import journal
from covey.store.base import Change, RunExists, StoreFailed
from covey.store.postgres.store import PostgresStore
from tests.cluster.nodes_in_process import ended, node_in_process, post
from tests.support.cluster import Cluster
from tests.support.fake_model import FakeModel, Reply
from tests.support.postgres import postgres
from tests.support.server import Workspace, provider_config, until


def test_n10_turns_end_first_and_what_waits_is_started_by_the_next_owner(
    server: Cluster, workspace: Workspace, model: FakeModel
) -> None:
    model.on(lambda request: Reply(gates={1: "go on"}) if request.prompt == "long" else Reply())
    session, other = workspace.session(), workspace.session()
    workspace.prompt(session, "long", run_id="long")
    workspace.prompt(session, "waits", run_id="waits")
    model.wait_for(lambda: bool(model.requests))
    owner = server.owner(workspace.id)
    owner.signal(signal.SIGTERM)
    until(lambda: server.sql("SELECT draining FROM nodes WHERE name = $1 AND draining", owner.name))
    # Meanwhile it answers, and takes prompts; none of them begins there.
    assert workspace.run("long")["state"] == "active"
    workspace.prompt(other, "new", run_id="new")
    assert workspace.run("new")["state"] == "queued"
    assert owner.process and owner.process.poll() is None
    model.release("go on")
    states = {run_id: workspace.ended(run_id)["state"] for run_id in ("long", "waits", "new")}
    assert states == {"long": "completed", "waits": "completed", "new": "completed"}
    assert owner.wait() == 0
    assert "run waits started" not in owner.log() and "run new started" not in owner.log()
    assert len(model.requests) == 3


def test_n10_a_rolling_restart_of_all_nodes_loses_nothing(
    server: Cluster, workspace: Workspace, model: FakeModel
) -> None:
    model.on(lambda request: Reply(chunks=5, delay_ms=20))
    sessions = [workspace.session() for _ in range(3)]
    posted: list[str] = []

    def post() -> None:
        for number, session in enumerate(sessions):
            run_id = f"r{len(posted)}"
            workspace.prompt(session, f"{number}: {run_id}", run_id=run_id)
            posted.append(run_id)

    for node in server.nodes:
        post()
        node.signal(signal.SIGTERM)
        post()
        assert node.wait(60) == 0
        node.start()
        post()
    assert {workspace.ended(run_id)["state"] for run_id in posted} == {"completed"}
    assert len(model.requests) == len(posted)


def test_n10_after_the_time_for_it_only_what_is_under_way_is_cancelled(
    server: Cluster, workspace: Workspace, model: FakeModel
) -> None:
    """`drain_s` of the nodes here is a minute: a second signal does not wait, and leaves nothing half done."""
    model.on(lambda request: Reply(gates={1: "never"}) if request.prompt == "endless" else Reply())
    session = workspace.session()
    workspace.prompt(session, "endless", run_id="endless")
    workspace.prompt(session, "waits", run_id="waits")
    model.wait_for(lambda: bool(model.requests))
    owner = server.owner(workspace.id)
    owner.signal(signal.SIGTERM)
    until(lambda: server.sql("SELECT draining FROM nodes WHERE name = $1 AND draining", owner.name))
    owner.signal(signal.SIGTERM)
    owner.wait()
    assert workspace.ended("endless")["state"] == "interrupted"
    assert workspace.ended("waits")["state"] == "completed"


@pytest.mark.anyio
async def test_n10_a_store_that_is_away_while_a_node_leaves_is_waited_for(
    tmp_path: Path, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turns have ended, but nobody knows yet: who left now would have them interrupted by the next owner."""
    model.on(lambda request: Reply(gates={1: "go on"}))
    monkeypatch.setattr(engine_workspace, "END_S", 0.0)
    monkeypatch.setattr(journal, "RETRY_S", 0.01)
    (config := tmp_path / "config.toml").write_text(provider_config(model.url))
    (project := tmp_path / "project").mkdir()
    attempts_left = [0]

    class Away(PostgresStore):
        def commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
            if attempts_left[0]:
                attempts_left[0] -= 1
                raise StoreFailed("the store is away", passing=True)
            return super().commit(changes)

    monkeypatch.setattr("tests.cluster.nodes_in_process.PostgresStore", Away)
    url = postgres().new_database()
    async with (
        node_in_process(url, "a", tmp_path / "a", config) as a,
        node_in_process(url, "b", tmp_path / "b", config) as b,
    ):
        here = await a.open(project)
        session = await here.sessions.create("")
        await post(here, session.id, "long", "long")
        await model.until(lambda: bool(model.requests))
        handing_over = asyncio.create_task(a.workspaces.hand_over(here.id, 60.0))
        attempts_left[0] = 20
        model.release("go on")
        assert await handing_over
        assert attempts_left[0] == 0
        assert await ended(await b.workspaces.get(here.id), "long") == "completed"
