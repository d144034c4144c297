"""The scenarios of the rules (R1–R18) in a cluster: the tests of one server, with each request at another node.

They are taken as they are, not written again: here `server` and `workspace` are three nodes (`conftest.py`). Three of
them are about a server that stops or is killed, for which a cluster has others: those are written out below.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from types import FunctionType

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
from tests.support.server import Workspace, outline, provider_config

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
HEAVY = {"22"}
"""Those that take a minute: `make heavy`."""


def _in_a_cluster(name: str, test: FunctionType) -> FunctionType:
    """A test of its own: marks of this one are not for the one that it was taken from."""
    copy = FunctionType(test.__code__, test.__globals__, name, test.__defaults__, test.__closure__)
    copy.__dict__.update({key: list(value) if key == "pytestmark" else value for key, value in vars(test).items()})
    return pytest.mark.heavy(copy) if name[14:16] in HEAVY else copy


globals().update(
    {name: _in_a_cluster(name, test) for name, test in OF_ONE_SERVER.items() if name[14:16] not in IN_A_CLUSTER}
)


@pytest.fixture(autouse=True)
def servers_are_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a test that starts one with a configuration of its own."""
    monkeypatch.setattr(test_e2e_bad_weather, "running", partial(running_cluster, names=("a", "b")))


def test_all_scenarios_are_here() -> None:
    found = {int(match[1]) for name in globals() if (match := re.match(r"test_scenario_(\d\d)", name))}
    assert found == set(range(1, 26))


def test_scenario_17_a_node_that_leaves_writes_the_last_words_and_refuses_nothing(
    tmp_path: Path, model: FakeModel
) -> None:
    """A run that does not end in time is cancelled, as by a server that shuts down. Other nodes go on with the rest."""
    model.on(lambda request: Reply(text="half ", ending="silence") if request.prompt == "one" else Reply(text="done"))
    with running_cluster(tmp_path, provider_config(model.url), names=("a", "b"), drain_s=0.5) as server:
        workspace = server.workspace()
        session = workspace.session()
        stream = workspace.stream()
        workspace.prompt(session, "one", run_id="r1")
        stream.wait_delta()
        leaving = server.owner(workspace.id)
        server.leave(leaving)
        workspace.prompt(session, "late", run_id="r2")
        assert workspace.ended("r1")["cancelled_by"] == "shutdown"
        assert leaving.wait() == 0
        assert workspace.ended("r2")["text"] == "done"
        assert outline(workspace.messages(session)) == ["one", "assistant canceled", "late", "assistant end_turn"]
        workspace.close()


def test_scenario_24_a_node_leaves_between_accept_and_enter(
    server: Cluster, workspace: Workspace, model: FakeModel
) -> None:
    """The run is not cancelled: the next owner runs it."""
    session = workspace.session()
    leaving = server.owner(workspace.id)
    with server.blocked_store():
        prompt = workspace.begin_prompt(session, "hello", run_id="r1")
        server.leave(leaving)
    assert prompt.answer().status == 202
    assert workspace.ended("r1")["state"] == "completed"
    assert leaving.wait() == 0
    assert outline(workspace.messages(session)) == ["hello", "assistant end_turn"]
    assert len(model.requests) == 1


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
