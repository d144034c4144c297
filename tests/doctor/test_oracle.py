"""The oracle over a store: content with what the engine writes, and finds each kind of damage that is done to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from covey.doctor import oracle_file
from covey.doctor.oracle import examine, loose_ends, open_runs
from covey.doctor.oracle_file import NoStore
from covey.doctor.oracle_findings import KINDS
from covey.doctor.oracle_record import TABLES, fitting
from covey.protocol.growth import TextPiece
from covey.store.sqlite import SqliteStore
from tests.support.good_stores import make_stores
from tests.support.meddling import meddling
from tests.support.undo_damages import DAMAGES


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("stores")
    make_stores(directory)
    return directory


@pytest.fixture
def data_dir(stores: Path, tmp_path: Path) -> Path:
    """A data directory of one's own, in whose store all has ended."""
    shutil.copy(stores / "ended" / "covey.db", tmp_path / "covey.db")
    return tmp_path


def kinds(data_dir: Path) -> set[str]:
    return {finding.kind for finding in examine(data_dir).findings}


def test_what_the_engine_leaves_is_healthy_whether_it_was_stopped_or_killed(stores: Path) -> None:
    ended, killed = examine(stores / "ended"), examine(stores / "open")
    assert (ended.findings, killed.findings) == ([], [])
    (record,) = ended.records
    states = {run["state"] for run in record.runs.values()}
    assert states == {"completed", "failed", "cancelled", "folded", "interrupted"}
    assert (open_runs(record), record.growing) == ([], set())
    (record,) = killed.records
    assert {run["run_id"]: run["state"] for run in open_runs(record)} == {"r-active": "active", "r-queued": "queued"}
    assert len(record.growing) == 1


def test_a_store_of_a_server_that_recorded_less_is_healthy(data_dir: Path) -> None:
    """Older ones did not tell the text of a run that did not complete, nor what stopped it."""
    with meddling(data_dir) as db:
        for run_id in ("r-cancel", "r-active"):
            written = f"seq = {db.event('run_complete', run_id)}"
            assert db.value("events", written)["payload"]["payload"]["text"]
            db.edit("events", written, text=None)
        for table in ("messages", "events"):
            column = "value" if table == "messages" else "encoded"
            words = ',"message":"Stopped by the user"'
            assert db.get(f"SELECT count(*) FROM {table} WHERE CAST({column} AS TEXT) LIKE ?", f"%{words}%")
            db.do(f"UPDATE {table} SET {column} = CAST(replace(CAST({column} AS TEXT), ?, '') AS BLOB)", words)
    assert examine(data_dir).findings == []


@pytest.mark.parametrize("name", ["ended", "open"])
def test_a_log_may_be_trimmed_anywhere(stores: Path, tmp_path: Path, name: str) -> None:
    shutil.copy(stores / name / "covey.db", tmp_path / "covey.db")
    (record,) = examine(tmp_path).records
    for event in record.events[:-1]:
        with meddling(tmp_path) as db:
            db.do("DELETE FROM events WHERE seq = ?", event.seq)
        assert examine(tmp_path).findings == [], f"trimmed up to event {event.seq}"


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_found_and_explained(data_dir: Path, name: str) -> None:
    damage = DAMAGES[name]
    with meddling(data_dir) as db:
        damage.do(db)
    found = [finding for finding in examine(data_dir).findings if finding.kind == damage.kind]
    assert any(damage.named in finding.what for finding in found), examine(data_dir).findings
    means, repair = found[0].explanation
    assert len(means) > 20 and len(repair) > 10


def test_there_is_a_damage_for_every_kind_of_finding() -> None:
    assert {damage.kind for damage in DAMAGES.values()} | {"damaged_file", "process"} == set(KINDS)


def test_an_undo_that_is_still_to_be_gone_on_with_is_no_fault(data_dir: Path) -> None:
    with meddling(data_dir) as db:
        db.edit("undos", "done = 1", done=False)
        db.do("UPDATE undos SET done = 0")
    assert examine(data_dir).findings == []


def test_a_run_that_was_undone_has_no_messages_and_a_copy_has_no_run(data_dir: Path) -> None:
    (record,) = examine(data_dir).records
    assert record.undone == {"r-undone"}
    assert "r-undone" in record.runs
    assert not [m for m in record.messages.values() if m.get("run_id") == "r-undone"]
    (fork,) = [session for session in record.sessions.values() if session["title"] == "fork"]
    copies = [m for m in record.messages.values() if m["session_id"] == fork["id"]]
    assert copies and not [m for m in copies if "run_id" in m]


def test_looking_changes_nothing_and_sees_one_moment(data_dir: Path) -> None:
    before = (data_dir / "covey.db").read_bytes()
    assert examine(data_dir).findings == []
    assert (data_dir / "covey.db").read_bytes() == before
    store = SqliteStore(data_dir / "covey.db")  # a server owns it now, and is in the middle of a change
    store._writer.execute("BEGIN IMMEDIATE")
    store._writer.execute("DELETE FROM runs")
    assert examine(data_dir).findings == []
    store._writer.execute("COMMIT")
    assert kinds(data_dir) == {"row_missing"}
    store.close()


def test_a_model_may_use_the_ids_of_its_calls_again() -> None:
    def message(number: int, *parts: tuple[str, str]) -> Any:
        names = {"tool_call": "id", "tool_result": "tool_call_id"}
        return {"id": str(number), "parts": [{"type": kind, "data": {names[kind]: id}} for kind, id in parts]}

    call, result = ("tool_call", "c"), ("tool_result", "c")
    assert loose_ends([message(1, call), message(2, result), message(3, call), message(4, result)]) == ([], [])
    assert loose_ends([message(1, call, call), message(2, result), message(3, result)]) == ([], [])
    assert loose_ends([message(1, call), message(2, result), message(3, result)]) == ([], [("3", 0)])
    assert loose_ends([message(1, result), message(2, call)]) == ([("2", 0)], [("1", 0)])


def test_saved_text_fits_only_where_the_message_left_off() -> None:
    message = {
        "id": "m", "role": "assistant", "session_id": "s", "model": "", "provider": "",
        "created_at": 1, "updated_at": 1,
        "parts": [{"type": "text", "data": {"text": "ab"}},
                  {"type": "tool_call", "data": {"id": "c", "name": "n", "input": "{", "finished": False}}],
    }  # fmt: skip
    good = [
        TextPiece(0, "text", 2, "é"),
        TextPiece(0, "text", 3, "d"),
        TextPiece(1, "tool_input", 1, "}"),
        TextPiece(2, "reasoning", 0, "hm"),
    ]
    assert fitting(message, good) == good
    for bad in (
        TextPiece(0, "text", 1, "x"),
        TextPiece(0, "reasoning", 2, "x"),
        TextPiece(3, "text", 0, "x"),
        TextPiece(2, "tool_input", 0, "x"),
        TextPiece(-1, "text", 0, "x"),
    ):
        assert fitting(message, [bad, *good]) == []


# ── files that are no store, or a damaged one ──


def _nothing(path: Path) -> None:
    path.parent.rmdir()


def _directory(path: Path) -> None:
    path.mkdir()


def _newer(path: Path) -> None:
    SqliteStore(path).close()
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("user_version", 99)


def _unused(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "wal")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_nothing, "there is no directory"),
        (lambda path: None, "covey.db is missing"),
        (_directory, "cannot be read: Is a directory"),
        (lambda path: path.write_bytes(b""), "is empty"),
        (lambda path: path.write_text("Dear friend, this is a letter."), "is not a database"),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + b"\xff" * 4080), "not a database"),
        (_newer, "newer version of Covey (schema 99): upgrade Covey"),
        (_unused, "holds nothing yet"),
    ],
)
def test_what_is_no_store_is_reported_in_a_sentence(tmp_path: Path, make: Callable[[Path], object], said: str) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    make(directory / "covey.db")
    with pytest.raises(NoStore) as raised:
        examine(directory)
    assert said in str(raised.value)
    assert str(directory) in str(raised.value)
    assert not raised.value.may_be_saved


def test_a_file_that_may_not_be_read_is_reported(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(oracle_file, "open", refuse, raising=False)
    with pytest.raises(NoStore, match="cannot be read: Permission denied"):
        examine(data_dir)


def test_a_store_that_another_program_has_locked_is_reported(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_file, "BUSY_MS", 1)
    with closing(apsw.Connection(str(data_dir / "covey.db"))) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(NoStore, match="locked by another program"):
            examine(data_dir)


def test_a_truncated_file_cannot_be_opened_but_may_be_saved(data_dir: Path) -> None:
    path = data_dir / "covey.db"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[: size - 5000])
    with pytest.raises(NoStore) as raised:
        examine(data_dir)
    assert f"it is truncated, {size - 5000} of {size} bytes are there" in str(raised.value)
    assert raised.value.may_be_saved
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(NoStore, match="truncated") as raised:
        examine(data_dir)
    assert not raised.value.may_be_saved


@pytest.mark.parametrize("table", TABLES)
def test_a_damaged_page_is_found(data_dir: Path, table: str) -> None:
    with meddling(data_dir) as db:
        page = db.get("SELECT rootpage FROM sqlite_schema WHERE name = ?", table)
    with open(data_dir / "covey.db", "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 4096)
    assert kinds(data_dir) == {"damaged_file"}
    assert examine(data_dir).records == []


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE message_tails",
        "DROP INDEX runs_by_seq",
        "ALTER TABLE runs RENAME COLUMN digest TO digested",
        "UPDATE messages SET role = CAST(x'ff' AS TEXT) WHERE position = 1",
        "UPDATE events SET seq = 'first' WHERE seq = 1",
    ],
)
def test_tables_that_no_server_has_made_are_damage(data_dir: Path, statement: str) -> None:
    with meddling(data_dir) as db:
        db.do(statement)
    assert kinds(data_dir) == {"damaged_file"}
