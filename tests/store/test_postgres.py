"""What is special about the store on PostgreSQL: one writer, and commits that nobody knows the answer of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from covey.protocol.events import created
from covey.store.base import Fenced, InsertRun, LogBounds, PutSession, RunExists, RunRow, StoreFailed
from tests.store.test_store_conformance import change, run, session


@pytest.fixture
def url() -> str:
    from tests.support.postgres import postgres

    return postgres().new_database()


@pytest.fixture
def store(url: str) -> Iterator[Any]:
    from tests.support.claiming_store import ClaimingStore

    made = ClaimingStore(url)
    yield made
    made.close()


def test_n2_what_an_older_owner_decided_is_refused_as_a_whole(store: Any, url: str) -> None:
    from tests.support.claiming_store import ClaimingStore

    event = created(session())
    assert store.commit([change(PutSession(session("a")), events=(event,))]) == [1]
    store.claim("x")
    assert store.nodes.declare_dead("one")
    other: Any = ClaimingStore(url, "two")
    other.claim("w")
    with pytest.raises(Fenced):
        store.commit([change(PutSession(session("b")), events=(event,)), change(events=(event,), workspace="x")])
    assert [row.session.id for row in other.sessions("w")] == ["a"]
    assert other.log_bounds("x") == LogBounds(0, 0), "its neighbour in the group was not written either"
    assert other.commit([change(PutSession(session("c")), events=(event,))]) == [2]
    other.nodes.release("w", other.fences["w"])
    store.claim("w")
    assert store.commit([change(events=(event,))]) == [3]
    other.close()


def test_n2_the_same_owner_that_lost_it_in_between_writes_nothing_old(store: Any) -> None:
    store.commit([change(PutSession(session("a")))])
    fence = store.fences["w"]
    assert store.claim("w") == fence + 1
    store.fences["w"] = fence
    with pytest.raises(Fenced):
        store.commit([change(PutSession(session("b")))])
    store.fences["w"] = fence + 1
    store.commit([change(PutSession(session("c")))])
    assert {row.session.id for row in store.sessions("w")} == {"a", "c"}


def test_n2_what_was_released_is_not_written_any_more(store: Any) -> None:
    store.commit([change(PutSession(session("a")))])
    store.nodes.release("w", store.fences["w"])
    with pytest.raises(Fenced):
        store.commit([change(PutSession(session("b")))])
    assert {row.session.id for row in store.sessions("w")} == {"a"}


@pytest.mark.parametrize("was_written", [True, False])
def test_n6_a_commit_in_doubt_is_looked_up_before_anybody_is_told(
    store: Any, monkeypatch: pytest.MonkeyPatch, was_written: bool
) -> None:
    event = created(session())
    store.commit([change(events=(event,))])
    write = store._write

    async def breaks(connection: Any, *given: Any) -> list[bool]:
        monkeypatch.setattr(store, "_write", write)
        if was_written:
            await write(connection, *given)
        connection.terminate()
        raise ConnectionResetError("the answer got lost")

    monkeypatch.setattr(store, "_write", breaks)
    changes = [change(InsertRun(RunRow(run(), "d")), events=(event, event)), change(events=(event,))]
    if was_written:
        assert store.commit(changes) == [2, 4]
    else:
        with pytest.raises(StoreFailed) as failed:
            store.commit(changes)
        assert failed.value.passing
        assert store.commit(changes) == [2, 4], "tried again, it is written once"
    assert store.log_bounds("w") == LogBounds(0, 4)
    assert isinstance(store.commit(changes)[0], RunExists)


def test_n5_a_server_that_was_restarted_is_only_a_passing_failure(tmp_path: Path) -> None:
    from tests.support.claiming_store import ClaimingStore
    from tests.support.postgres import PostgresProcess

    process = PostgresProcess.fresh()
    try:
        store = ClaimingStore(process.new_database())
        store.commit([change(PutSession(session()))])
        process.stop()
        with pytest.raises(StoreFailed) as failed:
            store.sessions("w")
        assert failed.value.passing
        process.start()
        assert [row.session.id for row in store.sessions("w")] == ["s"]
        event = created(session())
        try:
            results = store.commit([change(events=(event,))])
        except StoreFailed:  # the old connection: nothing was written, and that is known
            results = store.commit([change(events=(event,))])
        assert results == [1]
        store.close()
    finally:
        process.remove()
