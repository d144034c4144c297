"""Full-text search in SQLite (FTS5): titles of sessions, and what was said in messages.

The index holds no text. A message has the row of its position, a title that of minus its position in `session_titles`;
so both can be walked from the newest on, and stopped. It is written with the messages, in the same transaction. What an
older Covey has left is taken up later, in small batches, the newest first (`fill`): a store opens at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apsw
import msgspec

from covey.protocol.messages import Message
from covey.store.base import SearchUnavailable, unknown_message
from covey.store.search_text import (
    Hit,
    Hits,
    Phrase,
    Token,
    Tokenize,
    is_searchable,
    phrases,
    searched_text,
    snippet,
)

FILL_MESSAGES = 50
FILL_BYTES = 128 * 1024
"""Of old messages in one batch: some milliseconds, for which a change may have to wait."""
FILL_TITLES = 500
SCANNED = 5_000
"""Rows looked at for one query. More only if so many of the newest hits belong to sessions that are gone."""

TOKENIZER = ("unicode61", "remove_diacritics", "2")
INDEX = (
    "CREATE VIRTUAL TABLE search USING fts5(place, text, content='', contentless_delete=1, prefix='2 3',"
    f' tokenize="{" ".join(TOKENIZER)}")'
)

_message = msgspec.json.Decoder(Message).decode


class _Title(msgspec.Struct):
    """As much of a session as is searched."""

    title: str = ""


_title = msgspec.json.Decoder(_Title).decode


def has_fts5() -> bool:
    return "ENABLE_FTS5" in apsw.compile_options


def open_index(connection: apsw.Connection) -> bool:
    """Make the index if need be; False: this SQLite has none. Then it is made anew by the next one that has."""
    if not has_fts5():
        connection.execute("DELETE FROM search_progress")
        return False
    if connection.execute("SELECT 1 FROM search_progress").get is None:
        with connection:
            connection.execute("DROP TABLE IF EXISTS search")
            connection.execute(INDEX)
            connection.execute("DELETE FROM session_titles")
            connection.execute(
                "INSERT INTO search_progress SELECT 1, coalesce(max(position), 0), 1, '', '' FROM messages"
            )
    return True


# ── writing, within the caller's transaction ──


def put_message(connection: apsw.Connection, workspace_id: str, position: int, message: Message) -> None:
    if is_searchable(message) and (text := searched_text(message)):
        _put(connection, position, workspace_id, text)


def put_title(connection: apsw.Connection, workspace_id: str, session_id: str, title: str) -> None:
    """A session is written often, its title rarely."""
    position = connection.execute(
        "INSERT INTO session_titles (workspace_id, session_id, title) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET title = excluded.title WHERE title <> excluded.title RETURNING position",
        (workspace_id, session_id, title),
    ).get
    if position is not None:
        _put(connection, -position, workspace_id, title)


def _put(connection: apsw.Connection, row: int, workspace_id: str, text: str) -> None:
    connection.execute("INSERT OR REPLACE INTO search (rowid, place, text) VALUES (?, ?, ?)", (row, workspace_id, text))


def drop_message(connection: apsw.Connection, position: int) -> None:
    connection.execute("DELETE FROM search WHERE rowid = ?", (position,))


def drop_title(connection: apsw.Connection, workspace_id: str, session_id: str) -> None:
    position = connection.execute(
        "DELETE FROM session_titles WHERE workspace_id = ? AND session_id = ? RETURNING position",
        (workspace_id, session_id),
    ).get
    if position is not None:
        connection.execute("DELETE FROM search WHERE rowid = ?", (-position,))


# ── taking up what is there already ──


def fill(connection: apsw.Connection) -> bool:
    """Take up one batch of old titles or messages; False: nothing is left."""
    progress = connection.execute(
        "SELECT messages_left, titles_left, title_workspace, title_session FROM search_progress"
    ).get
    messages_left, titles_left, *key = progress
    if titles_left:
        _fill_titles(connection, *key)
    elif messages_left:
        _fill_messages(connection, messages_left)
    else:
        return False
    return True


def _fill_titles(connection: apsw.Connection, workspace_id: str, session_id: str) -> None:
    rows: list[Any] = connection.execute(
        "SELECT workspace_id, id, value FROM sessions WHERE (workspace_id, id) > (?, ?)"
        " ORDER BY workspace_id, id LIMIT ?",
        (workspace_id, session_id, FILL_TITLES),
    ).fetchall()
    for owner, session, value in rows:
        if title := _decoded(_title, value, _Title()).title:
            put_title(connection, owner, session, title)
    last = rows[-1] if rows else (workspace_id, session_id)
    connection.execute(
        "UPDATE search_progress SET titles_left = ?, title_workspace = ?, title_session = ?",
        (len(rows) == FILL_TITLES, last[0], last[1]),
    )


def _fill_messages(connection: apsw.Connection, upto: int) -> None:
    rows: list[Any] = connection.execute(
        "SELECT position, workspace_id, length(value) FROM messages WHERE position <= ? ORDER BY position DESC LIMIT ?",
        (upto, FILL_MESSAGES),
    ).fetchall()
    left, size = rows[-1][0] - 1 if rows else 0, 0
    for position, workspace_id, length in rows:
        value = connection.execute("SELECT value FROM messages WHERE position = ?", (position,)).get
        message = _decoded(_message, value, None)
        if message is not None:
            put_message(connection, workspace_id, position, message)
        size += length
        if size >= FILL_BYTES:
            left = position - 1
            break
    connection.execute("UPDATE search_progress SET messages_left = ?", (left,))


def _decoded(decode: Callable[[bytes], Any], value: bytes, otherwise: Any) -> Any:
    """A row that cannot be read is for `covey doctor` to find; it must not keep the others from being taken up."""
    try:
        return decode(value)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return otherwise


# ── reading ──


def search(connection: apsw.Connection, workspace_id: str, query: str, limit: int, before: str) -> Hits:
    end = _position(connection, workspace_id, before) if before else 2**62
    tokenize = _tokenizer(connection)
    wanted = phrases(query, tokenize)
    progress = "SELECT messages_left = 0 AND NOT titles_left FROM search_progress"
    is_complete = bool(connection.execute(progress).get)
    if not wanted:
        return Hits((), (), is_complete)
    match = _expression(workspace_id, wanted)
    found = _Finding(connection, workspace_id, wanted, tokenize)
    titles = () if before else found.titles(match, limit)
    return Hits(titles, found.messages(match, limit, end), is_complete)


def _position(connection: apsw.Connection, workspace_id: str, message_id: str) -> int:
    query = "SELECT position FROM messages WHERE id = ? AND +workspace_id = ?"
    position = connection.execute(query, (message_id, workspace_id)).get
    if position is None:
        raise unknown_message(message_id, "this workspace")
    return int(position)


def unavailable() -> SearchUnavailable:
    return SearchUnavailable(f"search needs SQLite with FTS5, which this one ({apsw.sqlite_lib_version()}) lacks")


def _expression(workspace_id: str, wanted: Sequence[Phrase]) -> str:
    """Everything that somebody typed stands in quotes: none of it is syntax."""
    words = " AND ".join(_quoted(" ".join(phrase.words)) + " *" * phrase.is_prefix for phrase in wanted)
    return f"place : {_quoted(workspace_id)} AND text : ({words})"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


class _Finding:
    """One query, on its way from rows of the index to what is shown."""

    def __init__(
        self, connection: apsw.Connection, workspace_id: str, wanted: Sequence[Phrase], tokenize: Tokenize
    ) -> None:
        self._connection = connection
        self._workspace_id = workspace_id
        self._wanted = wanted
        self._tokenize = tokenize

    def titles(self, match: str, limit: int) -> tuple[Hit, ...]:
        query = (
            "SELECT t.session_id, t.title, s.updated_at FROM session_titles t"
            " JOIN sessions s ON s.workspace_id = t.workspace_id AND s.id = t.session_id"
            " WHERE t.position = ? AND t.workspace_id = ?"
        )
        found: list[Hit] = []
        for row in self._rows(match, "rowid < 0 ORDER BY rowid"):
            for session_id, title, at in self._connection.execute(query, (-row, self._workspace_id)):
                found.append(self._hit(session_id, "", "", title, at))
            if len(found) >= limit:
                break
        return tuple(sorted(found, key=lambda hit: hit.at, reverse=True))

    def messages(self, match: str, limit: int, end: int) -> tuple[Hit, ...]:
        query = (
            "SELECT m.value FROM messages m JOIN sessions s ON s.workspace_id = m.workspace_id AND s.id = m.session_id"
            " WHERE m.position = ? AND m.workspace_id = ?"
        )
        found: list[Hit] = []
        for row in self._rows(match, f"rowid > 0 AND rowid < {end} ORDER BY rowid DESC"):
            for (value,) in self._connection.execute(query, (row, self._workspace_id)):
                if message := _decoded(_message, value, None):
                    text = searched_text(message)
                    found.append(self._hit(message.session_id, message.id, message.role, text, message.created_at))
            if len(found) >= limit:
                break
        return tuple(found)

    def _rows(self, match: str, order: str) -> Iterator[int]:
        query = f"SELECT rowid FROM search WHERE search MATCH ? AND {order} LIMIT ?"  # noqa: S608 ours alone
        cursor = self._connection.cursor()
        try:
            for (row,) in cursor.execute(query, (match, SCANNED)):
                yield row
        finally:
            cursor.close(True)

    def _hit(self, session_id: str, message_id: str, role: str, text: str, at: int) -> Hit:
        shown = snippet(text, self._wanted, self._tokenize)
        return Hit(session_id, message_id, role, shown.text, shown.places, at)


def _tokenizer(connection: apsw.Connection) -> Tokenize:
    """The tokenizer of the index, with places in code points."""
    name, *options = TOKENIZER
    cut = connection.fts5_tokenizer(name, options)

    def tokenize(text: str) -> list[Token]:
        encoded = text.encode("utf-8", "replace")
        found: Any = cut(encoded, apsw.FTS5_TOKENIZE_DOCUMENT, None)
        if text.isascii():
            return [Token(*token) for token in found]
        tokens = []
        past, characters = 0, 0
        for start, end, word in found:
            first = characters + len(encoded[past:start].decode())
            characters = first + len(encoded[start:end].decode())
            past = end
            tokens.append(Token(first, characters, word))
        return tokens

    return tokenize
