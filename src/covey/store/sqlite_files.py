"""Versions of files and undos in SQLite. A content is kept once, by its digest, as long as a version needs it.

`size` of a version is what its contents count towards the bound of its session; 0 once they were dropped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from covey.protocol.changes import Origin
from covey.store import base
from covey.store.base import PutFileVersion, UndoRow, digest_of

if TYPE_CHECKING:
    from covey.lifecycle.undo import FileStep

Read = Callable[..., Iterator[tuple[Any, ...]]]

_encode = msgspec.json.Encoder().encode
_undo = msgspec.json.Decoder(UndoRow).decode
_origin = msgspec.json.Decoder(Origin).decode

UNUSED = (
    "NOT EXISTS (SELECT 1 FROM file_versions WHERE before = blobs.digest AND size > 0)"
    " AND NOT EXISTS (SELECT 1 FROM file_versions WHERE after = blobs.digest AND size > 0)"
)


# ── writing ──


def put_version(connection: apsw.Connection, workspace_id: str, version: PutFileVersion) -> None:
    execute = connection.cursor().execute
    contents = {digest_of(content): content for content in (version.before, version.after) if content is not None}
    kept = {digest: content for digest, content in contents.items() if len(content) <= base.CONTENT_BYTES}
    for digest, content in kept.items():
        execute("INSERT INTO blobs VALUES (?, ?) ON CONFLICT DO NOTHING", (digest, content))
    digests = {content: digest for digest, content in contents.items()}
    before, after = (None if content is None else digests[content] for content in (version.before, version.after))
    before, after = before or version.before_mark or None, after or version.after_mark or None
    # An empty content counts too: a size of 0 means that nothing is kept.
    size = sum(max(1, len(content)) for content in kept.values())
    execute(
        "INSERT INTO file_versions"
        " (workspace_id, session_id, run_id, message_id, path, before, after, mode, size)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            workspace_id,
            version.session_id,
            version.run_id,
            version.message_id,
            os.fsencode(version.path),
            before,
            after,
            version.mode,
            size,
        ),
    )
    if version.origin != Origin():
        values = (connection.last_insert_rowid(), workspace_id, _encode(version.origin))
        execute("INSERT INTO version_origins VALUES (?, ?, ?)", values)
    _forget_old_versions(connection, workspace_id, version.session_id)


def _forget_old_versions(connection: apsw.Connection, workspace_id: str, session_id: str) -> None:
    """Forget the oldest contents of a session that has too many. That they were there stays known."""
    execute = connection.cursor().execute
    of_session = "FROM file_versions WHERE workspace_id = ? AND session_id = ? AND size > 0"
    key = (workspace_id, session_id)
    excess = execute(f"SELECT coalesce(sum(size), 0) {of_session}", key).get - base.SESSION_CONTENT_BYTES
    if excess <= 0:
        return
    gone: list[tuple[int, str | None, str | None]] = []
    for position, before, after, size in execute(
        f"SELECT position, before, after, size {of_session} ORDER BY position", key
    ):
        if excess <= 0:
            break
        excess -= size
        gone.append((position, before, after))
    for position, *digests in gone:
        execute("UPDATE file_versions SET size = 0 WHERE position = ?", (position,))
        for digest in digests:
            execute(f"DELETE FROM blobs WHERE digest = ? AND {UNUSED}", (digest,))  # noqa: S608 ours alone


def drop_versions(connection: apsw.Connection, workspace_id: str, session_id: str, limit: int) -> int:
    """Remove so many versions of a session's files, with contents that nobody else needs; how many there were."""
    execute = connection.cursor().execute
    gone = execute(
        "DELETE FROM file_versions WHERE position IN (SELECT position FROM file_versions"
        " WHERE workspace_id = ? AND session_id = ? ORDER BY position LIMIT ?) RETURNING position, before, after",
        (workspace_id, session_id, limit),
    ).fetchall()
    connection.executemany("DELETE FROM version_origins WHERE position = ?", ((position,) for position, *_ in gone))
    for digest in {digest for _, *pair in gone for digest in pair} - {None}:
        execute(f"DELETE FROM blobs WHERE digest = ? AND {UNUSED}", (digest,))  # noqa: S608 ours alone
    return len(gone)


def put_undo(connection: apsw.Connection, workspace_id: str, row: UndoRow) -> None:
    """A session that was deleted meanwhile has no undos: one that is done afterwards leaves nothing."""
    execute = connection.cursor().execute
    if row.done:
        known = execute("SELECT 1 FROM sessions WHERE workspace_id = ? AND id = ?", (workspace_id, row.session_id))
        if known.get is None:
            return
    execute(
        "INSERT INTO undos VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET done = excluded.done, value = excluded.value",
        (workspace_id, row.id, row.session_id, row.done, _encode(row)),
    )


# ── reading ──


def file_steps(read: Read, workspace_id: str, session_id: str, run_ids: Sequence[str] | None) -> list[FileStep]:
    query = (
        "SELECT run_id, message_id, path, before, after, mode,"
        " before IS NULL OR EXISTS (SELECT 1 FROM blobs WHERE digest = before),"
        " (SELECT value FROM version_origins WHERE position = file_versions.position)"
        " FROM file_versions WHERE workspace_id = ? AND session_id = ? ORDER BY position"
    )
    from covey.lifecycle.undo import FileStep

    wanted = None if run_ids is None else set(run_ids)
    return [
        FileStep(
            run_id,
            message_id,
            os.fsdecode(path),
            before,
            after,
            mode,
            bool(kept),
            _origin(origin) if origin else Origin(),
        )
        for run_id, message_id, path, before, after, mode, kept, origin in read(query, workspace_id, session_id)
        if wanted is None or run_id in wanted
    ]


def content(read: Read, digest: str) -> bytes | None:
    for (found,) in read("SELECT content FROM blobs WHERE digest = ?", digest):
        if digest_of(found) == digest:
            return bytes(found)
    return None


def undos(read: Read, workspace_id: str, *, pending: bool) -> list[UndoRow]:
    query = "SELECT value FROM undos WHERE workspace_id = ? AND done <= ? ORDER BY id"
    return [_undo(value) for (value,) in read(query, workspace_id, not pending)]
