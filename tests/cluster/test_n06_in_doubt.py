"""N6: a commit whose connection broke while it was under way is looked up before anybody is told anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import pytest

from covey.store.base import StoreFailed
from tests.cluster.nodes_in_process import ended, node_in_process, post
from tests.support.commit_proxy import Action, CommitProxy
from tests.support.fake_model import FakeModel
from tests.support.postgres import postgres
from tests.support.server import provider_config

T = TypeVar("T")

pytestmark = pytest.mark.anyio


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as made:
        yield made


@pytest.mark.parametrize("action", ["cut", "swallow", "hold"])
async def test_n6_a_run_ends_once_whichever_of_its_commits_is_in_doubt(
    tmp_path: Path, model: FakeModel, action: Action
) -> None:
    """Each third commit is: before it arrives, after it was carried out, or so that it arrives late."""
    config = tmp_path / "config.toml"
    config.write_text(provider_config(model.url))
    url = postgres().new_database()
    name = urlsplit(url).path.lstrip("/")
    with CommitProxy(postgres().port, lambda number: action if number % 3 == 0 else "pass") as proxy:
        async with node_in_process(postgres().tcp_url(name, proxy.port), "a", tmp_path / "a", config) as a:
            (tmp_path / "project").mkdir()
            workspace = await a.open(tmp_path / "project")
            session = await _until_taken(lambda: workspace.sessions.create(""))
            for number in range(4):
                run_id = f"r{number}"
                await _until_taken(partial(post, workspace, session.id, "hello", run_id))
                assert await ended(workspace, run_id) == "completed"
            assert workspace.id in a.workspaces.owned(), "a broken connection is no loss"
        assert proxy.struck > 3
    ends = postgres().sql_in(name, "SELECT count(*) FROM events WHERE encoded LIKE '%\"run_complete\"%'::bytea")
    assert ends[0][0] == 4
    assert len(model.requests) == 4
    seqs = [row[0] for row in postgres().sql_in(name, "SELECT seq FROM events ORDER BY seq")]
    assert seqs == list(range(1, len(seqs) + 1))


async def _until_taken(ask: Callable[[], Awaitable[T]]) -> T:
    """What a client does that is told that the store is away: the same again."""
    while True:
        try:
            return await ask()
        except StoreFailed as error:
            if not error.passing:
                raise
