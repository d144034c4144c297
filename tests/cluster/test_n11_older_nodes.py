"""N11: older nodes never take over what a newer one has written, so that no field is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.cluster.whereabouts import Nobody, There
from covey.engine.ownership import OwnedElsewhere
from covey.store.postgres.schema import FORMAT
from tests.cluster.nodes_in_process import ended, node_in_process, post
from tests.support.fake_model import FakeModel, Reply
from tests.support.postgres import postgres
from tests.support.server import provider_config

pytestmark = pytest.mark.anyio


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as made:
        yield made


async def test_n11_what_a_newer_node_has_owned_waits_for_another_newer_one(tmp_path: Path, model: FakeModel) -> None:
    model.on(lambda request: Reply())
    url, project, config = postgres().new_database(), tmp_path / "project", tmp_path / "config.toml"
    project.mkdir()
    config.write_text(provider_config(model.url))
    async with node_in_process(url, "old", tmp_path / "old", config) as old:
        first = await old.open(project)
        session = await first.sessions.create("")
        assert await old.workspaces.hand_over(first.id, 1.0)
        async with node_in_process(url, "new", tmp_path / "new", config, version=FORMAT + 1) as new:
            taken = await new.workspaces.get(first.id)
            await taken.runs._parts.lanes.come_to_rest(0.0)
            await post(taken, session.id, "hello", "waits")
            assert await new.workspaces.hand_over(first.id, 1.0)
            with pytest.raises(OwnedElsewhere):
                await old.workspaces.get(first.id)
            await old.node.look_around()
            assert not old.workspaces.owned() and not old.node._adopting
            assert await old.whereabouts.find(first.id) == There(new.node.id, "new", new.node.address)
            await new.node.look_around()
            again = await new.workspaces.get(first.id)
            assert await ended(again, "waits") == "completed"
            assert await new.workspaces.hand_over(first.id, 1.0)
        found = await old.whereabouts.find(first.id)
        assert isinstance(found, Nobody) and "newer Covey" in found.why, "there is nobody who may open it"
