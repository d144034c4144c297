"""Sessions and messages in SQLite. Every read goes by an index, and costs what it gives, not what there is."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import apsw
import msgspec

from covey.protocol.errors import NotFound
from covey.protocol.growth import TextPiece, grown
from covey.protocol.messages import Message, Session
from covey.store import queries, sqlite_files, sqlite_search
from covey.store.base import AppendText, Place, SessionRow, unknown_message
from covey.store.schema import PARENT, SHELF

DROP_BATCH = 500
"""Messages, and versions of files, that are removed in one transaction; the rest of a dropped session goes later."""
CHILD, ARCHIVED = 1, 2
"""What a shelf adds up (`schema.SHELF`)."""

_encode = msgspec.json.Encoder().encode
_session = msgspec.json.Decoder(Session).decode
_message = msgspec.json.Decoder(Message).decode


class Conversations:
    """Writes, within the caller's transaction. `is_searched`: there is an index to keep up to date."""

    def __init__(self, connection: apsw.Connection, *, is_searched: bool) -> None:
        self._connection = connection
        self._is_searched = is_searched

    def put_message(self, workspace_id: str, message: Message) -> None:
        execute = self._connection.execute
        position = execute(
            "INSERT INTO messages (id, workspace_id, session_id, run_id, role, value) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET value = excluded.value RETURNING position",
            (message.id, workspace_id, message.session_id, message.run_id, message.role, _encode(message)),
        ).get
        execute("DELETE FROM message_tails WHERE message_id = ?", (message.id,))
        if self._is_searched:
            sqlite_search.put_message(self._connection, workspace_id, position, message)

    def append_text(self, write: AppendText) -> None:
        for piece in write.pieces:
            self._connection.execute(
                "INSERT INTO message_tails VALUES (?, ?, ?, ?, ?)",
                (write.message_id, piece.part, piece.offset, piece.kind, piece.text),
            )

    def drop_messages(self, workspace_id: str, session_id: str, message_ids: Sequence[str]) -> None:
        for message_id in message_ids:
            position = self._connection.execute(
                "DELETE FROM messages WHERE id = ? AND workspace_id = ? AND session_id = ? RETURNING position",
                (message_id, workspace_id, session_id),
            ).get
            if position is not None:
                self._forget(message_id, position)

    def _forget(self, message_id: str, position: int) -> None:
        self._connection.execute("DELETE FROM message_tails WHERE message_id = ?", (message_id,))
        if self._is_searched:
            sqlite_search.drop_message(self._connection, position)

    def put_session(self, workspace_id: str, session: Session) -> None:
        self._connection.execute(
            "INSERT INTO sessions (workspace_id, id, value, updated_at) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
            (workspace_id, session.id, _encode(session), session.updated_at),
        )
        if self._is_searched:
            sqlite_search.put_title(self._connection, workspace_id, session.id, session.title)

    def drop_session(self, workspace_id: str, session_id: str) -> None:
        """The session is gone at once, and a batch of what was in it; `collect` removes the rest of a long one."""
        key = (workspace_id, session_id)
        self._connection.execute("DELETE FROM sessions WHERE workspace_id = ? AND id = ?", key)
        self._connection.execute("DELETE FROM undos WHERE workspace_id = ? AND session_id = ?", key)
        if self._is_searched:
            sqlite_search.drop_title(self._connection, *key)
        if self._drop_batch(*key):
            self._connection.execute("INSERT OR IGNORE INTO dropped_sessions VALUES (?, ?)", key)

    def collect(self) -> bool:
        """Remove a further batch of a session that was dropped; False: nothing of any is left."""
        key = self._connection.execute("SELECT workspace_id, session_id FROM dropped_sessions LIMIT 1").get
        if key is None:
            return False
        if not self._drop_batch(*key):
            self._connection.execute("DELETE FROM dropped_sessions WHERE workspace_id = ? AND session_id = ?", key)
        return True

    def _drop_batch(self, workspace_id: str, session_id: str) -> bool:
        """Whether there may be more."""
        key = (workspace_id, session_id, DROP_BATCH)
        gone: list[Any] = self._connection.execute(
            "DELETE FROM messages WHERE position IN (SELECT position FROM messages"
            " WHERE workspace_id = ? AND session_id = ? ORDER BY position LIMIT ?) RETURNING id, position",
            key,
        ).fetchall()
        for message_id, position in gone:
            self._forget(message_id, position)
        versions = sqlite_files.drop_versions(self._connection, *key)
        return DROP_BATCH in (len(gone), versions)


class ReadsConversations(ABC):
    """The half of a store that reads sessions and messages."""

    @abstractmethod
    def _read(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, on the connection of the thread that asks."""

    # ── sessions ──

    def sessions(self, workspace_id: str) -> list[SessionRow]:
        query = "SELECT value, mark FROM sessions WHERE workspace_id = ? ORDER BY updated_at DESC, id DESC"
        return [SessionRow(_session(value), mark) for value, mark in self._read(query, workspace_id)]

    def session(self, workspace_id: str, session_id: str) -> SessionRow | None:
        query = "SELECT value, mark FROM sessions WHERE workspace_id = ? AND id = ?"
        return next(
            (SessionRow(_session(value), mark) for value, mark in self._read(query, workspace_id, session_id)), None
        )

    def child_sessions(self, workspace_id: str, session_id: str) -> list[SessionRow]:
        query = (
            f"SELECT value, mark FROM sessions WHERE workspace_id = ? AND {PARENT} = ? AND {PARENT} <> '' ORDER BY id"  # noqa: S608
        )
        return [SessionRow(_session(value), mark) for value, mark in self._read(query, workspace_id, session_id)]

    def newest_mark(self, workspace_id: str) -> int:
        query = "SELECT coalesce(max(mark), 0) FROM sessions WHERE workspace_id = ?"
        return int(next(iter(self._read(query, workspace_id)))[0])

    def sessions_page(
        self, workspace_id: str, before: Place, limit: int, *, children: bool, archived: bool
    ) -> list[SessionRow]:
        """A page of each shelf, by one index, and of these the newest."""
        shelves = [
            shelf for shelf in range(4) if (children or not shelf & CHILD) and (archived or not shelf & ARCHIVED)
        ]
        query = (
            "SELECT updated_at, id, value, mark FROM sessions"  # noqa: S608 ours alone
            f" WHERE workspace_id = ? AND {SHELF} = ? AND (updated_at, id) < (?, ?)"
            " ORDER BY updated_at DESC, id DESC LIMIT ?"
        )
        rows = (row for shelf in shelves for row in self._read(query, workspace_id, shelf, *before, limit))
        newest = heapq.nlargest(limit, rows, key=lambda row: row[:2])
        return [SessionRow(_session(value), mark) for _, _, value, mark in newest]

    # ── messages ──

    def messages(self, workspace_id: str, session_id: str, after: str, limit: int) -> list[Message]:
        start = self._position_of(workspace_id, session_id, after) if after else 0
        return self._messages(workspace_id, session_id, "position > ?", start, limit=limit or -1)

    def messages_before(self, workspace_id: str, session_id: str, before: str, limit: int) -> list[Message]:
        end = self._position_of(workspace_id, session_id, before) if before else 2**62
        page = self._messages(workspace_id, session_id, "position < ?", end, limit=limit, order="DESC")
        return page[::-1]

    def messages_since(self, workspace_id: str, session_id: str, message_id: str) -> list[Message]:
        try:
            start = self._position_of(workspace_id, session_id, message_id) if message_id else 0
        except NotFound:
            start = 0
        prompt = self._last_prompt(workspace_id, session_id, start) if start else 0
        where = "position > ? AND (position >= ? OR role IN ('assistant', 'user'))"
        return self._messages(workspace_id, session_id, where, prompt, start)

    def prompts(self, workspace_id: str, session_id: str, limit: int) -> list[Message]:
        where = f"workspace_id = ? AND session_id = ? AND {queries.IS_PROMPT} ORDER BY position DESC LIMIT ?"
        found = self._read(f"SELECT value FROM messages WHERE {where}", workspace_id, session_id, limit)  # noqa: S608 ours
        return [_message(value) for (value,) in found]

    def messages_of_run(self, workspace_id: str, session_id: str, run_id: str) -> list[Message]:
        return self._messages(workspace_id, session_id, "run_id = ?", run_id)

    def _position_of(self, workspace_id: str, session_id: str, message_id: str) -> int:
        query = "SELECT position FROM messages WHERE id = ? AND +workspace_id = ? AND +session_id = ?"
        for (position,) in self._read(query, message_id, workspace_id, session_id):
            return int(position)
        raise unknown_message(message_id)

    def _last_prompt(self, workspace_id: str, session_id: str, before: int) -> int:
        query = (
            f"SELECT position FROM messages WHERE workspace_id = ? AND session_id = ? AND {queries.IS_PROMPT}"  # noqa: S608
            " AND position < ? ORDER BY position DESC LIMIT 1"
        )
        return next((position for (position,) in self._read(query, workspace_id, session_id, before)), 0)

    def _messages(
        self, workspace_id: str, session_id: str, where: str, *values: Any, limit: int = -1, order: str = "ASC"
    ) -> list[Message]:
        query = (
            "SELECT value, EXISTS (SELECT 1 FROM message_tails WHERE message_id = messages.id) FROM messages"  # noqa: S608
            f" WHERE workspace_id = ? AND session_id = ? AND {where} ORDER BY position {order} LIMIT ?"
        )
        rows = self._read(query, workspace_id, session_id, *values, limit)
        return [self._with_tail(_message(value)) if has_tail else _message(value) for value, has_tail in rows]

    def _with_tail(self, message: Message) -> Message:
        query = "SELECT part, kind, offset, text FROM message_tails WHERE message_id = ? ORDER BY part, offset"
        return grown(message, (TextPiece(*row) for row in self._read(query, message.id)))

    def session_size(self, workspace_id: str, session_id: str) -> int:
        """Bytes of the messages of a session; their content is not read for it."""
        query = "SELECT coalesce(sum(length(value)), 0) FROM messages WHERE workspace_id = ? AND session_id = ?"
        return int(next(iter(self._read(query, workspace_id, session_id)))[0])
