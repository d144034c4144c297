"""The store on SQLite, through apsw: its bundled library is free of the WAL-reset bug of the one most Pythons link.

Values are kept as the JSON that clients see, beside the columns by which they are looked up: `sqlite3` and `jq` are
enough to read a store.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, assert_never

import apsw
import msgspec

from covey.lifecycle.undo import FileStep
from covey.protocol.growth import TextPiece, grown
from covey.protocol.messages import Attachment, Message, Session
from covey.protocol.runs import Run
from covey.store import queries, schema, sqlite_files
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
    SessionRow,
    SetMark,
    StoredEvent,
    StoreFailed,
    UndoRow,
    UpdateRun,
    WorkspaceRow,
    Write,
    unknown_message,
)

WAL_RESET_FIXED = (3, 51, 3)
"""Older SQLite can corrupt a WAL database when two connections write and checkpoint at the same instant."""
RECENT_EVENTS = 1000
"""How far back to look for sessions that were deleted: nobody sets a clock back further by accident."""
EVENTS_BYTES = 1024 * 1024
"""Events are given out together up to this; a larger one comes alone."""

_encode = msgspec.json.Encoder().encode
_session = msgspec.json.Decoder(Session).decode
_message = msgspec.json.Decoder(Message).decode
_run = msgspec.json.Decoder(Run).decode
_attachments = msgspec.json.Decoder(tuple[Attachment, ...]).decode

_PASSING = (
    apsw.FullError,
    apsw.IOError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    OSError,
)


class SqliteStore:
    """One database file for all workspaces of a server."""

    def __init__(self, path: Path) -> None:
        version = tuple(int(number) for number in apsw.sqlite_lib_version().split("."))
        if version < WAL_RESET_FIXED:
            raise StoreFailed(f"SQLite {apsw.sqlite_lib_version()} can corrupt data; upgrade apsw", passing=False)
        self._path = str(path)
        self._local = threading.local()
        self._opened: list[apsw.Connection] = []
        self._last_seq: dict[str, int] = {}
        self._synchronous = ""
        with _failures(f"cannot open {path}"):
            path.touch(mode=0o600)
            path.chmod(0o600)  # conversations are nobody else's business, whatever the directory's mode
            self._writer = self._connect()
            self._migrate()

    # ── writing ──

    def commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
        with _failures("cannot write"):
            return self._commit(changes)

    def _commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
        self._sync("FULL" if any(change.durable for change in changes) else "NORMAL")
        results: list[int | RunExists] = []
        last_seq: dict[str, int] = {}
        execute = self._writer.cursor().execute
        execute("BEGIN IMMEDIATE")
        try:
            for change in changes:
                results.append(self._write_change(change, last_seq))
            execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                execute("ROLLBACK")
            raise
        self._last_seq.update(last_seq)
        return results

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
                execute(
                    "INSERT INTO messages (id, workspace_id, session_id, run_id, role, value) VALUES (?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT (id) DO UPDATE SET value = excluded.value",
                    (message.id, workspace_id, message.session_id, message.run_id, message.role, _encode(message)),
                )
                execute("DELETE FROM message_tails WHERE message_id = ?", (message.id,))
            case AppendText(message_id, pieces):
                for piece in pieces:
                    execute(
                        "INSERT INTO message_tails VALUES (?, ?, ?, ?, ?)",
                        (message_id, piece.part, piece.offset, piece.kind, piece.text),
                    )
            case InsertRun(row):
                self._insert_run(workspace_id, row)
            case UpdateRun(run):
                execute(
                    "UPDATE runs SET state = ?, ended = ?, cancelled = ?, value = ?"
                    " WHERE workspace_id = ? AND run_id = ?",
                    (run.state, run.ended, run.is_being_cancelled, _encode(run), workspace_id, run.run_id),
                )
            case PutSession(session):
                execute(
                    "INSERT INTO sessions (workspace_id, id, value, updated_at) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
                    (workspace_id, session.id, _encode(session), session.updated_at),
                )
            case SetMark(session_id, mark):
                execute(
                    "UPDATE sessions SET mark = max(mark, ?) WHERE workspace_id = ? AND id = ?",
                    (mark, workspace_id, session_id),
                )
            case PutEarlyCancel(run_id, until):
                execute("DELETE FROM early_cancels WHERE until < ?", (until - 3600,))
                execute("INSERT OR REPLACE INTO early_cancels VALUES (?, ?, ?)", (workspace_id, run_id, until))
            case DropSession(session_id):
                key = (workspace_id, session_id)
                execute(
                    "DELETE FROM message_tails WHERE message_id IN"
                    " (SELECT id FROM messages WHERE workspace_id = ? AND session_id = ?)",
                    key,
                )
                execute("DELETE FROM messages WHERE workspace_id = ? AND session_id = ?", key)
                execute("DELETE FROM sessions WHERE workspace_id = ? AND id = ?", key)
                sqlite_files.drop_session(self._writer, *key)
            case PutFileVersion() | DropMessages() | PutUndo() | PutWorkspace():
                self._write_rarely(workspace_id, write)
            case _:
                assert_never(write)

    def _write_rarely(self, workspace_id: str, write: PutFileVersion | DropMessages | PutUndo | PutWorkspace) -> None:
        match write:
            case PutFileVersion():
                sqlite_files.put_version(self._writer, workspace_id, write)
            case DropMessages(session_id, message_ids):
                sqlite_files.drop_messages(self._writer, workspace_id, session_id, message_ids)
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
        with _failures("cannot trim the event log"):
            self._writer.cursor().execute(
                "DELETE FROM events WHERE workspace_id = ? AND seq <= ?", (workspace_id, last - max(keep, 1))
            )

    # ── reading ──

    def workspaces(self) -> list[WorkspaceRow]:
        return [WorkspaceRow(*row) for row in self._read("SELECT id, path, epoch, created_at FROM workspaces")]

    def log_bounds(self, workspace_id: str) -> LogBounds:
        query = "SELECT coalesce(min(seq) - 1, 0), coalesce(max(seq), 0) FROM events WHERE workspace_id = ?"
        return LogBounds(*next(iter(self._read(query, workspace_id))))

    def events(self, workspace_id: str, after: int, upto: int, session_id: str, limit: int) -> list[StoredEvent]:
        page: list[StoredEvent] = []
        size = 0
        with _failures("cannot read"):
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

    def sessions(self, workspace_id: str) -> list[SessionRow]:
        query = "SELECT value, mark FROM sessions WHERE workspace_id = ? ORDER BY updated_at DESC, id DESC"
        return [SessionRow(_session(value), mark) for value, mark in self._read(query, workspace_id)]

    def messages(self, workspace_id: str, session_id: str, after: str, limit: int) -> list[Message]:
        start = self._position(workspace_id, session_id, "id = ?", after) if after else 0
        if after and not start:
            raise unknown_message(after)
        return self._messages(workspace_id, session_id, "position > ?", start, limit=limit or -1)

    def messages_since(self, workspace_id: str, session_id: str, message_id: str) -> list[Message]:
        start = self._position(workspace_id, session_id, "id = ?", message_id) if message_id else 0
        prompt = (
            self._position(workspace_id, session_id, f"{queries.IS_PROMPT} AND position < ?", start) if start else 0
        )
        where = "position > ? AND (position >= ? OR role IN ('assistant', 'user'))"
        return self._messages(workspace_id, session_id, where, prompt, start)

    def prompts(self, workspace_id: str, session_id: str, limit: int) -> list[Message]:
        where = f"workspace_id = ? AND session_id = ? AND {queries.IS_PROMPT} ORDER BY position DESC LIMIT ?"
        found = self._read(f"SELECT value FROM messages WHERE {where}", workspace_id, session_id, limit)  # noqa: S608 ours
        return [_message(value) for (value,) in found]

    def messages_of_run(self, workspace_id: str, session_id: str, run_id: str) -> list[Message]:
        return self._messages(workspace_id, session_id, "run_id = ?", run_id)

    def _position(self, workspace_id: str, session_id: str, where: str, value: Any) -> int:
        """The place of the last such message of a session; 0 if there is none."""
        query = (
            f"SELECT position FROM messages WHERE workspace_id = ? AND session_id = ? AND {where}"  # noqa: S608
            " ORDER BY position DESC LIMIT 1"
        )
        return next((position for (position,) in self._read(query, workspace_id, session_id, value)), 0)

    def _messages(self, workspace_id: str, session_id: str, where: str, *values: Any, limit: int = -1) -> list[Message]:
        query = (
            "SELECT value, id IN (SELECT message_id FROM message_tails) FROM messages"  # noqa: S608
            f" WHERE workspace_id = ? AND session_id = ? AND {where} ORDER BY position LIMIT ?"
        )
        rows = self._read(query, workspace_id, session_id, *values, limit)
        return [self._with_tail(_message(value)) if has_tail else _message(value) for value, has_tail in rows]

    def _with_tail(self, message: Message) -> Message:
        query = "SELECT part, kind, offset, text FROM message_tails WHERE message_id = ? ORDER BY part, offset"
        return grown(message, (TextPiece(*row) for row in self._read(query, message.id)))

    def run(self, workspace_id: str, run_id: str) -> RunRow | None:
        return next(iter(self._run_rows("workspace_id = ? AND run_id = ?", workspace_id, run_id)), None)

    def runs(self, workspace_id: str, session_id: str, state: str, limit: int) -> list[Run]:
        query = "SELECT value FROM runs WHERE workspace_id = ?"
        values: list[Any] = [workspace_id]
        for column, value in (("session_id", session_id), ("state", state)):
            if value:
                query += f" AND {column} = ?"
                values.append(value)
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

    def content(self, digest: str) -> bytes | None:
        return sqlite_files.content(self._read, digest)

    def undos(self, workspace_id: str, *, pending: bool) -> list[UndoRow]:
        return sqlite_files.undos(self._read, workspace_id, pending=pending)

    def _read(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        with _failures("cannot read"):
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
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "temp_store = MEMORY", "cache_size = -4000"):
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
        for connection in self._opened:
            connection.close()


@contextlib.contextmanager
def _failures(what: str) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise StoreFailed(f"{what}: {error}", passing=isinstance(error, _PASSING)) from error
