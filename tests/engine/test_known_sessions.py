"""A workspace reads a session when somebody asks for it, and not before: opening costs nothing for each of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from covey.protocol.errors import NotFound
from covey.protocol.requests import PostPrompt, UpdateSession
from covey.store.base import SessionRow
from covey.store.sqlite import SqliteStore
from tests.support.engine import Engine, running

pytestmark = pytest.mark.anyio


class Counted(SqliteStore):
    """Counts the sessions that are read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.read = Counter[str]()

    def session(self, workspace_id: str, session_id: str) -> SessionRow | None:
        self.read["one"] += 1
        return super().session(workspace_id, session_id)

    def sessions_page(self, *args: Any, **options: Any) -> list[SessionRow]:
        page = super().sessions_page(*args, **options)
        self.read["listed"] += len(page)
        return page


async def reopened(engine: Engine) -> None:
    await engine.close()
    await engine.open()


async def test_opening_a_workspace_reads_no_session_and_a_page_reads_its_own(tmp_path: Path) -> None:
    store = Counted(tmp_path / "covey.db")
    async with running(tmp_path, store=store) as engine:
        for number in range(30):
            await engine.workspace.sessions.create(f"s{number}")
        await reopened(engine)
        assert store.read == {"one": 1}, "the one that the test asks for"
        page = await engine.workspace.sessions.page(limit=5)
        assert len(page) == store.read["listed"] == 5
        following = await engine.workspace.sessions.page(limit=5, before=page[-1].id)
        assert not {session.id for session in page} & {session.id for session in following}
        assert len(engine.workspace._parts.book._by_id) == 1, "a list takes nothing in"


async def test_a_session_of_an_earlier_opening_is_used_like_any_other(tmp_path: Path) -> None:
    async with running(tmp_path, store=SqliteStore(tmp_path / "covey.db")) as engine:
        sessions = engine.workspace.sessions
        old = (await sessions.create("old")).id
        await reopened(engine)
        sessions = engine.workspace.sessions
        assert (await sessions.read(old)).title == "old"
        await reopened(engine)
        sessions = engine.workspace.sessions
        run_id = (await engine.workspace.runs.post(PostPrompt(session_id=old, prompt="hello"))).run_id
        await engine.ended(run_id)
        assert (await sessions.update(old, UpdateSession(title="new"))).message_count == 2
        with pytest.raises(NotFound):
            await engine.workspace.runs.post(PostPrompt(session_id="nobody", prompt="hello"))


async def test_r4_the_mark_of_a_session_of_an_earlier_opening_is_known(tmp_path: Path) -> None:
    async with running(tmp_path, store=SqliteStore(tmp_path / "covey.db")) as engine:
        old = (await engine.workspace.sessions.create("old")).id
        seq = (await engine.post("a", "a")).seq
        await engine.ended("a")
        assert (await engine.workspace.runs.cancel_session(old)).mark == seq
        await reopened(engine)
        assert (await engine.workspace.runs.clear_queue(old)).mark == seq
        assert (await engine.post("b", "b")).seq == seq + 1
        await engine.ended("b")


async def test_a_deleted_session_takes_along_what_agents_did_for_it_before_the_workspace_was_opened(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, store=SqliteStore(tmp_path / "covey.db")) as engine:
        sessions, other = engine.workspace.sessions, engine.session_id
        parent = await sessions.create("parent")
        child = await sessions.create_child(parent.id, "child")
        await sessions.create_child(child.id, "grandchild")
        await reopened(engine)
        await engine.workspace.sessions.delete(parent.id)
        assert [session.id for session in engine.sessions()] == [other]


async def test_a_session_that_is_being_deleted_is_not_read_back(tmp_path: Path) -> None:
    async with running(tmp_path, store=SqliteStore(tmp_path / "covey.db")) as engine:
        old = await engine.workspace.sessions.create("old")
        book = engine.workspace._parts.book
        book.remove(old.id)
        book.take_in(old)
        assert old.id not in book
        assert old.id not in {session.id for session in await engine.workspace.sessions.page(limit=10)}


async def test_an_archived_session_is_listed_only_if_asked_for_and_can_be_taken_back(tmp_path: Path) -> None:
    async with running(tmp_path, store=SqliteStore(tmp_path / "covey.db")) as engine:
        sessions = engine.workspace.sessions
        kept = (await sessions.create("kept")).id
        assert (await sessions.update(kept, UpdateSession(archived=True))).archived_at is not None
        assert (await sessions.update(kept, UpdateSession(title="renamed"))).archived_at is not None
        assert kept not in {session.id for session in await sessions.page(limit=10)}
        assert kept in {session.id for session in await sessions.page(limit=10, archived=True)}
        back = await sessions.update(kept, UpdateSession(archived=False))
        assert (back.title, back.archived_at) == ("renamed", None)
        assert kept in {session.id for session in await sessions.page(limit=10)}
