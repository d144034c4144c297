"""The daily backup: made in pieces while others write, whole or not there, few are kept, and never on a full disk."""

from __future__ import annotations

import shutil
from collections import namedtuple
from contextlib import closing
from pathlib import Path

import pytest

from covey.doctor.oracle import examine
from covey.protocol.events import created
from covey.protocol.runs import Run
from covey.store import backups
from covey.store.backups import backups_in
from covey.store.base import InsertRun, RunRow
from covey.store.sqlite import SqliteStore
from tests.store.test_store_conformance import change, session
from tests.support.good_stores import make_stores

DAY_S = 86_400.0
Usage = namedtuple("Usage", "total used free")


def filled(tmp_path: Path) -> Path:
    make_stores(tmp_path)
    return tmp_path / "ended"


def one_day(path: Path, now: float, kept: int = 3) -> int:
    """A server for a moment on that day: how many pieces it needed."""
    with closing(SqliteStore(path)) as store:
        while store.upkeep():
            pass
        store.backups.kept, store.backups._now = kept, lambda: now
        count = 1
        while store.upkeep():
            count += 1
        return count


def test_one_backup_is_made_each_day_and_the_newest_three_stay(tmp_path: Path) -> None:
    data_dir = filled(tmp_path)
    for day in (0, 0, 1, 2, 3):
        one_day(data_dir / "covey.db", day * DAY_S)
    names = [path.name for path in backups_in(data_dir)]
    assert names == [f"covey-1970-01-0{day}.db" for day in (4, 3, 2)]
    assert [path.name for path in (data_dir / "backups").iterdir() if path not in backups_in(data_dir)] == []
    assert {path.stat().st_mode & 0o777 for path in backups_in(data_dir)} == {0o600}
    one_day(data_dir / "covey.db", 5 * DAY_S, kept=0)
    assert [path.name for path in backups_in(data_dir)] == names


def test_a_backup_has_what_was_written_while_it_was_made_and_costs_its_length_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backups, "PIECE_PAGES", 4)
    data_dir = filled(tmp_path)
    with closing(SqliteStore(data_dir / "covey.db")) as store:
        while store.upkeep():
            pass
        pages = store._writer.pragma("page_count")
        store.backups.kept = 3
        assert store.upkeep() and backups_in(data_dir) == []
        before = store.log_bounds(store.workspaces()[0].id).last
        store.commit([change(events=(created(session()),), workspace=store.workspaces()[0].id)])
        count = 1
        while store.upkeep():
            count += 1
        assert count <= pages // 4 + 2
        assert store._writer.pragma("page_count") <= pages + 2
    (backup,) = backups_in(data_dir)
    copied = tmp_path / "copied"
    copied.mkdir()
    shutil.copy(backup, copied / "covey.db")
    with closing(SqliteStore(copied / "covey.db")) as store:
        assert store.log_bounds(store.workspaces()[0].id).last == before + 1
    assert not any(finding.kind == "damaged_file" for finding in examine(copied).findings)


def test_a_store_that_was_empty_gets_its_backup_once_something_was_said(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "covey.db")) as store:
        store.backups.kept = 3
        while store.upkeep():
            pass
        assert backups_in(tmp_path) == []
        run = Run(run_id="r", session_id="s", seq=1, state="active", mode="own_turn", prompt="p", accepted_at=1.0)
        store.commit([change(InsertRun(RunRow(run, "")))])
        while store.upkeep():
            pass
    assert len(backups_in(tmp_path)) == 1


def test_a_server_that_ends_in_the_middle_leaves_no_half_of_a_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backups, "PIECE_PAGES", 1)
    data_dir = filled(tmp_path)
    with closing(SqliteStore(data_dir / "covey.db")) as store:
        while store.upkeep():
            pass
        store.backups.kept = 3
        assert store.upkeep()
    assert list((data_dir / "backups").iterdir()) == []


def test_no_backup_is_made_where_there_is_little_room_or_nothing_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_day(tmp_path / "covey.db", 0)
    data_dir = filled(tmp_path)
    size = (data_dir / "covey.db").stat().st_size
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(size * 9, size * 7, size * 2 - 4096 * 8))
    one_day(data_dir / "covey.db", 0)
    assert backups_in(tmp_path) == backups_in(data_dir) == []
