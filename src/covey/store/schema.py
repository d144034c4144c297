"""The tables, as numbered steps. A step is never changed once it has been released; a change is a further step.

A step adds, and leaves what is there: by that `covey doctor` tells which version made a file. The index for search is
no step: an SQLite without FTS5 could not take it (`sqlite_search.py` makes it).
"""

SHELF = (
    "(CASE WHEN json_valid(CAST(value AS TEXT)) THEN"
    " (coalesce(CAST(value AS TEXT) ->> '$.parent_session_id', '') <> '')"
    " + 2 * (CAST(value AS TEXT) ->> '$.archived_at' IS NOT NULL) ELSE 0 END)"
)
"""Where a session is listed: 0, and 1 more for an agent's own, 2 more for an archived one.

Taken from the value by SQLite itself, so that the two cannot disagree. It is part of a step: never to be changed.
"""

STEPS: tuple[str, ...] = (
    """
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
    """,
    # Versions of files, and undos.
    """
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
    """,
    # Pages of sessions, search, and what sessions that were dropped have left.
    """
    CREATE INDEX sessions_newest ON sessions (workspace_id, """
    + SHELF
    + """, updated_at, id);
    CREATE TABLE dropped_sessions (
        workspace_id TEXT NOT NULL, session_id TEXT NOT NULL, PRIMARY KEY (workspace_id, session_id)
    ) WITHOUT ROWID;
    CREATE TABLE session_titles (
        position INTEGER PRIMARY KEY, workspace_id TEXT NOT NULL, session_id TEXT NOT NULL, title TEXT NOT NULL,
        UNIQUE (workspace_id, session_id)
    );
    CREATE TABLE search_progress (
        id INTEGER PRIMARY KEY CHECK (id = 1), messages_left INTEGER NOT NULL, titles_left INTEGER NOT NULL,
        title_workspace TEXT NOT NULL, title_session TEXT NOT NULL
    );
    """,
    # How versions of files came about, by their position. A version without a path only says what is not known.
    """
    CREATE TABLE version_origins (position INTEGER PRIMARY KEY, workspace_id TEXT NOT NULL, value BLOB NOT NULL);
    """,
)
