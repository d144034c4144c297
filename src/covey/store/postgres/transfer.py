"""Rows as they are, from SQLite into PostgreSQL and back: whole workspaces, with their ids, numbers and epochs.

Nothing is interpreted on the way, so clients resume where they were. A dump is a store like any other: a server can
open it, and the oracle judge it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import asyncpg
import msgspec

from covey.protocol.messages import Message, Session
from covey.store import schema
from covey.store.base import StoreFailed
from covey.store.postgres.connection import Ask, Connection, PgConnection, T, failures
from covey.store.postgres.writes import ARCHIVED, CHILD, words_of
from covey.store.search_text import is_searchable, searched_text
from covey.store.sqlite import SqliteStore

BATCH = 500
"""Rows in memory at once."""

_message = msgspec.json.Decoder(Message).decode
_session = msgspec.json.Decoder(Session).decode


class Table(NamedTuple):
    """A table of SQLite, and how its rows come out of PostgreSQL, for one workspace ($1)."""

    name: str
    columns: str
    taken: str = ""
    """What PostgreSQL has for them, if that is not the same."""
    source: str = ""
    key: str = "workspace_id"
    more: str = ""

    @property
    def query(self) -> str:
        source = self.source or self.name
        return f"SELECT {self.taken or self.columns} FROM {source} WHERE {self.key} = $1 {self.more}"  # noqa: S608 ours alone

    @property
    def insert(self) -> str:
        marks = ", ".join("?" for _ in self.columns.split(","))
        return f"INSERT INTO {self.name} ({self.columns}) VALUES ({marks})"  # noqa: S608 ours alone


TABLES = (
    Table("workspaces", "id, path, epoch, created_at", key="id"),
    Table("sessions", "workspace_id, id, value, updated_at, mark", more="ORDER BY id"),
    Table("messages", "position, id, workspace_id, session_id, run_id, role, value", more="ORDER BY position"),
    Table("message_tails", "message_id, part, offset, kind, text", "message_id, part, start, kind, content"),
    Table(
        "runs",
        "workspace_id, run_id, session_id, seq, state, ended, cancelled, digest, value, attachments",
        "workspace_id, run_id, session_id, seq, state, ended::int, cancelled::int, digest, value, attachments",
        more="ORDER BY seq",
    ),
    Table("events", "workspace_id, seq, session_id, encoded", more="ORDER BY seq"),
    Table("early_cancels", "workspace_id, run_id, until"),
    Table("blobs", "digest, content"),
    Table(
        "file_versions",
        "position, workspace_id, session_id, run_id, message_id, path, before, after, mode, size",
        more="ORDER BY position",
    ),
    Table(
        "version_origins",
        "position, workspace_id, value",
        "position, workspace_id, origin",
        source="file_versions",
        more="AND origin IS NOT NULL",
    ),
    Table("undos", "workspace_id, id, session_id, done, value", "workspace_id, id, session_id, done::int, value"),
    Table("dropped_sessions", "workspace_id, session_id"),
    Table("spending", "day, workspace_id, model, runs, prompt_tokens, completion_tokens, cached_tokens, cost"),
)


# ── out of PostgreSQL ──


def workspace_ids(url: str) -> list[str]:
    return _asked(url, _ids)


async def _ids(connection: PgConnection) -> list[str]:
    return [row[0] for row in await connection.fetch("SELECT id FROM workspaces ORDER BY id")]


def dump(url: str, workspace_id: str, file: Path) -> dict[str, int]:
    """One workspace as it is at one moment, as a new store in SQLite; how many rows each table has of it."""
    SqliteStore(file).close()

    async def copy(connection: PgConnection) -> dict[str, int]:
        counts = {}
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            with contextlib.closing(apsw.Connection(str(file))) as target, target:
                for table in TABLES:
                    counts[table.name] = await _dump_table(connection, target, table, workspace_id)
                target.execute(
                    "UPDATE search_progress SET titles_left = 1,"
                    " messages_left = (SELECT coalesce(max(position), 0) FROM messages)"
                )
        return counts

    return _asked(url, copy)


async def _dump_table(connection: PgConnection, target: apsw.Connection, table: Table, workspace_id: str) -> int:
    count = 0
    cursor = await connection.cursor(table.query, workspace_id)
    while rows := await cursor.fetch(BATCH):
        values = [tuple(row) for row in rows]
        if table.name == "message_tails":
            values = [(*row[:4], row[4].decode("utf-8", "replace")) for row in values]
        target.executemany(table.insert, values)
        count += len(values)
    return count


# ── into PostgreSQL ──


class Copied(NamedTuple):
    workspaces: int
    rows: dict[str, int]
    """By table of PostgreSQL."""


class _Copy(NamedTuple):
    """Rows of SQLite as those of one table in PostgreSQL."""

    select: str
    insert: str
    row: Callable[[Sequence[Any]], Sequence[Any]] = tuple


def _session_row(row: Sequence[Any]) -> Sequence[Any]:
    session = _session(row[2])
    shelf = CHILD * bool(session.parent_session_id) + ARCHIVED * (session.archived_at is not None)
    return *row, shelf, session.parent_session_id or "", words_of(session.title)


def _message_row(row: Sequence[Any]) -> Sequence[Any]:
    message = _message(row[5])
    words = words_of(searched_text(message)) if is_searchable(message) else None
    return *row, message.role == "user" and not message.is_command, words


_COPIES: dict[str, _Copy] = {
    "workspaces": _Copy(
        "SELECT id, path, epoch, created_at FROM workspaces",
        "INSERT INTO workspaces (id, path, epoch, created_at) VALUES ($1, $2, $3, $4)",
    ),
    "logs": _Copy(
        "SELECT id, (SELECT coalesce(max(seq), 0) FROM events WHERE workspace_id = workspaces.id) FROM workspaces",
        "INSERT INTO logs (workspace_id, last_event) VALUES ($1, $2)",
    ),
    "sessions": _Copy(
        "SELECT workspace_id, id, value, updated_at, mark FROM sessions",
        "INSERT INTO sessions (workspace_id, id, value, updated_at, mark, shelf, parent, words)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, array_to_tsvector(string_to_array($8, ' ')))",
        _session_row,
    ),
    "messages": _Copy(
        "SELECT workspace_id, id, session_id, run_id, role, value FROM messages ORDER BY position",
        "INSERT INTO messages (workspace_id, id, session_id, run_id, role, value, is_prompt, words)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, array_to_tsvector(string_to_array($8, ' ')))",
        _message_row,
    ),
    "message_tails": _Copy(
        "SELECT m.workspace_id, t.message_id, t.part, t.offset, t.kind, CAST(t.text AS BLOB)"
        " FROM message_tails t JOIN messages m ON m.id = t.message_id",
        "INSERT INTO message_tails (workspace_id, message_id, part, start, kind, content)"
        " VALUES ($1, $2, $3, $4, $5, $6)",
    ),
    "runs": _Copy(
        "SELECT workspace_id, run_id, session_id, seq, state, ended, cancelled, digest, value, attachments FROM runs",
        "INSERT INTO runs (workspace_id, run_id, session_id, seq, state, ended, cancelled, digest, value, attachments)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        lambda row: (*row[:5], bool(row[5]), bool(row[6]), *row[7:]),
    ),
    "events": _Copy(
        "SELECT workspace_id, seq, session_id, encoded FROM events",
        "INSERT INTO events (workspace_id, seq, session_id, encoded) VALUES ($1, $2, $3, $4)",
    ),
    "early_cancels": _Copy(
        "SELECT workspace_id, run_id, until FROM early_cancels",
        "INSERT INTO early_cancels (workspace_id, run_id, until) VALUES ($1, $2, $3)",
    ),
    "blobs": _Copy(  # kept once for all in SQLite, and for each workspace that needs them here
        "SELECT DISTINCT v.workspace_id, b.digest, b.content FROM file_versions v"
        " JOIN blobs b ON b.digest = v.before OR b.digest = v.after WHERE v.size > 0",
        "INSERT INTO blobs (workspace_id, digest, content) VALUES ($1, $2, $3)",
    ),
    "file_versions": _Copy(
        "SELECT v.workspace_id, v.session_id, v.run_id, v.message_id, v.path, v.before, v.after, v.mode, v.size,"
        " o.value FROM file_versions v LEFT JOIN version_origins o ON o.position = v.position ORDER BY v.position",
        "INSERT INTO file_versions (workspace_id, session_id, run_id, message_id, path, before, after, mode, size,"
        " origin) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    ),
    "undos": _Copy(
        "SELECT workspace_id, id, session_id, done, value FROM undos",
        "INSERT INTO undos (workspace_id, id, session_id, done, value) VALUES ($1, $2, $3, $4, $5)",
        lambda row: (*row[:3], bool(row[3]), row[4]),
    ),
    "dropped_sessions": _Copy(
        "SELECT workspace_id, session_id FROM dropped_sessions",
        "INSERT INTO dropped_sessions (workspace_id, session_id) VALUES ($1, $2)",
    ),
    "spending": _Copy(
        "SELECT day, workspace_id, model, runs, prompt_tokens, completion_tokens, cached_tokens, cost FROM spending",
        "INSERT INTO spending (day, workspace_id, model, runs, prompt_tokens, completion_tokens, cached_tokens, cost)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    ),
}


def copy_in(file: Path, url: str, told: Callable[[str, int], None] = lambda table, rows: None) -> Copied:
    """All workspaces of a store in SQLite, in one transaction: all of them, or nothing. The file is not changed.

    The tables must be there, and the caller see to it that no server writes to the file. `told` hears of each table.
    """

    async def copy(connection: PgConnection) -> Copied:
        with contextlib.closing(_current(file)) as source:
            await connection.execute("SET transaction_timeout = 0")
            async with connection.transaction():
                await _refuse_known(connection, source)
                rows = {}
                for name in _COPIES:
                    rows[name] = await _copy_table(connection, source, name)
                    told(name, rows[name])
                await _check_counts(connection, source, rows)
                return Copied(rows["workspaces"], rows)

    return _asked(url, copy)


def _current(file: Path) -> apsw.Connection:
    """The file as this version of Covey sees it. One of an older version is brought up to date in memory alone."""
    opened = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    version = opened.pragma("user_version")
    if version > len(schema.STEPS):
        opened.close()
        raise StoreFailed(f"{file} was written by a newer version of Covey: upgrade this one", passing=False)
    if version == len(schema.STEPS):
        opened.execute("BEGIN")
        return opened
    with contextlib.closing(opened):
        copy = apsw.Connection(":memory:")
        with copy.backup("main", opened, "main") as backup:
            backup.step()
    for step in schema.STEPS[version:]:
        copy.execute(step)
    return copy


async def _refuse_known(connection: PgConnection, source: apsw.Connection) -> None:
    paths = [path for (path,) in source.execute("SELECT path FROM workspaces")]
    ids = [found for (found,) in source.execute("SELECT id FROM workspaces")]
    query = "SELECT path FROM workspaces WHERE path = ANY ($1) OR id = ANY ($2) LIMIT 1"
    if known := await connection.fetchval(query, paths, ids):
        raise StoreFailed(f"the target has a workspace for {known} already: nothing was copied", passing=False)


async def _copy_table(connection: PgConnection, source: apsw.Connection, name: str) -> int:
    copy, count = _COPIES[name], 0
    for batch in _batches(source.execute(copy.select)):
        await connection.executemany(copy.insert, [copy.row(row) for row in batch])
        count += len(batch)
    return count


def _batches(rows: Iterable[Any]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


async def _check_counts(connection: PgConnection, source: apsw.Connection, rows: dict[str, int]) -> None:
    """What arrived is counted in the target, before anything counts."""
    ids = [found for (found,) in source.execute("SELECT id FROM workspaces")]
    for name, sent in rows.items():
        key = "id" if name == "workspaces" else "workspace_id"
        query = f"SELECT count(*) FROM {name} WHERE {key} = ANY ($1)"  # noqa: S608 ours alone
        arrived = await connection.fetchval(query, ids)
        kept = source.execute(f"SELECT count(*) FROM {name}").get if name not in ("logs", "blobs") else sent  # noqa: S608
        if not arrived == sent == kept:
            raise StoreFailed(
                f"of {kept} rows of {name} {arrived} would have arrived: nothing was copied", passing=False
            )


def _asked(url: str, ask: Ask[T]) -> T:
    connection = Connection(url)
    try:
        with failures("cannot copy"):
            return connection.call(ask)
    except (apsw.Error, msgspec.MsgspecError, asyncpg.DataError) as error:
        raise StoreFailed(f"a row cannot be copied: {error}", passing=False) from error
    finally:
        connection.close()
