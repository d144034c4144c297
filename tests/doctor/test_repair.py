"""Repairing a store: nothing is lost that can be kept, the real engine can go on with it, and once is enough."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from covey.doctor import repair
from covey.doctor.oracle import Examination, examine
from covey.doctor.oracle_file import NoStore
from covey.doctor.oracle_record import KEYS, TABLES
from tests.support.good_stores import make_stores, take_up
from tests.support.meddling import meddling
from tests.support.undo_damages import DAMAGES

RESTORED = [
    "a_broken_event", "a_broken_message", "a_broken_run", "a_far_event", "a_gap", "a_lost_message", "a_lost_version",
    "a_message_after_the_end", "a_message_that_came_back", "a_misfiled_event", "a_misfiled_message", "a_misfiled_run",
    "a_misfiled_session", "a_run_filed_as_open", "a_run_lost_from_a_trimmed_log", "a_session_of_another_id",
    "a_session_that_came_back", "a_wrong_count", "an_earlier_end_unlogged", "an_event_of_no_run",
    "an_event_of_nowhere", "an_event_without_a_field", "another_answer", "another_prompt", "another_run_id",
    "another_seq", "another_title", "lost_messages", "messages_in_another_order", "messages_of_nowhere", "no_log",
    "a_broken_undo", "an_undo_of_another_session", "an_undone_message_that_came_back", "another_content",
    "seqs_that_fall", "text_of_a_finished_message", "text_of_nothing", "the_last_end_unlogged",
    "the_newest_events_lost", "turns_that_overlap", "two_ends",
]  # fmt: skip
"""Damages of which either the rows or the log know all: every row is afterwards as it was before."""
WITHOUT_A_GAP = [
    "a_broken_undo", "an_undo_of_another_session", "an_undone_message_that_came_back", "another_content",
    "a_broken_message", "a_broken_run", "a_lost_message", "a_lost_version", "a_lost_run", "a_misfiled_event",
    "a_misfiled_message", "a_misfiled_run", "a_session_that_came_back", "a_wrong_count", "another_answer",
    "another_prompt", "another_title", "broken_attachments", "lost_messages", "messages_in_another_order",
    "text_of_a_finished_message", "the_last_end_unlogged",
]  # fmt: skip
"""Damages that leave the log as it is: no client has to load everything again."""


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("stores")
    make_stores(directory)
    return directory


@pytest.fixture
def data_dir(stores: Path, tmp_path: Path) -> Path:
    shutil.copy(stores / "ended" / "covey.db", tmp_path / "covey.db")
    return tmp_path


def rows(data_dir: Path, *tables: str) -> dict[str, list[Any]]:
    """All rows. Of messages it matters only in which order those of a session stand."""
    with closing(apsw.Connection(str(data_dir / "covey.db"))) as connection:
        found = {}
        for table in tables:
            columns = ", ".join(name for name in TABLES[table] if name != "position")
            order = "session_id, position" if table == "messages" else KEYS[table]
            found[table] = [tuple(row) for row in connection.execute(f"SELECT {columns} FROM {table} ORDER BY {order}")]
    return found


def damage(data_dir: Path, name: str) -> None:
    with meddling(data_dir) as db:
        DAMAGES[name].do(db)


def values(table: list[Any]) -> list[Any]:
    """With JSON as what it says: a field may stand elsewhere in it."""
    return [[json.loads(cell) if isinstance(cell, bytes) else cell for cell in row] for row in table]


def strange(found: Examination) -> list[str]:
    return [str(finding) for finding in found.findings]


def test_a_healthy_store_is_not_touched(data_dir: Path) -> None:
    before = (data_dir / "covey.db").read_bytes()
    done = repair.repair(data_dir)
    assert (done.backup, done.saved, done.after.findings) == (None, {}, [])
    assert (data_dir / "covey.db").read_bytes() == before
    assert not list(data_dir.glob("*backup*"))


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_repaired_and_the_second_time_changes_nothing(data_dir: Path, name: str) -> None:
    damage(data_dir, name)
    done = repair.repair(data_dir)
    assert DAMAGES[name].kind in {finding.kind for finding in done.before.findings}
    assert strange(done.after) == []
    after = (data_dir / "covey.db").read_bytes()
    assert repair.repair(data_dir).backup is None
    assert (data_dir / "covey.db").read_bytes() == after


@pytest.mark.parametrize("name", [name for name in DAMAGES if name not in ("a_lost_workspace", "a_lost_path")])
def test_the_engine_goes_on_with_a_repaired_store(data_dir: Path, name: str) -> None:
    damage(data_dir, name)
    repair.repair(data_dir)
    asyncio.run(take_up(data_dir, "hello"))
    assert strange(examine(data_dir)) == []


@pytest.mark.parametrize("name", RESTORED)
def test_what_rows_or_log_know_comes_back(stores: Path, data_dir: Path, name: str) -> None:
    damage(data_dir, name)
    repair.repair(data_dir)
    kept = ("sessions", "messages", "runs", "message_tails")
    before, after = rows(stores / "ended", *kept), rows(data_dir, *kept)
    for table in kept:
        assert values(after[table]) == values(before[table])


@pytest.mark.parametrize("name", ["a_broken_undo", "an_undo_of_another_session"])
def test_what_was_undone_stays_undone_also_when_the_log_forgets(data_dir: Path, name: str) -> None:
    damage(data_dir, name)
    repair.repair(data_dir)
    with meddling(data_dir) as db:
        db.trim()
    (record,) = examine(data_dir).records
    assert (strange(examine(data_dir)), record.undone) == ([], {"r-undone"})


@pytest.mark.parametrize("name", DAMAGES)
def test_a_new_epoch_begins_only_if_history_was_lost(data_dir: Path, name: str) -> None:
    damage(data_dir, name)
    before = rows(data_dir, "events")["events"]
    (record,) = repair.repair(data_dir).after.records
    after = rows(data_dir, "events")["events"]
    if record.events[0].type == "config_changed":
        assert name not in WITHOUT_A_GAP
        assert record.epoch > 7
        assert record.events[0].seq > 1, "a log that begins with 1 claims to tell everything"
    else:
        assert [row[1] for row in after[: len(before)]] == [row[1] for row in before], "nothing is renumbered"
        assert [row[3] for row in after[: len(before)]] == [row[3] for row in before]


def test_a_missing_end_is_written_after_all_that_was_published(stores: Path, data_dir: Path) -> None:
    damage(data_dir, "the_last_end_unlogged")
    repair.repair(data_dir)
    (before,), (after,) = examine(stores / "ended").records, examine(data_dir).records
    added, again = before.events[-1], after.events[-1]
    assert added.type == again.type == "run_complete"
    assert {**added.payload, "usage": None} == {**again.payload, "usage": None}
    assert after.epoch == before.epoch


def test_open_runs_stay_open_with_their_text(stores: Path, data_dir: Path) -> None:
    shutil.copy(stores / "open" / "covey.db", data_dir / "covey.db")
    for name in ("a_wrong_count", "a_gap", "another_prompt"):
        damage(data_dir, name)
    repair.repair(data_dir)
    kept = ("message_tails", "runs")
    before, after = rows(stores / "open", *kept), rows(data_dir, *kept)
    assert before["message_tails"] == after["message_tails"] != []
    assert values(before["runs"]) == values(after["runs"])


def test_an_open_run_whose_row_was_lost_goes_on(stores: Path, data_dir: Path) -> None:
    shutil.copy(stores / "open" / "covey.db", data_dir / "covey.db")
    before = values(rows(data_dir, "runs")["runs"])
    with meddling(data_dir) as db:
        db.do("DELETE FROM runs WHERE ended = 0")
    repair.repair(data_dir)
    assert values(rows(data_dir, "runs")["runs"]) == before, "with its digest: posted again, it is still this run"
    asyncio.run(take_up(data_dir))
    assert strange(examine(data_dir)) == []


def test_a_run_that_has_begun_is_not_begun_again_because_the_log_forgot(data_dir: Path) -> None:
    damage(data_dir, "a_start_that_was_not_logged")
    (record,) = repair.repair(data_dir).after.records
    assert record.runs["r-queued"]["state"] == "active"
    asyncio.run(take_up(data_dir))
    (record,) = examine(data_dir).records
    assert record.runs["r-queued"]["state"] == "interrupted"


@pytest.mark.parametrize("seed", range(60))
def test_several_damages_at_once_are_repaired(stores: Path, data_dir: Path, seed: int) -> None:
    chance = random.Random(seed)
    shutil.copy(stores / chance.choice(["ended", "open"]) / "covey.db", data_dir / "covey.db")
    for name in chance.sample(list(DAMAGES), chance.randint(2, 6)):
        with suppress(AssertionError, TypeError, KeyError, ValueError, apsw.Error):  # nothing is left to be damaged
            damage(data_dir, name)
    done = repair.repair(data_dir)
    assert strange(done.after) == []
    assert repair.repair(data_dir).backup is None


# ── what a turn lacks ──


def transcript(data_dir: Path, run_id: str) -> list[tuple[str, str, str]]:
    """Role, text or tool result, and finish reason of each message of a run, in order."""
    (record,) = examine(data_dir).records
    found = []
    for message in record.messages.values():
        if message.get("run_id") == run_id:
            parts = {part["type"]: part["data"] for part in message["parts"]}
            text = parts.get("text", {}).get("text", "") or parts.get("tool_result", {}).get("content", "")
            found.append((message["role"], text, parts.get("finish", {}).get("reason", "")))
    return found


@pytest.mark.parametrize(
    ("name", "run_id", "expected"),
    [
        (
            "a_lost_prompt", "r-tool",
            [("user", "use the tool", ""), ("assistant", "I look.", "tool_use"), ("tool", "worked", ""),
             ("assistant", "done", "end_turn")],
        ),
        (
            "a_lost_result", "r-tool",
            [("user", "use the tool", ""), ("assistant", "I look.", "tool_use"),
             ("tool", "The call did not finish, because the run failed. It may have had effects.", ""),
             ("assistant", "done", "end_turn")],
        ),
        ("a_lost_answer", "r-fail", [("user", "fail", ""), ("assistant", "", "error")]),
        ("a_lost_turn", "r-cancel", [("user", "cancel me", ""), ("assistant", "", "canceled")]),
        ("a_lost_turn", "r-active", [("user", "go on for long", ""), ("assistant", "", "error")]),
        ("answers_without_an_end", "r-cancel", [("user", "cancel me", ""), ("assistant", "I will", "canceled")]),
        ("text_that_does_not_fit", "r-cancel", [("user", "cancel me", ""), ("assistant", "I wi", "canceled")]),
        ("answers_without_an_end", "r-other", [("user", "hello", ""), ("assistant", "done", "unknown")]),
        ("a_dropped_run_with_messages", "r-drop", [("user", "use the tool", ""), ("assistant", "", "canceled")]),
    ],
)  # fmt: skip
def test_a_turn_gets_what_it_lacks(data_dir: Path, name: str, run_id: str, expected: list[Any]) -> None:
    damage(data_dir, name)
    repair.repair(data_dir)
    assert transcript(data_dir, run_id) == expected


def test_messages_that_belong_to_no_turn_stay_in_the_conversation(data_dir: Path) -> None:
    (before,) = examine(data_dir).records
    for name in ("two_prompts", "a_message_that_was_never_logged"):
        damage(data_dir, name)
    (after,) = repair.repair(data_dir).after.records
    assert before.messages.keys() < after.messages.keys()
    assert "run_id" not in after.messages["twin"]


@pytest.mark.parametrize(
    ("name", "ended"),
    [
        ("two_active_runs", {"r-tool", "r-host", "r-folded"}),
        ("completed_but_open", {"r-tool"}),
        ("folded_into_nothing", {"r-folded"}),
        ("an_open_run_of_a_deleted_session", {"r-gone"}),
    ],
)
def test_runs_that_cannot_go_on_end_as_interrupted_with_one_terminal_event(
    data_dir: Path, name: str, ended: set[str]
) -> None:
    damage(data_dir, name)
    (before,) = examine(data_dir).records
    (after,) = repair.repair(data_dir).after.records
    added = [event.payload for event in after.events if event.seq > before.events[-1].seq]
    ends = [payload for payload in added if payload.get("interrupted")]
    assert sorted(end["run_id"] for end in ends) == sorted(ended)
    assert all(end["error"] for end in ends)
    assert {run_id for run_id in ended if "ended_at" in after.runs[run_id]} == ended


@pytest.mark.parametrize("name", ["a_lost_workspace", "a_lost_path"])
def test_sessions_of_a_lost_workspace_get_a_directory(data_dir: Path, name: str) -> None:
    before = rows(data_dir, "sessions", "messages")
    damage(data_dir, name)
    (record,) = repair.repair(data_dir).after.records
    assert record.path == str(data_dir / "recovered" / "w")
    assert Path(record.path).is_dir()
    assert rows(data_dir, "sessions", "messages") == before


# ── the file ──


def test_the_backup_is_what_was_there_and_is_never_overwritten(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda _: "20260101-000000")
    backups = []
    for _ in range(3):
        damage(data_dir, "a_wrong_count")
        before = rows(data_dir, *TABLES)
        done = repair.repair(data_dir)
        assert done.backup and done.backup.stat().st_mode & 0o777 == 0o600
        backups.append(done.backup)
        copy = data_dir / f"copy{len(backups)}"
        copy.mkdir()
        shutil.copy(done.backup, copy / "covey.db")
        assert rows(copy, *TABLES) == before
        assert strange(examine(copy)) == strange(done.before)
    assert len(set(backups)) == 3
    assert backups[0].name == "covey.db.backup-20260101-000000"


def test_a_repair_that_fails_half_way_leaves_everything_as_it_was(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(data_dir, "a_gap")
    damage(data_dir, "lost_messages")
    before = rows(data_dir, *TABLES)

    def fail(_: object) -> None:
        raise apsw.FullError("the disk is full")

    monkeypatch.setattr(repair._Writing, "_write_events", fail)
    with pytest.raises(apsw.FullError):
        repair.repair(data_dir)
    assert rows(data_dir, *TABLES) == before


def zap(data_dir: Path, table: str) -> int:
    """Overwrite a page in the middle of a table; how many rows are left beside it."""
    query = "SELECT pageno, ncell FROM dbstat WHERE name = ? AND pagetype = 'leaf'"
    with closing(apsw.Connection(str(data_dir / "covey.db"))) as connection:
        leaves = list(connection.execute(query, (table,)))
    page, _ = leaves.pop(len(leaves) // 2)
    with open(data_dir / "covey.db", "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 4096)
    return sum(count for _, count in leaves)


def test_of_a_damaged_file_all_that_can_be_read_is_saved(stores: Path, data_dir: Path) -> None:
    zap(data_dir, "events")
    left = zap(data_dir, "messages")
    damaged = (data_dir / "covey.db").read_bytes()
    done = repair.repair(data_dir)
    assert done.before.is_damaged
    assert strange(done.after) == []
    assert done.backup and done.backup.read_bytes() == damaged
    assert done.saved["messages"] == left > 0
    assert rows(data_dir, "runs") == rows(stores / "ended", "runs")
    (record,) = done.after.records
    assert record.epoch > 7
    asyncio.run(take_up(data_dir, "hello"))
    assert strange(examine(data_dir)) == []


def test_of_a_truncated_file_all_that_can_be_read_is_saved(data_dir: Path) -> None:
    path = data_dir / "covey.db"
    path.write_bytes(path.read_bytes()[: 3 * path.stat().st_size // 4])
    done = repair.repair(data_dir)
    assert done.before.is_damaged and done.backup
    assert strange(done.after) == []
    assert done.saved["workspaces"] == 1
    assert repair.repair(data_dir).backup is None


def test_a_log_file_beside_a_damaged_one_is_kept_with_the_backup_and_never_applied_to_the_new_file(
    data_dir: Path, tmp_path: Path
) -> None:
    with closing(apsw.Connection(str(data_dir / "covey.db"))) as connection:
        connection.pragma("journal_mode", "wal")
        connection.execute("UPDATE sessions SET mark = 12")
        shutil.copy(data_dir / "covey.db", tmp_path / "main")
        shutil.copy(data_dir / "covey.db-wal", tmp_path / "log")
    shutil.copy(tmp_path / "main", data_dir / "covey.db")
    shutil.copy(tmp_path / "log", data_dir / "covey.db-wal")
    zap_page = (data_dir / "covey.db").stat().st_size - 4096
    with open(data_dir / "covey.db", "r+b") as file:
        file.seek(zap_page)
        file.write(b"\xa5" * 4096)
    done = repair.repair(data_dir)
    assert done.backup and done.before.is_damaged
    assert done.backup.with_name(done.backup.name + "-wal").read_bytes() == (tmp_path / "log").read_bytes()
    assert {row[4] for row in rows(data_dir, "sessions")["sessions"]} == {12}, "what was only in the log is saved"
    assert strange(examine(data_dir)) == []


def test_what_cannot_be_opened_cannot_be_repaired(data_dir: Path) -> None:
    (data_dir / "covey.db").write_bytes(b"x" * 4096)
    with pytest.raises(NoStore):
        repair.repair(data_dir)
    assert [path.name for path in data_dir.iterdir()] == ["covey.db"]
