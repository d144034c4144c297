"""What people have decided about a workspace outlives its owner; ids of two nodes never meet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.permissions.judge import Intent, Verdict
from covey.permissions.reach import Reach
from covey.protocol.requests import PostPrompt
from covey.protocol.who import Who
from tests.cluster.nodes_in_process import ended, node_in_process
from tests.support.fake_model import FakeModel
from tests.support.postgres import postgres
from tests.support.server import provider_config

pytestmark = pytest.mark.anyio

WRITE = Intent("bash", "execute", "make release")


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as made:
        yield made


@pytest.fixture
def config(tmp_path: Path, model: FakeModel) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(provider_config(model.url))
    return path


async def test_yolo_and_what_is_always_allowed_are_the_next_owners_too(tmp_path: Path, config: Path) -> None:
    url, project = postgres().new_database(), tmp_path / "project"
    project.mkdir()
    async with (
        node_in_process(url, "a", tmp_path / "a", config) as a,
        node_in_process(url, "b", tmp_path / "b", config) as b,
    ):
        here = await a.workspaces.create(str(project), Who(client_id="one"), yolo=True, env={})
        assert here.asks.skips()
        await here.settings.allow_always(WRITE, Reach.NETWORK)
        assert await a.workspaces.hand_over(here.id, 1.0)
        there = await b.workspaces.get(here.id)
        assert there.asks.skips(), "nobody has told it otherwise"
        await there.asks.set_skip(False)
        desk = there.asks._permissions
        assert desk.decide(WRITE, "any session").verdict is Verdict.ALLOW
        assert desk.rules.networked
        assert not (tmp_path / "b" / ".config").exists(), "it is in no file of a node"


async def test_yolo_ends_when_nobody_needs_the_workspace(tmp_path: Path, config: Path) -> None:
    url, project = postgres().new_database(), tmp_path / "project"
    project.mkdir()
    async with (
        node_in_process(url, "a", tmp_path / "a", config) as a,
        node_in_process(url, "b", tmp_path / "b", config) as b,
    ):
        here = await a.workspaces.create(str(project), Who(client_id="one"), yolo=True, env={})
        here.clients.drop("one")
        await a.workspaces._release(here)
        assert not a.workspaces.owned()
        assert not (await b.workspaces.get(here.id)).asks.skips()


async def test_a_run_whose_id_another_node_gave_out_before_gets_another_one(tmp_path: Path, config: Path) -> None:
    """Its clock was ahead, and its run still waits: there is no message yet to go on after."""
    url, project = postgres().new_database(), tmp_path / "project"
    project.mkdir()
    async with node_in_process(url, "a", tmp_path / "a", config) as a:
        workspace = await a.open(project)
        session = await workspace.sessions.create("")
        first = await workspace.runs.post(PostPrompt(session_id=session.id, prompt="one"))
        assert await ended(workspace, first.run_id) == "completed"
        given_out, world = iter([first.run_id]), a.shared.world
        new_id = world.new_id
        world.new_id = lambda: next(given_out, None) or new_id()  # type: ignore[method-assign]
        second = await workspace.runs.post(PostPrompt(session_id=session.id, prompt="two"))
        assert second.run_id != first.run_id
        assert await ended(workspace, second.run_id) == "completed"
