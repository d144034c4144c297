"""What is special about the SQLite store: files, versions and failures."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from covey.protocol.events import created
from covey.store.base import Change, PutSession, StoreFailed
from covey.store.sqlite import SqliteStore
from tests.store.test_store_conformance import change, run, session


def test_what_was_committed_is_there_after_opening_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "covey.db")
    store.commit([change(PutSession(session()), events=(created(session()),))])
    store.close()
    again = SqliteStore(tmp_path / "covey.db")
    assert [row.session.id for row in again.sessions("w")] == ["s"]
    assert again.commit([change(events=(created(run()),))]) == [2]
    again.close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "covey.db"
    path.write_bytes(b"this is not a database at all, but a letter to a friend" * 100)
    with pytest.raises(StoreFailed, match=r"cannot open .*covey.db"):
        SqliteStore(path)
    assert path.read_bytes().startswith(b"this is not a database")


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "covey.db"
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 999)
    connection.close()
    with pytest.raises(StoreFailed, match="newer version of Covey"):
        SqliteStore(path)


def test_a_failing_write_leaves_nothing_and_the_numbering_goes_on(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "covey.db")
    store.commit([change(events=(created(session()),))])
    broken = Change("w", (PutSession(session()),), (created(session()),), (b"x" * 2_000_000_000,))
    with pytest.raises(StoreFailed):
        store.commit([change(PutSession(session())), broken])
    assert store.sessions("w") == []
    assert store.commit([change(events=(created(session()),))]) == [2]
    store.close()


def test_a_full_disk_is_a_passing_failure(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "covey.db")
    store._writer.pragma("max_page_count", store._writer.pragma("page_count") + 1)
    big = Change("w", (), (created(session()),), (b"x" * 100_000,))
    with pytest.raises(StoreFailed) as raised:
        store.commit([big])
    assert raised.value.passing
    store._writer.pragma("max_page_count", 1_000_000)
    assert store.commit([big]) == [1]
    store.close()
