"""The tables in PostgreSQL, as numbered steps. A step is never changed once it has been released.

Every key begins with the workspace: no change spans two of them. Ids sort by code point (`COLLATE "C"`), and values
stay the bytes that they are, since JSON may hold a NUL, which PostgreSQL's text types refuse.
"""

from __future__ import annotations

from importlib import resources

STEPS: tuple[str, ...] = (
    """
    CREATE TABLE workspaces (
        id text COLLATE "C" PRIMARY KEY, path text COLLATE "C" NOT NULL UNIQUE, epoch bigint NOT NULL,
        created_at bigint NOT NULL
    );
    -- The hot row of a workspace, apart from the rest: its updates stay within a page.
    CREATE TABLE logs (
        workspace_id text COLLATE "C" PRIMARY KEY, owner text COLLATE "C", fence bigint NOT NULL DEFAULT 0,
        writer bigint NOT NULL DEFAULT 0, last_event bigint NOT NULL DEFAULT 0, last_commit text NOT NULL DEFAULT '',
        last_left_out boolean[] NOT NULL DEFAULT '{}', min_version integer NOT NULL DEFAULT 0
    ) WITH (fillfactor = 50);
    CREATE SEQUENCE writers;
    CREATE TABLE sessions (
        workspace_id text COLLATE "C", id text COLLATE "C", value bytea NOT NULL, updated_at bigint NOT NULL,
        mark bigint NOT NULL DEFAULT 0, shelf smallint NOT NULL, parent text COLLATE "C" NOT NULL, words tsvector,
        PRIMARY KEY (workspace_id, id)
    );
    CREATE INDEX sessions_newest ON sessions (workspace_id, shelf, updated_at, id);
    CREATE INDEX sessions_by_mark ON sessions (workspace_id, mark);
    CREATE INDEX sessions_by_parent ON sessions (workspace_id, parent) WHERE parent <> '';
    CREATE INDEX sessions_by_words ON sessions USING gin (words);
    CREATE TABLE messages (
        workspace_id text COLLATE "C", id text COLLATE "C", position bigint GENERATED ALWAYS AS IDENTITY,
        session_id text COLLATE "C" NOT NULL, run_id text COLLATE "C", role text NOT NULL, is_prompt boolean NOT NULL,
        value bytea NOT NULL, words tsvector, PRIMARY KEY (workspace_id, id)
    );
    CREATE INDEX messages_by_session ON messages (workspace_id, session_id, position);
    CREATE INDEX messages_by_words ON messages USING gin (words);
    CREATE TABLE message_tails (
        workspace_id text COLLATE "C", message_id text COLLATE "C", part integer, start integer, kind text NOT NULL,
        content bytea NOT NULL, PRIMARY KEY (workspace_id, message_id, part, start)
    );
    CREATE TABLE runs (
        workspace_id text COLLATE "C", run_id text COLLATE "C", session_id text COLLATE "C" NOT NULL,
        seq bigint NOT NULL, state text NOT NULL, ended boolean NOT NULL, cancelled boolean NOT NULL,
        digest text NOT NULL, value bytea NOT NULL, attachments bytea NOT NULL, PRIMARY KEY (workspace_id, run_id)
    );
    CREATE UNIQUE INDEX runs_by_seq ON runs (workspace_id, seq);
    CREATE INDEX runs_open ON runs (workspace_id, seq) WHERE NOT ended;
    CREATE INDEX runs_by_session ON runs (workspace_id, session_id, seq);
    CREATE TABLE events (
        workspace_id text COLLATE "C", seq bigint, session_id text COLLATE "C" NOT NULL, encoded bytea NOT NULL,
        PRIMARY KEY (workspace_id, seq)
    );
    CREATE TABLE early_cancels (
        workspace_id text COLLATE "C", run_id text COLLATE "C", until double precision NOT NULL,
        PRIMARY KEY (workspace_id, run_id)
    );
    CREATE TABLE blobs (
        workspace_id text COLLATE "C", digest text COLLATE "C", content bytea NOT NULL,
        PRIMARY KEY (workspace_id, digest)
    );
    CREATE TABLE file_versions (
        workspace_id text COLLATE "C", position bigint GENERATED ALWAYS AS IDENTITY,
        session_id text COLLATE "C" NOT NULL, run_id text COLLATE "C" NOT NULL, message_id text COLLATE "C" NOT NULL,
        path bytea NOT NULL, before text COLLATE "C", after text COLLATE "C", mode integer NOT NULL,
        size bigint NOT NULL, origin bytea, PRIMARY KEY (workspace_id, session_id, position)
    );
    CREATE INDEX file_versions_by_before ON file_versions (workspace_id, before) WHERE size > 0;
    CREATE INDEX file_versions_by_after ON file_versions (workspace_id, after) WHERE size > 0;
    CREATE TABLE undos (
        workspace_id text COLLATE "C", id text COLLATE "C", session_id text COLLATE "C" NOT NULL,
        done boolean NOT NULL, value bytea NOT NULL, PRIMARY KEY (workspace_id, id)
    );
    CREATE TABLE spending (
        day integer, workspace_id text COLLATE "C", model text COLLATE "C", runs bigint NOT NULL,
        prompt_tokens bigint NOT NULL, completion_tokens bigint NOT NULL, cached_tokens bigint NOT NULL,
        cost double precision NOT NULL, PRIMARY KEY (day, workspace_id, model)
    );
    CREATE TABLE dropped_sessions (
        workspace_id text COLLATE "C", session_id text COLLATE "C", PRIMARY KEY (workspace_id, session_id)
    );
    """,
    """
    -- One row for each start of a node. A lease of minus infinity: the node is known to be gone.
    CREATE TABLE nodes (
        id text COLLATE "C" PRIMARY KEY, name text COLLATE "C" NOT NULL, home text COLLATE "C" NOT NULL,
        address text NOT NULL, reach text[] NOT NULL, version integer NOT NULL, covey text NOT NULL,
        lease_until timestamptz NOT NULL, steady_since timestamptz NOT NULL, draining boolean NOT NULL DEFAULT false
    );
    CREATE INDEX nodes_by_name ON nodes (name);
    CREATE INDEX logs_by_owner ON logs (owner);
    -- On which timeline of the database it was claimed last, and whether a standby had all that was acknowledged there.
    ALTER TABLE logs ADD COLUMN timeline integer;
    ALTER TABLE logs ADD COLUMN is_synced boolean NOT NULL DEFAULT false;
    ALTER TABLE workspaces ADD COLUMN place text COLLATE "C" NOT NULL DEFAULT 'any';
    -- What people have decided about it, for its next owner.
    ALTER TABLE workspaces ADD COLUMN kept bytea NOT NULL DEFAULT '{}';
    """,
    """
    -- Tools' results that are too long for the model, which reads of them when it needs to: at whichever node by then.
    CREATE TABLE results (
        workspace_id text COLLATE "C", session_id text COLLATE "C", name text COLLATE "C",
        position bigint GENERATED ALWAYS AS IDENTITY, content bytea NOT NULL,
        PRIMARY KEY (workspace_id, session_id, name)
    );
    -- The newest runs of all workspaces at once. What is open their owners know.
    CREATE FUNCTION covey_accepted_at(value bytea) RETURNS double precision LANGUAGE sql IMMUTABLE AS
        $$ SELECT (convert_from(value, 'UTF8')::json -> 'accepted_at')::text::double precision $$;
    ALTER TABLE runs ADD COLUMN accepted_at double precision GENERATED ALWAYS AS (covey_accepted_at(value)) STORED;
    CREATE INDEX runs_newest ON runs (state, accepted_at) WHERE ended;
    """,
)

FORMAT = 1
"""Of the values in the rows: raised whenever an older Covey would lose a field by writing a row back (N11)."""


def functions() -> str:
    """The functions, as they are in this version: they hold no data, and are put in place anew at each start."""
    return resources.files("covey.store.postgres").joinpath("functions.sql").read_text("utf-8")
