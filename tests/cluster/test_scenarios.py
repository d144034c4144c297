"""The scenarios of the rules (R1–R18) in a cluster: the tests of one server, with each request at another node.

They are taken as they are, not written again: here `server` and `workspace` are three nodes (`conftest.py`). Three of
them are about a server that stops or is killed, for which a cluster has others: those are written out below.
"""

from __future__ import annotations

import re

import pytest

from tests.e2e import (
    test_e2e_bad_weather,
    test_e2e_cancel,
    test_e2e_crash,
    test_e2e_idempotency,
    test_e2e_ownership,
    test_e2e_queue,
    test_e2e_shutdown,
    test_e2e_stream,
    test_e2e_watchers,
)
from tests.e2e.test_e2e_ownership import gated as gated
from tests.support.cluster import Cluster, running_cluster
from tests.support.fake_model import FakeModel, Reply
from tests.support.server import Workspace, outline

MODULES = (
    test_e2e_bad_weather,
    test_e2e_cancel,
    test_e2e_idempotency,
    test_e2e_ownership,
    test_e2e_queue,
    test_e2e_stream,
    test_e2e_watchers,
)
IN_A_CLUSTER = {"17", "20", "24"}
OF_ONE_SERVER = {
    name: test
    for module in (*MODULES, test_e2e_crash, test_e2e_shutdown)
    for name, test in vars(module).items()
    if name.startswith("test_scenario_")
}
globals().update({name: test for name, test in OF_ONE_SERVER.items() if name[14:16] not in IN_A_CLUSTER})


@pytest.fixture(autouse=True)
def servers_are_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a test that starts one with a configuration of its own."""
    monkeypatch.setattr(test_e2e_bad_weather, "running", running_cluster)


def test_all_scenarios_are_here() -> None:
    numbers = {re.match(r"test_scenario_(\d\d)", name) for name in globals()} - {None}
    assert {int(found[1]) for found in numbers if found} == set(range(1, 26))


def test_scenario_20_kill_with_one_active_two_queued_and_one_accepted(
    server: Cluster, workspace: Workspace, model: FakeModel
) -> None:
    """Nobody starts the owner again: another node goes on."""
    model.on(lambda request: Reply(text="half an answer ", ending="silence") if request.prompt == "r1" else Reply())
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "r1", run_id="r1")
    stream.wait_delta()
    for run_id in ("r2", "r3", "r4"):
        workspace.prompt(session, run_id, run_id=run_id)
    stream.wait_state("r4", "queued")
    stream.close()
    with server.blocked_store():
        server.kill()
    ends = {run_id: workspace.ended(run_id) for run_id in ("r1", "r2", "r3", "r4")}
    assert [end["state"] for end in ends.values()] == ["interrupted", "completed", "completed", "completed"]
    assert [run["seq"] for run in ends.values()] == [1, 2, 3, 4]
    asked = [text for text in outline(workspace.messages(session)) if not text.startswith("assistant")]
    assert asked == ["r1", "r2", "r3", "r4"]
    assert workspace.stream(last_event_id=stream.last_id).terminal("r1")["interrupted"] is True
    assert len(model.requests) == 4
