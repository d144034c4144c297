"""A damaged store → one that keeps its promises, in one transaction and after a backup. No server may be running.

What a workspace should hold is worked out by `oracle_repair`; here the difference is written. Nothing is renumbered.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import msgspec

from covey.doctor.oracle import Examination, examine, judge
from covey.doctor.oracle_file import BUSY_MS, NAME, NoStore, back_up, lost_version, salvage, version_of_tables
from covey.doctor.oracle_findings import Finding
from covey.doctor.oracle_record import LogEvent, Record, read_records
from covey.doctor.oracle_repair import repaired_record
from covey.store.base import UndoRow, prompt_digest

ROUNDS = 4
"""What one workspace gets back may be missing from another: those whose directory is known come first."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Repaired:
    before: Examination
    after: Examination
    backup: Path | None
    """None: there was nothing to repair, and nothing was touched."""
    saved: dict[str, int]
    """If the file itself was damaged: how many rows of each table could be read."""


def repair(data_dir: Path, now: Callable[[], float] = time.time) -> Repaired:
    """Make a backup, repair what can be repaired, and look again. Raises NoStore, OSError or apsw.Error.

    The caller owns the data directory, so that no server starts meanwhile.
    """
    before = _examined(data_dir)
    if not any(finding.explanation.repair for finding in before.findings):
        return Repaired(before, before, None, {})
    backup = back_up(data_dir, is_damaged=before.is_damaged)
    saved = salvage(data_dir) if before.is_damaged else {}
    _repair_all(data_dir, now())
    return Repaired(before, examine(data_dir), backup, saved)


def _examined(data_dir: Path) -> Examination:
    try:
        return examine(data_dir)
    except NoStore as error:
        if not error.may_be_saved:
            raise
        return Examination([Finding("damaged_file", str(error))])


def _repair_all(data_dir: Path, now: float) -> None:
    with contextlib.closing(apsw.Connection(str(data_dir / NAME))) as connection:
        connection.set_busy_timeout(BUSY_MS)
        connection.execute("BEGIN IMMEDIATE")
        if lost_version(connection):
            connection.pragma("user_version", version_of_tables(connection))
        for _ in range(ROUNDS):
            records, stray, wrong_contents = read_records(connection)
            connection.executemany("DELETE FROM message_tails WHERE message_id = ?", ((i,) for i in stray))
            if wrong_contents:
                connection.executemany("DELETE FROM blobs WHERE digest = ?", ((d,) for d in wrong_contents))
            wrong = [record for record in records if judge(record)]
            if not wrong:
                break
            for record in [record for record in wrong if record.path] or wrong:
                if record.path or _give_directory(connection, record, data_dir, int(now)):
                    _Writing(connection, record, repaired_record(record, now)).write()
        if connection.table_exists("main", "search_progress"):
            connection.execute("DELETE FROM search_progress")  # the next server builds the index for search again
        connection.execute("COMMIT")


def _give_directory(connection: apsw.Connection, record: Record, data_dir: Path, now: int) -> bool:
    """A place from which clients can open sessions whose own directory nobody knows any more; False: there are none."""
    connection.execute("DELETE FROM workspaces WHERE id = ?", (record.workspace_id,))
    if not record.sessions and not record.messages:
        for table in ("runs", "events", "sessions", "messages", "file_versions", "version_origins", "undos"):
            if connection.table_exists("main", table):
                connection.execute(f"DELETE FROM {table} WHERE workspace_id = ?", (record.workspace_id,))  # noqa: S608
        return False
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in record.workspace_id)[:50] or "-"
    known = {path for (path,) in connection.execute("SELECT path FROM workspaces")}
    while str(directory := data_dir.resolve() / "recovered" / name) in known:
        name += "-"
    directory.mkdir(parents=True, exist_ok=True)
    record.path, record.epoch = str(directory), now
    connection.execute("INSERT INTO workspaces VALUES (?, ?, ?, ?)", (record.workspace_id, record.path, now, now))
    return True


class _Writing:
    """The difference between a workspace as it was found and as it should be. Rows are replaced, others not touched."""

    def __init__(self, connection: apsw.Connection, found: Record, repaired: Record) -> None:
        self._execute = connection.execute
        self._found = found
        self._repaired = repaired
        self._id = found.workspace_id

    def write(self) -> None:
        self._write_sessions()
        self._write_runs()
        self._write_messages()
        self._write_tails()
        self._write_undos()
        self._write_events()

    def _outdated(self, table: str, found: dict[str, Any], repaired: dict[str, Any]) -> tuple[set[str], set[str]]:
        """The keys of rows that must go, and of those that must be written."""
        flawed = {flaw.key for flaw in self._found.flaws if flaw.table == table}
        written = {key for key, value in repaired.items() if key in flawed or found.get(key) != value}
        return (found.keys() | flawed) - repaired.keys() | written, written

    def _kept(self, columns: str, table: str, values: dict[str, Any], name: str) -> dict[str, Any]:
        """What else is in the rows, by the id that each gives itself; a row that has that id already comes first."""
        rows = {key: rest for key, *rest in self._rows(columns, table)}
        return {values[key][name]: rest for key, rest in rows.items() if key in values} | rows

    def _write_sessions(self) -> None:
        repaired = self._repaired.sessions
        gone, written = self._outdated("sessions", self._found.sessions, repaired)
        marks = self._kept("id, mark", "sessions", self._found.sessions, "id")
        self._delete("sessions", "id", gone)
        for key in written:
            row = (self._id, key, _encode(repaired[key]), repaired[key]["updated_at"], *marks.get(key, [0]))
            self._execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?)", row)

    def _write_runs(self) -> None:
        found, repaired = self._found, self._repaired
        gone, written = self._outdated("runs", found.runs, repaired.runs)
        damaged = {flaw.key for flaw in found.flaws if flaw.table == "attachments"}
        refiled = {i for i in found.runs if i in repaired.runs and found.run_columns[i] != repaired.run_columns[i]}
        written |= refiled | (damaged & repaired.runs.keys())
        kept = self._kept("run_id, digest, attachments", "runs", found.runs, "run_id")
        self._delete("runs", "run_id", gone | written)
        for key in written:
            run = repaired.runs[key]
            digest, attachments = kept.get(key, [_digest(run), b"[]"])
            cancelled = "cancelled_by" in run and "ended_at" not in run
            columns = (self._id, key, run["session_id"], *repaired.run_columns[key], cancelled, digest)
            blobs = (_encode(run), b"[]" if key in damaged else attachments)
            self._execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", columns + blobs)

    def _write_messages(self) -> None:
        repaired = self._repaired.messages
        gone, written = self._outdated("messages", self._found.messages, repaired)
        positions = self._positions()
        moved = {key for key in repaired if positions[key] != self._position.get(key)}
        for key in gone | moved:  # also if it is filed under another workspace: ids of messages are unique in a store
            self._execute("DELETE FROM messages WHERE id = ?", (key,))
        for key in repaired:
            if key in written or key in moved:
                message = repaired[key]
                filed = (key, self._id, message["session_id"], message.get("run_id"), message["role"])
                row = (positions[key], *filed, _encode(message))
                self._execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def _positions(self) -> dict[str, int]:
        """Where each message stands: where it was, unless a new one of its session has to stand before it."""
        kept = self._kept("id, position", "messages", self._found.messages, "id")
        self._position = {key: position for key, (position,) in kept.items()}
        last = next(self._execute("SELECT coalesce(max(position), 0) FROM messages"))[0]
        positions: dict[str, int] = {}
        previous: dict[str, int] = {}
        for key, message in self._repaired.messages.items():
            session_id, known = message["session_id"], self._position.get(key)
            if known is None or known <= previous.get(session_id, 0):
                last += 1
                known = last  # so everything after it gets a place at the end, too
            positions[key] = previous[session_id] = known
        return positions

    def _write_tails(self) -> None:
        for message_id, pieces in self._found.tails.items():
            kept = self._repaired.tails.get(message_id, [])
            for piece in pieces:
                if piece not in kept:
                    key = (message_id, piece.part, piece.offset)
                    self._execute("DELETE FROM message_tails WHERE message_id = ? AND part = ? AND offset = ?", key)

    def _write_undos(self) -> None:
        """One that cannot be read is forgotten; which turns were taken back is then known from the log."""
        for flaw in self._found.flaws:
            if flaw.table == "undos":
                key = (self._id, flaw.key)
                value = self._execute("DELETE FROM undos WHERE workspace_id = ? AND id = ? RETURNING value", key).get
                if flaw.kind == "misfiled_row":
                    self._put_undo(msgspec.json.decode(value, type=UndoRow))
        for run_id in self._repaired.undone - self._found.undone:
            session_id = self._repaired.runs.get(run_id, {}).get("session_id", "")
            if session_id in self._repaired.sessions:
                # An id below all that were ever given out: the next one is counted from the highest.
                self._put_undo(UndoRow(f"-{run_id}", session_id, (run_id,), 0.0, done=True))

    def _put_undo(self, row: UndoRow) -> None:
        values = (self._id, row.id, row.session_id, row.done, _encode(row))
        self._execute("INSERT OR REPLACE INTO undos VALUES (?, ?, ?, ?, ?)", values)

    def _write_events(self) -> None:
        found, repaired = self._found, self._repaired
        known = {event.seq for event in found.events}
        if repaired.epoch != found.epoch:
            self._execute("DELETE FROM events WHERE workspace_id = ?", (self._id,))
            self._execute("UPDATE workspaces SET epoch = ? WHERE id = ?", (repaired.epoch, self._id))
            known = set()
        misfiled = {flaw.key for flaw in found.flaws if flaw[:2] == ("misfiled_row", "events")}
        for event in repaired.events:
            if event.seq not in known:
                value = {"type": event.type, "payload": {"type": event.change, "payload": event.payload}}
                row = (self._id, event.seq, _session_of(event), _encode(value))
                self._execute("INSERT INTO events VALUES (?, ?, ?, ?)", row)
            elif str(event.seq) in misfiled:
                filed = (_session_of(event), self._id, event.seq)
                self._execute("UPDATE events SET session_id = ? WHERE workspace_id = ? AND seq = ?", filed)

    def _rows(self, columns: str, table: str) -> list[tuple[Any, ...]]:
        query = f"SELECT {columns} FROM {table} WHERE workspace_id = ?"  # noqa: S608 ours alone
        return list(self._execute(query, (self._id,)))

    def _delete(self, table: str, column: str, keys: set[str]) -> None:
        for key in keys:
            self._execute(f"DELETE FROM {table} WHERE workspace_id = ? AND {column} = ?", (self._id, key))  # noqa: S608


def _session_of(event: LogEvent) -> str:
    return str(event.payload.get("id" if event.type == "session" else "session_id") or "")


def _digest(run: Any) -> str:
    """The same prompt, posted again, is still this run. What was attached to it is lost."""
    return prompt_digest(run["session_id"], run["prompt"], (), run.get("options"))
