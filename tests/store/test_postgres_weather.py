"""Bad weather between a node and its store: the connection breaks at every commit, the store is slow or read-only.

A reference in SQLite gets the same changes; whatever happens on the way, PostgreSQL must hold the same rows at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from covey.protocol.events import created, updated
from covey.protocol.growth import TextPiece
from covey.store.base import (
    AppendText,
    Change,
    DropMessages,
    InsertRun,
    PutEarlyCancel,
    PutMessage,
    PutSession,
    PutWorkspace,
    RunExists,
    RunRow,
    SetMark,
    Store,
    StoreFailed,
    UpdateRun,
    WorkspaceRow,
)
from covey.store.postgres import connection, store
from covey.store.postgres.transfer import dump
from covey.store.sqlite import SqliteStore
from tests.store.test_postgres_transfer import rows_of
from tests.store.test_store_conformance import change, message, run, session, text
from tests.support.claiming_store import ClaimingStore
from tests.support.commit_proxy import Action, CommitProxy
from tests.support.postgres import PostgresProcess, postgres


def groups() -> list[list[Change]]:
    """A day in the life of a store: each list is one commit."""
    one, two = created(session("s")), updated(session("s"))
    return [
        [change(PutWorkspace(WorkspaceRow("w", "/w", 7, 1)))],
        [change(PutSession(session("s")), events=(one,))],
        [change(InsertRun(RunRow(run("r1"), "d")), events=(created(run("r1")),))],
        [change(InsertRun(RunRow(run("r1"), "other")), events=(one,)), change(events=(two, two))],
        [change(PutMessage(message("m1")), events=(created(message("m1")),)), change(SetMark("s", 3))],
        [change(AppendText("m1", (TextPiece(0, "text", 0, "grows"),)))],
        [change(PutMessage(message("m2", text("b"))), PutSession(session("s", 5)), events=(two, one, two))],
        [change(UpdateRun(run("r1")), PutEarlyCancel("r9", 99.5), events=(updated(run("r1")),))],
        [change(DropMessages("s", ("m2",))), change(PutSession(session("t")), events=(created(session("t")),))],
        [change(InsertRun(RunRow(run("r2", 2), "d")), events=(created(run("r2", 2)),))],
    ]


GROUPS = len(groups())


@pytest.fixture
def server() -> PostgresProcess:
    return postgres()


@pytest.fixture
def reference(tmp_path: Path) -> tuple[dict[str, list[Any]], list[Any]]:
    """The rows that there must be, and what each commit must give."""
    made = SqliteStore(tmp_path / "reference.db")
    results = [plain(made.commit(group)) for group in groups()]
    made.close()
    return rows_of(tmp_path / "reference.db"), results


def plain(results: Sequence[int | RunExists]) -> list[Any]:
    return [str(type(result).__name__) if isinstance(result, RunExists) else result for result in results]


def surely(made: Store, group: list[Change]) -> list[Any]:
    """As the journal does: what failed for the moment is tried again."""
    for _ in range(20):
        try:
            return plain(made.commit(group))
        except StoreFailed as error:
            if not error.passing:
                raise
    raise AssertionError("the store stays away")


def database_of(url: str) -> str:
    return url.removeprefix("postgresql://covey@/").partition("?")[0]


@pytest.mark.parametrize("action", ["cut", "swallow", "hold"])
def test_n6_the_connection_breaks_at_every_commit(
    action: Action, server: PostgresProcess, reference: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other: at the commit itself, before its answer, or so that it arrives when all is over."""
    monkeypatch.setattr(store, "RETRY_S", 0.01)
    rows, results = reference
    for number in range(1, GROUPS + 1):
        url = server.new_database()
        with CommitProxy(server.port, lambda n, at=number: action if n == at else "pass") as proxy:  # type: ignore[misc]
            made = ClaimingStore(server.tcp_url(database_of(url), proxy.port))
            assert [surely(made, group) for group in groups()] == results, f"at commit {number}"
            assert proxy.struck == 1
            if action == "hold":
                proxy.wait_late(1)
                assert proxy.late == [True], "a statement that came too late was carried out"
            made.close()
        dump(url, "w", tmp_path / f"{number}.db")
        assert rows_of(tmp_path / f"{number}.db") == rows, f"at commit {number}"


def test_n6_nobody_is_told_before_it_is_known(server: PostgresProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the store cannot be asked, the commit neither succeeds nor fails."""
    monkeypatch.setattr(store, "RETRY_S", 0.01)
    url = server.new_database()
    away = threading.Event()
    with CommitProxy(server.port) as proxy:
        made = ClaimingStore(server.tcp_url(database_of(url), proxy.port))
        made.commit(groups()[0])
        connect = made._writer._connected
        asked = threading.Event()

        async def refused() -> Any:
            if away.is_set():
                asked.set()
                raise ConnectionRefusedError("away")
            return await connect()

        monkeypatch.setattr(made._writer, "_connected", refused)

        def go_away(number: int) -> Action:
            away.set()
            return "swallow"

        told: list[Any] = []
        proxy.decide = go_away
        thread = threading.Thread(target=lambda: told.append(plain(made.commit(groups()[1]))))
        thread.start()
        assert asked.wait(30)
        assert told == []
        away.clear()
        thread.join(30)
        assert told == [[1]]
        made.close()


@pytest.fixture
def made(server: PostgresProcess) -> Iterator[Any]:
    opened = ClaimingStore(server.new_database())
    opened.commit(groups()[0])
    yield opened
    opened.close()


def database(made: Any) -> str:
    return database_of(made._writer._url)


def test_n5_a_store_that_is_read_only_is_a_passing_failure(made: Any, server: PostgresProcess) -> None:
    """As a standby is, or a server whose disk is nearly full."""
    name = database(made)
    server.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    made._writer._drop()
    with pytest.raises(StoreFailed, match="read-only") as failed:
        made.commit(groups()[1])
    assert failed.value.passing
    assert made.sessions("w") == []
    server.sql(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    made._writer._drop()
    assert surely(made, groups()[1]) == [1]


def test_n5_a_store_without_a_free_connection_is_a_passing_failure(made: Any, server: PostgresProcess) -> None:
    name = database(made)
    server.sql(f"ALTER DATABASE {name} CONNECTION LIMIT 0")
    server.sql("CREATE ROLE visitor LOGIN")
    try:
        visitor = connection.Connection(made._writer._url.replace("covey@", "visitor@"))
        with pytest.raises(StoreFailed) as failed, connection.failures("cannot connect"):
            visitor.fetch("SELECT 1")
        assert failed.value.passing, failed.value
        visitor.close()
    finally:
        server.sql("DROP ROLE visitor")


def test_n5_a_slow_store_is_asked_again_and_written_once(
    made: Any, server: PostgresProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody holds the row: the commit takes longer than anybody waits, and its connection is given up."""
    monkeypatch.setattr(connection, "STATEMENT_S", 0.2)
    monkeypatch.setattr(store, "RETRY_S", 0.01)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        async def lock(pg: connection.PgConnection) -> None:
            async with pg.transaction():
                await pg.execute("SELECT 1 FROM logs FOR UPDATE")
                held.set()
                release.wait(30)

        holder = connection.Connection(made._writer._url)
        holder.call(lock)
        holder.close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(30)
    threading.Timer(1.0, release.set).start()
    assert surely(made, groups()[1]) == [1]
    thread.join()
    assert made.log_bounds("w").last == 1


def test_n5_a_backend_that_is_terminated_is_a_commit_in_doubt(made: Any, server: PostgresProcess) -> None:
    query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1"
    server.sql(query, database(made))
    assert surely(made, groups()[1]) == [1]
    assert made.log_bounds("w").last == 1


def test_a_value_that_cannot_be_sent_is_refused_for_good_and_the_next_one_is_written(made: Any) -> None:
    for bad in ("half \ud83d", "nul \0"):
        with pytest.raises(StoreFailed) as failed:
            made.commit([change(SetMark(bad, 1))])
        assert not failed.value.passing, failed.value
    assert plain(made.commit(groups()[1])) == [1]


def test_n6_a_connection_that_breaks_before_a_commit_loses_no_head_of_a_log(made: Any) -> None:
    """Of one workspace it was known, of the other it has to be read: on a connection that is new by then."""
    event = created(session("s"))
    assert surely(made, [change(events=(event, event))]) == [1]
    made.claim("x")
    made._writer._drop()
    assert plain(made.commit([change(events=(event,)), change(events=(event,), workspace="x")])) == [3, 1]
