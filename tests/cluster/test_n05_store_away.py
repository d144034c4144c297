"""N5: the store goes away: nothing is lost, turns wait with their words, and nobody takes anything from anybody."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, running_cluster
from tests.support.fake_model import FakeModel, Reply
from tests.support.postgres import PostgresProcess
from tests.support.server import provider_config

LEASE_S = 3.0


@pytest.fixture
def database() -> Iterator[PostgresProcess]:
    process = PostgresProcess.fresh()
    yield process
    process.remove()


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as made:
        yield made


@pytest.fixture
def cluster(tmp_path: Path, model: FakeModel, database: PostgresProcess) -> Iterator[Cluster]:
    with running_cluster(
        tmp_path, provider_config(model.url), names=("a", "b"), lease_s=LEASE_S, database=database
    ) as made:
        yield made


def test_n5_an_outage_that_is_longer_than_a_lease_interrupts_nothing(
    cluster: Cluster, model: FakeModel, database: PostgresProcess
) -> None:
    model.on(lambda request: Reply(chunks=4, gates={2: "away"}) if request.prompt == "long" else Reply())
    workspaces = [cluster.workspace(_directory(cluster, name)) for name in ("one", "two", "three")]
    sessions = [workspace.session() for workspace in workspaces]
    for workspace, session in zip(workspaces, sessions, strict=True):
        workspace.prompt(session, "long", run_id="long")
        workspace.prompt(session, "waits", run_id="waits")
    model.wait_for(lambda: len(model.requests) == 3)
    owners = {workspace.id: cluster.owner(workspace.id).name for workspace in workspaces}
    database.stop()
    model.release("away")  # the turns have words that nobody can write
    refused = workspaces[0].request("POST", "/agent", {"session_id": sessions[0], "prompt": "now", "run_id": "now"})
    refused.refused(503, "store_unavailable")
    time.sleep(LEASE_S * 1.5)  # what is tested is that time passes, and every lease runs out
    database.start()
    for workspace in workspaces:
        assert workspace.ended("long")["state"] == "completed"
        assert workspace.ended("waits")["state"] == "completed"
        assert cluster.sql("SELECT 1 FROM runs WHERE workspace_id = $1 AND run_id = 'now'", workspace.id) == []
    took = {workspace.id: _takers(cluster, workspace.id) for workspace in workspaces}
    assert took == {workspace_id: {name} for workspace_id, name in owners.items()}, "somebody was robbed"


def _directory(cluster: Cluster, name: str) -> Path:
    directory = cluster.directory / "projects" / name
    directory.mkdir(parents=True)
    return directory


def _takers(cluster: Cluster, workspace_id: str) -> set[str]:
    """Who has run anything in a workspace since: by whose log its last run was started."""
    session = cluster.sql("SELECT session_id FROM runs WHERE workspace_id = $1 LIMIT 1", workspace_id)[0][0]
    return {node.name for node in cluster.nodes if f"run waits started: session {session}" in node.log()}


def test_n5_a_restart_of_the_store_is_not_noticed_by_those_who_wait(
    cluster: Cluster, model: FakeModel, database: PostgresProcess
) -> None:
    model.on(lambda request: Reply(chunks=4, gates={2: "again"}))
    workspace = cluster.workspace()
    session = workspace.session()
    workspace.prompt(session, "long", run_id="long")
    model.wait_for(lambda: len(model.requests) == 1)
    database.stop("fast")
    database.start()
    model.release("again")
    assert workspace.ended("long")["state"] == "completed"
    assert not any("taken for dead" in node.log() for node in cluster.nodes)
