"""A store whose file was deleted or replaced under its hands promises nothing any more."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from covey.protocol.events import created
from covey.store import open_file
from covey.store.base import PutSession, StoreFailed
from covey.store.journal import Journal
from covey.store.sqlite import SqliteStore
from tests.store.publishing import Published, say, within_bound
from tests.store.test_store_conformance import change, session
from tests.support.disk import BOUND_S


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    return made


@pytest.fixture
def store(directory: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(directory / "covey.db")) as made:
        made.commit([change(PutSession(session("kept")))])
        yield made


def replace_by_another(directory: Path) -> None:
    (directory / "other").write_bytes(b"something else")
    os.replace(directory / "other", directory / "covey.db")


def restore_from_a_copy(directory: Path) -> None:
    shutil.copy(directory / "covey.db", directory / "copy")
    (directory / "covey.db").unlink()
    (directory / "copy").rename(directory / "covey.db")


def replace_the_directory(directory: Path) -> None:
    directory.rename(directory.with_name("moved"))
    SqliteStore(_made(directory) / "covey.db").close()


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


LOSSES: dict[str, Callable[[Path], object]] = {
    "the file is deleted": lambda directory: (directory / "covey.db").unlink(),
    "its log is deleted": lambda directory: (directory / "covey.db-wal").unlink(),
    "the directory is deleted": shutil.rmtree,
    "the directory is moved away": lambda directory: directory.rename(directory.with_name("moved")),
    "another directory is put there": replace_the_directory,
    "another file is put there": replace_by_another,
    "a copy is put there": restore_from_a_copy,
}


@pytest.mark.parametrize("loss", LOSSES)
def test_no_write_succeeds_once_the_file_is_lost(
    store: SqliteStore, directory: Path, loss: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert not store.is_lost()
    LOSSES[loss](directory)
    assert store.is_lost()
    for _ in range(3):
        with pytest.raises(StoreFailed, match="deleted or replaced") as raised:
            store.commit([change(PutSession(session("new")))])
        assert (raised.value.status, raised.value.passing) == (503, True)
    said = [record for record in caplog.records if record.levelno == logging.CRITICAL]
    assert len(said) == 1, "it is said loudly, and once"


def test_a_file_that_comes_back_is_not_written_twice(store: SqliteStore, directory: Path) -> None:
    directory.rename(directory.with_name("moved"))
    with pytest.raises(StoreFailed):
        store.commit([change(PutSession(session("new")), events=(created(session("new")),))])
    directory.with_name("moved").rename(directory)
    with pytest.raises(StoreFailed):
        store.commit([change(PutSession(session("new")), events=(created(session("new")),))])
    assert store.log_bounds("w").last == 1


def test_looking_costs_two_system_calls_for_a_group_of_changes(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    real = open_file._identity

    def noting(path: str) -> tuple[int, int] | None:
        looked.append(path)
        return real(path)

    monkeypatch.setattr(open_file, "_identity", noting)
    store.commit([change(PutSession(session(f"s{number}"))) for number in range(100)])
    assert len(looked) == 2


def test_a_directory_that_cannot_be_looked_into_is_not_taken_for_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> os.stat_result:
        raise PermissionError(13, "no")

    monkeypatch.setattr("covey.store.open_file.os.stat", refused)
    assert open_file._identity("x") == (0, 0)


@pytest.mark.anyio
async def test_whoever_waits_gets_an_answer_and_a_run_under_way_waits(directory: Path) -> None:
    journal = Journal(SqliteStore(directory / "covey.db"))
    told = Published()
    book = journal.for_workspace("w", told, keep_events=10)
    await within_bound(say(book, "a"))
    shutil.rmtree(directory)
    waiting = say(book, "b")
    with pytest.raises(StoreFailed):
        await within_bound(say(book, "c", patient=False))
    assert not waiting.done()
    assert told.order == ["a"], "nothing is published that is not kept"
    await journal.aclose(BOUND_S / 10)
