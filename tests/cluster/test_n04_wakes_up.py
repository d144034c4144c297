"""N4: a node that wakes up after its workspaces were taken writes nothing, ends what it lost, and serves on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from covey.cluster.node import boottime
from covey.cluster.whereabouts import There
from covey.machine.names import workspace_tag
from covey.tools.process_table import tagged
from tests.cluster.nodes_in_process import node_in_process
from tests.support.cluster import Cluster
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.postgres import postgres
from tests.support.server import Workspace, provider_config, until


def _reply(request: Recorded) -> Reply:
    if request.prompt != "start a job, then go on for ever":
        return Reply()
    if request.call_number == 0:
        job = Call(name="bash", input={"command": "sleep 1000", "background": True})
        return Reply(text="", tools=(job,))
    return Reply(chunks=3, gates={1: "awake"})


def test_n4_a_node_that_wakes_up_answers_nothing_from_its_old_memory_and_ends_what_it_lost(
    server: Cluster, workspace: Workspace, model: FakeModel
) -> None:
    model.on(_reply)
    session = workspace.session()
    workspace.prompt(session, "start a job, then go on for ever", run_id="lost", yolo=True)
    workspace.prompt(session, "next", run_id="next")
    model.wait_for(lambda: any(request.call_number == 1 for request in model.requests))
    owner = server.owner(workspace.id)
    tag = workspace_tag(workspace.id, owner.name)
    assert tagged(tag), "the job runs on the node that started it"
    direct = Workspace(owner, workspace.id, workspace.client_id)
    stream = direct.stream()
    server.freeze(owner)
    try:
        assert workspace.ended("lost")["state"] == "interrupted"
        assert workspace.ended("next")["state"] == "completed"
        late = [direct.begin("GET", "/runs/lost"), direct.begin("GET", f"/agent/sessions/{session}/prompts/list")]
    finally:
        server.thaw(owner)
    model.release("awake")
    run, queue = (pending.answer().ok() for pending in late)
    assert run["state"] == "interrupted", "it waited in the socket of a frozen node, and was answered from its memory"
    assert queue == []
    until(lambda: not tagged(tag))
    stream.wait_end()  # its client has to resume where the workspace is now
    workspace.prompt(session, "last", run_id="last")
    assert workspace.ended("last")["state"] == "completed"
    assert owner.request("GET", "/v1/ready").ok()
    stream.close()


@pytest.mark.anyio
async def test_n4_who_was_not_seen_for_longer_than_the_grace_beats_before_it_answers(
    tmp_path: Path, model: FakeModel
) -> None:
    """Its connections were cut, and it was taken for dead for that: long before its own lease is over."""
    (config := tmp_path / "config.toml").write_text(provider_config(model.url))
    (project := tmp_path / "project").mkdir()
    url, later = postgres().new_database(), [0.0]
    async with (
        node_in_process(url, "a", tmp_path / "a", config) as a,
        node_in_process(url, "b", tmp_path / "b", config) as b,
    ):
        a.node._clock = lambda: boottime() + later[0]
        here = await a.open(project)
        await a.node.beat()
        assert a.whereabouts.is_here(here.id)
        assert await asyncio.to_thread(b.node._table.declare_dead, a.node.id)
        await b.open(project)
        later[0] = a.node.times.grace_s
        assert a.node.lease_left_s() > 1 and not a.whereabouts.is_here(here.id)
        await a.node.look_around()
        assert not a.whereabouts.is_here(here.id), "that it is connected again says nothing of what was lost"
        found = await a.whereabouts.find(here.id)
        assert isinstance(found, There) and found.name == "b"
