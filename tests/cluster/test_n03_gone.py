"""N3: a node that is gone is noticed; its active runs end once, as interrupted, and what waited goes on elsewhere."""

from __future__ import annotations

from tests.support.cluster import Cluster
from tests.support.fake_model import FakeModel, Reply
from tests.support.server import Workspace, outline


def _busy(workspace: Workspace, model: FakeModel) -> tuple[str, str]:
    """A session with a run that does not end and two that wait for it, and one that does nothing."""
    model.on(lambda request: Reply(gates={1: "never"}) if "endless" in request.prompt else Reply())
    session, idle = workspace.session(), workspace.session()
    workspace.prompt(session, "endless", run_id="first")
    workspace.prompt(session, "two", run_id="second")
    workspace.prompt(session, "three", run_id="third")
    workspace.prompt(idle, "done before", run_id="before")
    assert workspace.ended("before")["state"] == "completed"
    model.wait_for(lambda: any("endless" in request.prompt for request in model.requests))
    return session, idle


def _went_on(workspace: Workspace, session: str) -> None:
    assert workspace.ended("first")["state"] == "interrupted"
    assert [workspace.ended(run_id)["state"] for run_id in ("second", "third")] == ["completed", "completed"]
    said = outline(workspace.messages(session))
    assert [line for line in said if line in ("endless", "two", "three")] == ["endless", "two", "three"]


def test_n3_a_killed_node_ends_nothing_twice_and_its_queue_goes_on_elsewhere(
    server: Cluster, workspace: Workspace, model: FakeModel
) -> None:
    session, _ = _busy(workspace, model)
    owner = server.owner(workspace.id)
    owner.kill()
    _went_on(workspace, session)
    assert server.owner(workspace.id) is not owner
    assert sum("endless" in request.prompt for request in model.requests) == 1, "what was cut off is not repeated"


def test_n3_a_frozen_node_is_noticed_by_its_lease(server: Cluster, workspace: Workspace, model: FakeModel) -> None:
    session, _ = _busy(workspace, model)
    owner = server.owner(workspace.id)
    server.freeze(owner)
    try:
        _went_on(workspace, session)
        assert server.owner(workspace.id) is not owner
    finally:
        server.thaw(owner)


def test_n3_the_next_life_of_a_node_knows_that_the_one_before_is_over(
    server: Cluster, workspace: Workspace, model: FakeModel
) -> None:
    """It has the same directory, so nobody has to wait for a lease: also if it is the only node that there is."""
    session, _ = _busy(workspace, model)
    owner = server.owner(workspace.id)
    others = [node for node in server.nodes if node is not owner]
    for node in others:
        node.stop()
    owner.kill()
    owner.start()
    _went_on(workspace, session)
    assert server.owner(workspace.id) is owner
