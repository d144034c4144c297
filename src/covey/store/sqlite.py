"""The store on SQLite, through apsw: its bundled library is free of the WAL-reset bug of the one most Pythons link.

Values are kept as the JSON that clients see, beside the columns by which they are looked up: `sqlite3` and `jq` are
enough to read a store.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import apsw
import msgspec

from covey.protocol.messages import Attachment
from covey.protocol.runs import Run
from covey.store import queries, schema, sqlite_files, sqlite_search, sqlite_spending
from covey.store.backups import Backups
from covey.store.base import (
    AppendText,
    Change,
    DropMessages,
    DropSession,
    InsertRun,
    LogBounds,
    PutEarlyCancel,
    PutFileVersion,
    PutMessage,
    PutSession,
    PutUndo,
    PutWorkspace,
    RunExists,
    RunRow,
    SetMark,
    StoredEvent,
    StoreFailed,
    UndoRow,
    UpdateRun,
    WorkspaceRow,
    Write,
)
from covey.store.open_file import OpenFile
from covey.store.search_text import Hits
from covey.store.spending import AddSpending, SpendingRow
from covey.store.sqlite_conversations import Conversations, ReadsConversations
from covey.store.sqlite_failures import failures
from covey.store.sqlite_upkeep import Upkeep

if TYPE_CHECKING:
    from covey.lifecycle.undo import FileStep

log = logging.getLogger(__name__)

WAL_RESET_FIXED = (3, 51, 3)
"""Older SQLite can corrupt a WAL database when two connections write and checkpoint at the same instant."""
RECENT_EVENTS = 1000
"""How far back to look for sessions that were deleted: nobody sets a clock back further by accident."""
EVENTS_BYTES = 1024 * 1024
"""Events are given out together up to this; a larger one comes alone."""
LOST = "the file of the store was deleted or replaced while it is in use: nothing can be kept; restart the server"

_encode = msgspec.json.Encoder().encode
_run = msgspec.json.Decoder(Run).decode
_attachments = msgspec.json.Decoder(tuple[Attachment, ...]).decode


class SqliteStore(ReadsConversations):
    """One database file for all workspaces of a server."""

    while_away: Callable[[], None]  # never: it is always known here what became of a commit

    def __init__(self, path: Path) -> None:
        version = tuple(int(number) for number in apsw.sqlite_lib_version().split("."))
        if version < WAL_RESET_FIXED:
            raise StoreFailed(f"SQLite {apsw.sqlite_lib_version()} can corrupt data; upgrade apsw", passing=False)
        self._path = str(path)
        self._local = threading.local()
        self._opened: list[apsw.Connection] = []
        self._last_seq: dict[str, int] = {}
        self._synchronous = ""
        self._is_lost = False
        with failures(f"cannot open {path}"):
            path.touch(mode=0o600)
            path.chmod(0o600)  # conversations are nobody else's business, whatever the directory's mode
            self._writer = self._connect()
            self._migrate()
            self._is_searched = sqlite_search.open_index(self._writer)
            self._conversations = Conversations(self._writer, is_searched=self._is_searched)
            self._upkeep = Upkeep(self._writer, self._conversations, is_searched=self._is_searched)
            self.backups = Backups(self._writer, path)
            self._file = OpenFile(self._path)

    # ── writing ──

    def commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
        if self._is_lost:  # and it stays so: what was written since must not be written twice
            raise StoreFailed(LOST, passing=True)
        with failures(f"cannot write {self._path}"):
            results = self._commit(changes)
        if self.is_lost():
            self._is_lost = True
            log.critical("%s: %s", self._path, LOST)
            raise StoreFailed(LOST, passing=True)
        return results

    def is_lost(self) -> bool:
        return self._is_lost or self._file.is_lost()

    def _commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
        self._sync("FULL" if any(change.durable for change in changes) else "NORMAL")
        last_seq: dict[str, int] = {}
        with self._transaction():
            results = [self._write_change(change, last_seq) for change in changes]
        self._last_seq.update(last_seq)
        return results

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """Locked from the beginning: one that has read first may not write any more if somebody else has."""
        execute = self._writer.cursor().execute
        execute("BEGIN IMMEDIATE")
        try:
            yield
            execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                execute("ROLLBACK")
            raise

    def _write_change(self, change: Change, last_seq: dict[str, int]) -> int | RunExists:
        try:
            for write in change.writes:
                self._write(change.workspace_id, write)
        except RunExists as error:
            return error
        workspace_id = change.workspace_id
        seq = last_seq.get(workspace_id)
        if seq is None:
            seq = self._last_event_seq(workspace_id)
        execute = self._writer.cursor().execute
        for number, (event, encoded) in enumerate(zip(change.events, change.encoded, strict=True), seq + 1):
            execute("INSERT INTO events VALUES (?, ?, ?, ?)", (workspace_id, number, event.session_id, encoded))
        last_seq[workspace_id] = seq + len(change.events)
        return seq + 1

    def _write(self, workspace_id: str, write: Write) -> None:
        execute = self._writer.cursor().execute
        match write:
            case PutMessage(message):
                self._conversations.put_message(workspace_id, message)
            case AppendText():
                self._conversations.append_text(write)
            case InsertRun(row):
                self._insert_run(workspace_id, row)
            case UpdateRun(run):
                execute(
                    "UPDATE runs SET state = ?, ended = ?, cancelled = ?, value = ?"
                    " WHERE workspace_id = ? AND run_id = ?",
                    (run.state, run.ended, run.is_being_cancelled, _encode(run), workspace_id, run.run_id),
                )
            case PutSession(session):
                self._conversations.put_session(workspace_id, session)
            case SetMark(session_id, mark):
                execute(
                    "UPDATE sessions SET mark = max(mark, ?) WHERE workspace_id = ? AND id = ?",
                    (mark, workspace_id, session_id),
                )
            case PutEarlyCancel(run_id, until):
                execute("DELETE FROM early_cancels WHERE until < ?", (until - 3600,))
                execute("INSERT OR REPLACE INTO early_cancels VALUES (?, ?, ?)", (workspace_id, run_id, until))
            case AddSpending():
                sqlite_spending.add(self._writer, workspace_id, write)
            case PutFileVersion() | DropMessages() | DropSession() | PutUndo() | PutWorkspace():
                self._write_rarely(workspace_id, write)
            case _:
                assert_never(write)

    def _write_rarely(
        self, workspace_id: str, write: PutFileVersion | DropMessages | DropSession | PutUndo | PutWorkspace
    ) -> None:
        match write:
            case PutFileVersion():
                sqlite_files.put_version(self._writer, workspace_id, write)
            case DropMessages(session_id, message_ids):
                self._conversations.drop_messages(workspace_id, session_id, message_ids)
            case DropSession(session_id):
                self._conversations.drop_session(workspace_id, session_id)
                self._upkeep.is_due = True
            case PutUndo(undo):
                sqlite_files.put_undo(self._writer, workspace_id, undo)
            case PutWorkspace(row):
                values = (row.id, row.path, row.epoch, row.created_at)
                self._writer.cursor().execute("INSERT INTO workspaces VALUES (?, ?, ?, ?)", values)
            case _:
                assert_never(write)

    def _insert_run(self, workspace_id: str, row: RunRow) -> None:
        run = row.run
        self._writer.cursor().execute(
            "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (workspace_id, run_id) DO NOTHING",
            (
                workspace_id,
                run.run_id,
                run.session_id,
                run.seq,
                run.state,
                run.ended,
                run.is_being_cancelled,
                row.digest,
                _encode(run),
                _encode(row.attachments),
            ),
        )
        if self._writer.changes() == 0:
            raise RunExists(run.run_id)

    def _last_event_seq(self, workspace_id: str) -> int:
        if workspace_id not in self._last_seq:
            query = "SELECT coalesce(max(seq), 0) FROM events WHERE workspace_id = ?"
            self._last_seq[workspace_id] = self._writer.cursor().execute(query, (workspace_id,)).get
        return self._last_seq[workspace_id]

    def trim_events(self, workspace_id: str, keep: int) -> None:
        # The newest event is never removed: it is what the next number is counted from.
        last = self._last_event_seq(workspace_id)
        with failures("cannot trim the event log"):
            self._upkeep.trim(workspace_id, last - max(keep, 1))

    def upkeep(self) -> bool:
        if self._is_lost:
            return False
        with failures("upkeep failed"):
            if self._upkeep.is_due:
                self._sync("NORMAL")
                with self._transaction():
                    if self._upkeep.piece():
                        return True
            return self.backups.piece()

    # ── reading ──

    def workspaces(self) -> list[WorkspaceRow]:
        return [WorkspaceRow(*row) for row in self._read("SELECT id, path, epoch, created_at FROM workspaces")]

    def log_bounds(self, workspace_id: str) -> LogBounds:
        query = "SELECT coalesce(min(seq) - 1, 0), coalesce(max(seq), 0) FROM events WHERE workspace_id = ?"
        return LogBounds(*next(iter(self._read(query, workspace_id))))

    def events(self, workspace_id: str, after: int, upto: int, session_id: str, limit: int) -> list[StoredEvent]:
        page: list[StoredEvent] = []
        size = 0
        with failures("cannot read"):
            cursor = self._reader().cursor()
            for seq, encoded in cursor.execute(
                *queries.events("seq, encoded", workspace_id, after, upto, session_id, limit)
            ):
                size += len(encoded)
                if page and size > EVENTS_BYTES:
                    break
                page.append(StoredEvent(seq, encoded))
            cursor.close()
        return page

    def next_size(self, workspace_id: str, after: int, upto: int, session_id: str) -> int:
        query, values = queries.events("length(encoded)", workspace_id, after, upto, session_id, 1)
        return next((size for (size,) in self._read(query, *values)), 0)

    def newest_id(self, workspace_id: str) -> str:
        query = (
            "SELECT max(id) FROM messages UNION ALL SELECT max(id) FROM undos"
            " UNION ALL SELECT max(id) FROM sessions WHERE workspace_id = ?"
            " UNION ALL SELECT max(session_id) FROM"
            " (SELECT session_id FROM events WHERE workspace_id = ? ORDER BY seq DESC LIMIT ?)"
        )
        rows = self._read(query, workspace_id, workspace_id, RECENT_EVENTS)
        return max((found for (found,) in rows if found), default="")

    def event_sizes(self, workspace_id: str, limit: int) -> list[int]:
        query = "SELECT length(encoded) FROM events WHERE workspace_id = ? ORDER BY seq DESC LIMIT ?"
        return [size for (size,) in self._read(query, workspace_id, limit)]

    def search(self, workspace_id: str, query: str, limit: int, before: str = "") -> Hits:
        if not self._is_searched:
            raise sqlite_search.unavailable()
        with failures("cannot search"):
            return sqlite_search.search(self._reader(), workspace_id, query, limit, before)

    def run(self, workspace_id: str, run_id: str) -> RunRow | None:
        return next(iter(self._run_rows("workspace_id = ? AND run_id = ?", workspace_id, run_id)), None)

    def runs(self, workspace_id: str, session_id: str, state: str, limit: int) -> list[Run]:
        query = "SELECT value FROM runs WHERE workspace_id = ?"
        values: list[Any] = [workspace_id]
        for column, value in (("session_id", session_id), ("state", state)):
            if value:
                query += f" AND {column} = ?"
                values.append(value)
        if state in ("accepted", "queued", "active"):
            query += " AND ended = 0"  # by the index of open runs, however many have ended
        return [_run(value) for (value,) in self._read(query + " ORDER BY seq DESC LIMIT ?", *values, limit)]

    def open_runs(self, workspace_id: str) -> list[RunRow]:
        return self._run_rows("workspace_id = ? AND ended = 0 ORDER BY seq", workspace_id)

    def _run_rows(self, where: str, *values: Any) -> list[RunRow]:
        query = f"SELECT value, digest, attachments FROM runs WHERE {where}"  # noqa: S608 ours alone
        return [
            RunRow(_run(value), digest, _attachments(attachments))
            for value, digest, attachments in self._read(query, *values)
        ]

    def last_run_seq(self, workspace_id: str) -> int:
        query = "SELECT coalesce(max(seq), 0) FROM runs WHERE workspace_id = ?"
        return int(next(iter(self._read(query, workspace_id)))[0])

    def early_cancels(self, workspace_id: str) -> list[PutEarlyCancel]:
        query = "SELECT run_id, until FROM early_cancels WHERE workspace_id = ? ORDER BY until"
        return [PutEarlyCancel(*row) for row in self._read(query, workspace_id)]

    def file_steps(self, workspace_id: str, session_id: str, run_ids: Sequence[str] | None) -> list[FileStep]:
        return sqlite_files.file_steps(self._read, workspace_id, session_id, run_ids)

    def content(self, workspace_id: str, digest: str) -> bytes | None:
        # Kept once for all workspaces of this file: they are one user's.
        return sqlite_files.content(self._read, digest)

    def undos(self, workspace_id: str, *, pending: bool) -> list[UndoRow]:
        return sqlite_files.undos(self._read, workspace_id, pending=pending)

    def spending(self, since_day: int, limit: int) -> list[SpendingRow]:
        return sqlite_spending.read(self._read, since_day, limit)

    def _read(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        with failures("cannot read"):
            return iter(self._reader().cursor().execute(query, values).fetchall())

    def _reader(self) -> apsw.Connection:
        """The connection of this thread."""
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
        return connection

    # ── opening and closing ──

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(self._path)
        self._opened.append(connection)
        connection.set_busy_timeout(5000)
        # `auto_vacuum` first: it counts only for a file that is still empty.
        for pragma in (
            "auto_vacuum = INCREMENTAL",
            "journal_mode = WAL",
            "synchronous = FULL",
            "temp_store = MEMORY",
            "cache_size = -4000",
        ):
            connection.pragma(*pragma.split(" = "))
        return connection

    def _sync(self, level: str) -> None:
        if level != self._synchronous:
            self._writer.pragma("synchronous", level)
            self._synchronous = level

    def _migrate(self) -> None:
        version = self._writer.pragma("user_version")
        if version > len(schema.STEPS):
            message = f"{self._path} was written by a newer version of Covey (schema {version}): upgrade Covey"
            raise StoreFailed(message, passing=False)
        for number, step in enumerate(schema.STEPS[version:], version + 1):
            with self._writer:
                self._writer.execute(step)
                self._writer.pragma("user_version", number)

    def close(self) -> None:
        self.backups.abandon()
        for connection in self._opened:
            connection.close()
