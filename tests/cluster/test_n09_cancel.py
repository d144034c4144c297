"""N9: a cancel reaches the owner from any node, and covers exactly what R4 says."""

from __future__ import annotations

import pytest

from tests.support.cluster import Cluster
from tests.support.fake_model import FakeModel, Reply
from tests.support.server import Workspace, finish_of


@pytest.mark.parametrize("number", range(3))
def test_n9_a_cancel_from_any_node_covers_what_is_open_and_nothing_later(
    server: Cluster, workspace: Workspace, model: FakeModel, number: int
) -> None:
    model.on(lambda request: Reply(gates={0: "never"}) if request.prompt == "one" else Reply())
    session, other = workspace.session(), workspace.session()
    stream = server.nodes[(number + 1) % 3]
    watching = workspace.stream()
    workspace.prompt(session, "one", run_id="one")
    workspace.prompt(session, "two", run_id="two")
    model.wait_for(lambda: len(model.requests) == 1)
    receipt = server.nodes[number].request("POST", f"{workspace.path}/agent/sessions/{session}/cancel").ok()
    assert {covered["run_id"] for covered in receipt["covered"]} == {"one", "two"}
    after = stream.request(
        "POST", f"{workspace.path}/agent", {"session_id": session, "prompt": "three", "run_id": "three"}
    )
    assert after.status == 202
    ends = {run_id: watching.terminal(run_id) for run_id in ("one", "two", "three")}
    assert [ends[run_id].get("cancelled", False) for run_id in ends] == [True, True, False]
    assert not watching.errors
    assert finish_of(workspace.messages(session)[1]) == "canceled"
    assert server.nodes[number].request("POST", f"{workspace.path}/agent/sessions/{other}/cancel").ok()["covered"] == []


def test_n9_a_cancel_overtakes_its_prompt_at_another_node(
    server: Cluster, workspace: Workspace, model: FakeModel
) -> None:
    session = workspace.session()
    for number, node in enumerate(server.nodes):
        run_id = f"r{number}"
        node.request("POST", f"{workspace.path}/runs/{run_id}/cancel").ok()
        other = server.nodes[(number + 1) % 3]
        body = {"session_id": session, "prompt": "hello", "run_id": run_id}
        assert other.request("POST", f"{workspace.path}/agent", body).status == 202
        assert workspace.ended(run_id)["state"] == "cancelled"
    assert not model.requests
