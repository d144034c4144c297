"""What is asked about all workspaces of a cluster: one question to the store, however many of them there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from covey.store.postgres.store import PostgresStore
from tests.cluster.nodes_in_process import TestNode, ended, node_in_process, post
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


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that the store was asked."""
    queries: list[str] = []
    fetch = PostgresStore._fetch

    def noted(self: PostgresStore, query: str, *values: Any) -> Sequence[Any]:
        queries.append(query)
        return fetch(self, query, *values)

    monkeypatch.setattr(PostgresStore, "_fetch", noted)
    return queries


async def work_in(node: TestNode, directory: Path, count: int) -> list[str]:
    """Workspaces with a run that has ended in each; all but the last are closed. Their paths, the newest first."""
    paths = []
    for number in range(count):
        (project := directory / f"project-{number}").mkdir()
        workspace = await node.open(project)
        session = await workspace.sessions.create(f"fox number {number}")
        await post(workspace, session.id, f"the fox says {number}", f"run-{number}")
        await ended(workspace, f"run-{number}")
        paths.append(workspace.path)
        if number < count - 1:
            assert await node.workspaces.hand_over(workspace.id, 1.0)
    return paths[::-1]


async def test_runs_of_all_workspaces_are_one_question(
    tmp_path: Path, config: Path, model: FakeModel, asked: list[str]
) -> None:
    async with node_in_process(postgres().new_database(), "a", tmp_path / "a", config) as a:
        paths = await work_in(a, tmp_path, 4)
        everywhere = a.workspaces.everywhere
        asked.clear()
        found = await everywhere.runs("", 10)
        assert [run.run_id for run in found] == ["run-3", "run-2", "run-1", "run-0"]
        assert [run.path for run in found] == paths
        assert len(asked) == 1, asked
        assert [run.run_id for run in await everywhere.runs("completed", 2)] == ["run-3", "run-2"]
        assert await everywhere.runs("failed", 10) == []
        assert await everywhere.runs("completed", 10, is_open=True) == [], "of what has ended the store knows"


async def test_what_is_open_its_owner_knows(tmp_path: Path, config: Path, model: FakeModel, asked: list[str]) -> None:
    async with node_in_process(postgres().new_database(), "a", tmp_path / "a", config) as a:
        await work_in(a, tmp_path, 2)
        model.on(lambda request: Reply(gates={1: "go on"}))
        workspace = await a.open(tmp_path / "project-1")
        session = await workspace.sessions.create("")
        await post(workspace, session.id, "long", "long")
        await post(workspace, session.id, "waits", "waits")
        await model.until(lambda: len(model.requests) == 3)
        asked.clear()
        everywhere = a.workspaces.everywhere
        assert [run.run_id for run in await everywhere.runs("active", 10)] == ["long"]
        assert [run.run_id for run in await everywhere.runs("queued", 10, is_open=True)] == ["waits"]
        assert asked == []
        all_of_them = await everywhere.runs("", 10)
        assert [run.run_id for run in all_of_them] == ["waits", "long", "run-1", "run-0"]
        assert all_of_them[1].state == "active" and all_of_them[1].waiting_on, "as only its owner knows"
        model.release("go on")
        assert await ended(workspace, "waits") == "completed"


async def test_sessions_of_all_workspaces_are_one_question_and_a_page_two(
    tmp_path: Path, config: Path, model: FakeModel, asked: list[str]
) -> None:
    async with node_in_process(postgres().new_database(), "a", tmp_path / "a", config) as a:
        paths = await work_in(a, tmp_path, 4)
        everywhere, plain = a.workspaces.everywhere, {"children": False, "archived": False}
        asked.clear()
        found = await everywhere.sessions("", 3, **plain)
        assert len(asked) == 1, asked
        assert {session.path for session in found} <= set(paths)
        assert len(a.workspaces.all()) == 1, "none is opened for it"
        last = found[-1]
        rest = await everywhere.sessions(f"{last.workspace_id}/{last.id}", 3, **plain)
        assert {session.path for session in (*found, *rest)} == set(paths)
        assert len(rest) == 1 and len(asked) == 3
        times = [(session.updated_at, session.id) for session in (*found, *rest)]
        assert times == sorted(times, reverse=True)


async def test_a_session_that_another_node_works_in_is_said_to_be_busy(
    tmp_path: Path, config: Path, model: FakeModel
) -> None:
    url, plain = postgres().new_database(), {"children": False, "archived": False}
    async with (
        node_in_process(url, "a", tmp_path / "a", config) as a,
        node_in_process(url, "b", tmp_path / "b", config) as b,
    ):
        model.on(lambda request: Reply(gates={1: "go on"}))
        (tmp_path / "project").mkdir()
        workspace = await a.open(tmp_path / "project")
        session = await workspace.sessions.create("")
        await post(workspace, session.id, "long", "long")
        await model.until(lambda: len(model.requests) == 1)
        (found,) = await b.workspaces.everywhere.sessions("", 10, **plain)
        assert (found.id, found.is_busy) == (session.id, True)
        model.release("go on")
        assert await ended(workspace, "long") == "completed"
        (found,) = await b.workspaces.everywhere.sessions("", 10, **plain)
        assert not found.is_busy


async def test_a_search_of_all_workspaces_is_two_questions(
    tmp_path: Path, config: Path, model: FakeModel, asked: list[str]
) -> None:
    async with node_in_process(postgres().new_database(), "a", tmp_path / "a", config) as a:
        paths = await work_in(a, tmp_path, 4)
        asked.clear()
        found = await a.workspaces.everywhere.search("fox", 3)
        assert len(asked) == 2, asked
        assert [hit.path for hit in found.messages if hit.role == "user"] == paths[:3]
        assert {hit.path for hit in found.titles} <= set(paths) and len(found.titles) == 3
        assert found.titles[0].title.startswith("fox number")
        (only,) = (await a.workspaces.everywhere.search("says 2", 3)).messages
        assert (only.path, only.snippet) == (paths[1], "the fox says 2")
