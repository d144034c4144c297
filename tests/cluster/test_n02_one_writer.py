"""N2: a change that was decided under an older fence is refused as a whole, whoever decided it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.protocol.errors import ApiError
from tests.cluster.nodes_in_process import ended, node_in_process, post
from tests.support.fake_model import FakeModel, Reply
from tests.support.postgres import postgres
from tests.support.server import provider_config

pytestmark = pytest.mark.anyio


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as made:
        yield made


@pytest.fixture
def config(tmp_path: Path, model: FakeModel) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(provider_config(model.url))
    return path


async def test_n2_a_node_that_was_taken_for_dead_writes_nothing_more(
    tmp_path: Path, config: Path, model: FakeModel
) -> None:
    model.on(lambda request: Reply(chunks=3, gates={1: "go"}) if request.prompt == "long" else Reply())
    url, project = postgres().new_database(), tmp_path / "project"
    project.mkdir()
    async with (
        node_in_process(url, "a", tmp_path / "a", config) as a,
        node_in_process(url, "b", tmp_path / "b", config) as b,
    ):
        here = await a.open(project)
        session = await here.sessions.create("")
        assert await post(here, session.id, "long", "long") in ("accepted", "active")
        await post(here, session.id, "next", "next")
        await asyncio.to_thread(model.wait_for, lambda: bool(model.requests))
        await asyncio.to_thread(b.node._table.declare_dead, a.node.id)
        await b.node.look_around()
        there = await b.workspaces.get(here.id)
        assert await ended(there, "long") == "interrupted"
        assert await ended(there, "next") == "completed"
        model.release("go")
        with pytest.raises(ApiError) as moved:
            await post(here, session.id, "late", "late")
        assert moved.value.code == "workspace_moved"
        assert not a.workspaces.is_open(here.id), "the refusal told it that it has lost the workspace"
        assert await b.shared.journal.read(b.shared.store.run, here.id, "late") is None
        await a.node.beat()
        assert a.node.id != "a-1" and a.node.is_fresh(), "it came back with a new id"
        assert [request.prompt for request in model.requests] == ["long", "next"]


async def test_n2_what_was_lost_and_won_again_is_another_workspace(tmp_path: Path, config: Path) -> None:
    """The fence is of the object that was opened, and not of the node: the old one must not write with the new."""
    url, project = postgres().new_database(), tmp_path / "project"
    project.mkdir()
    async with node_in_process(url, "a", tmp_path / "a", config) as a:
        old = await a.open(project)
        session = await old.sessions.create("")
        fence = a.workspaces.owned()[old.id]
        del a.workspaces._open[old.id], a.workspaces._fences[old.id]  # as if it had not heard of its loss yet
        new = await a.open(project)
        assert a.workspaces.owned()[new.id] == fence + 1
        with pytest.raises(ApiError) as refused:
            await post(old, session.id, "from before", "old")
        assert refused.value.code == "workspace_moved"
        assert await post(new, session.id, "from now", "new") in ("accepted", "active")
        assert await ended(new, "new") == "completed"
        assert [run.run_id for run in await new.runs.newest("", "", 9)] == ["new"]
        assert a.workspaces.is_open(new.id), "what happened to the old one is no matter of the new one"
