"""Stores as earlier versions of Covey left them, written with the very text of their tables."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import msgspec

from covey.protocol.events import created, encode_event
from covey.protocol.messages import Finish, FinishPart, Message, Role, Session, Text, TextPart
from covey.protocol.runs import Run

FIRST = """
    CREATE TABLE workspaces (
        id TEXT PRIMARY KEY, path TEXT NOT NULL UNIQUE, epoch INTEGER NOT NULL, created_at INTEGER NOT NULL
    );
    CREATE TABLE sessions (
        workspace_id TEXT NOT NULL, id TEXT NOT NULL, value BLOB NOT NULL, updated_at INTEGER NOT NULL,
        mark INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (workspace_id, id)
    ) WITHOUT ROWID;
    CREATE TABLE messages (
        position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, workspace_id TEXT NOT NULL, session_id TEXT NOT NULL,
        run_id TEXT, role TEXT NOT NULL, value BLOB NOT NULL
    );
    CREATE INDEX messages_by_session ON messages (workspace_id, session_id, position);
    CREATE TABLE message_tails (
        message_id TEXT NOT NULL, part INTEGER NOT NULL, offset INTEGER NOT NULL, kind TEXT NOT NULL,
        text TEXT NOT NULL, PRIMARY KEY (message_id, part, offset)
    ) WITHOUT ROWID;
    CREATE TABLE runs (
        workspace_id TEXT NOT NULL, run_id TEXT NOT NULL, session_id TEXT NOT NULL, seq INTEGER NOT NULL,
        state TEXT NOT NULL, ended INTEGER NOT NULL, cancelled INTEGER NOT NULL, digest TEXT NOT NULL,
        value BLOB NOT NULL, attachments BLOB NOT NULL, PRIMARY KEY (workspace_id, run_id)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX runs_by_seq ON runs (workspace_id, seq);
    CREATE INDEX runs_open ON runs (workspace_id, seq) WHERE ended = 0;
    CREATE INDEX runs_by_session ON runs (workspace_id, session_id, seq);
    CREATE TABLE events (
        workspace_id TEXT NOT NULL, seq INTEGER NOT NULL, session_id TEXT NOT NULL, encoded BLOB NOT NULL,
        PRIMARY KEY (workspace_id, seq)
    ) WITHOUT ROWID;
    CREATE TABLE early_cancels (
        workspace_id TEXT NOT NULL, run_id TEXT NOT NULL, until REAL NOT NULL, PRIMARY KEY (workspace_id, run_id)
    ) WITHOUT ROWID;
    """
SECOND = """
    CREATE TABLE blobs (digest TEXT NOT NULL PRIMARY KEY, content BLOB NOT NULL);
    CREATE TABLE file_versions (
        position INTEGER PRIMARY KEY, workspace_id TEXT NOT NULL, session_id TEXT NOT NULL, run_id TEXT NOT NULL,
        message_id TEXT NOT NULL, path BLOB NOT NULL, before TEXT, after TEXT, mode INTEGER NOT NULL,
        size INTEGER NOT NULL
    );
    CREATE INDEX file_versions_by_session ON file_versions (workspace_id, session_id, position);
    CREATE INDEX file_versions_by_before ON file_versions (before) WHERE size > 0;
    CREATE INDEX file_versions_by_after ON file_versions (after) WHERE size > 0;
    CREATE TABLE undos (
        workspace_id TEXT NOT NULL, id TEXT NOT NULL, session_id TEXT NOT NULL, done INTEGER NOT NULL,
        value BLOB NOT NULL, PRIMARY KEY (workspace_id, id)
    ) WITHOUT ROWID;
    """
VERSIONS = (FIRST, SECOND)
"""The steps of the releases before search: never to be changed."""

_encode = msgspec.json.Encoder().encode


def old_store(directory: Path, version: int, *, turns: int = 0) -> Path:
    """One workspace `w`, with a session `s` of so many turns: a prompt and an answer each."""
    path = directory / "covey.db"
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "WAL")
        for step in VERSIONS[:version]:
            connection.execute(step)
        connection.pragma("user_version", version)
        connection.execute("INSERT INTO workspaces VALUES ('w', '/somewhere', 7, 1)")
        if turns:
            with connection:
                _fill(connection, turns)
    return path


def _fill(connection: apsw.Connection, turns: int) -> None:
    session = Session(
        id="s", parent_session_id="", title="An old session", message_count=2 * turns, prompt_tokens=0,
        completion_tokens=0, summary_message_id="", cost=0.0, created_at=1, updated_at=5, is_busy=False,
        attached_clients=0,
    )  # fmt: skip
    connection.execute("INSERT INTO sessions VALUES ('w', 's', ?, 5, 0)", (_encode(session),))
    connection.execute("INSERT INTO events VALUES ('w', 1, 's', ?)", (encode_event(created(session)),))
    for number in range(turns):
        run_id = f"r{number:06}"
        run = Run(
            run_id=run_id, session_id="s", seq=number + 1, state="completed", mode="fold", prompt=f"prompt {number}",
            accepted_at=1.0, started_at=1.0, ended_at=2.0,
        )  # fmt: skip
        row = ("w", run_id, "s", number + 1, "completed", 1, 0, "d", _encode(run), b"[]")
        connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        _put(connection, f"m{number:06}u", run_id, "user", f"prompt {number}")
        _put(connection, f"m{number:06}a", run_id, "assistant", f"answer {number} about penguins")


def _put(connection: apsw.Connection, message_id: str, run_id: str, role: Role, text: str) -> None:
    finish = (FinishPart(data=Finish(reason="end_turn", time=1)),) if role == "assistant" else ()
    message = Message(
        id=message_id, role=role, session_id="s", parts=(TextPart(data=Text(text=text)), *finish), model="",
        provider="", created_at=1, updated_at=1, run_id=run_id,
    )  # fmt: skip
    row = (message_id, "w", "s", run_id, role, _encode(message))
    connection.execute(
        "INSERT INTO messages (id, workspace_id, session_id, run_id, role, value) VALUES (?,?,?,?,?,?)", row
    )
