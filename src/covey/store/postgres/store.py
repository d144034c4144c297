"""The store on PostgreSQL. A group of changes is one statement, guarded by the fence of each of its workspaces."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Sequence
from typing import Any

from covey.store.base import Change, InsertRun, RunExists, StoreFailed
from covey.store.postgres.connection import Connection, ConnectionBroken, PgConnection, Readers, failures
from covey.store.postgres.migrations import migrate
from covey.store.postgres.reads import ReadsPostgres
from covey.store.postgres.writes import DROP_BATCH, Group

log = logging.getLogger(__name__)

COMMIT = "SELECT covey_commit(" + ", ".join(f"${number}" for number in range(1, 23)) + ")"
CLAIM = (
    "INSERT INTO logs (workspace_id, owner, fence, writer) VALUES ($1, $2, 1, $3)"
    " ON CONFLICT (workspace_id) DO UPDATE SET owner = excluded.owner, fence = logs.fence + 1, writer = excluded.writer"
    " RETURNING fence, last_event"
)
LOOK_UP = (
    "UPDATE logs SET writer = $1 WHERE owner = $2 AND writer < $1"
    " RETURNING workspace_id, last_event, last_commit, last_left_out"
)
"""Waits for a commit that is still under way, refuses whatever else arrives late, and tells what was written last."""
TRIM = (
    "WITH dropped AS (DELETE FROM events WHERE workspace_id = $1 AND seq IN (SELECT seq FROM events"
    " WHERE workspace_id = $1 AND seq <= $2 ORDER BY seq LIMIT $3) RETURNING 1) SELECT count(*) AS gone FROM dropped"
)
TRIM_BATCH = 5_000
"""Events forgotten in one transaction."""
RETRY_S = 0.2
"""Between two attempts to find out what became of a commit."""


class PostgresStore(ReadsPostgres):
    """One database for all workspaces of a server, or of several: whoever claimed a workspace last writes about it."""

    def __init__(self, url: str, owner: str = "") -> None:
        self._owner = owner or uuid.uuid4().hex
        self._writer_number = 0
        self._fences: dict[str, int] = {}
        self._last_event: dict[str, int] = {}
        self._closing = threading.Event()
        self._untrimmed: dict[str, int] = {}
        """By workspace: up to which event the log is still to be trimmed."""
        self._landed: dict[str, tuple[str, list[bool]]] = {}
        """By workspace, what the last look-up found: the commit that was written last, and what it left out."""
        self._writer = Connection(url, self._introduced)
        self._readers = Readers(url)
        with failures("cannot open the store"):
            self._writer.call(migrate)

    async def _introduced(self, connection: PgConnection) -> None:
        """A new connection for writing: what an older one has still under way is waited for, and then refused."""
        await connection.execute("SET transaction_timeout = '30s'")
        if await connection.fetchval("SELECT to_regclass('writers')") is None:
            return  # the tables are about to be made
        self._writer_number = await connection.fetchval("SELECT nextval('writers')")
        for row in await connection.fetch(LOOK_UP, self._writer_number, self._owner):
            self._last_event[row["workspace_id"]] = row["last_event"]
            self._landed[row["workspace_id"]] = (row["last_commit"], row["last_left_out"])

    # ── writing ──

    def claim(self, workspace_id: str) -> int:
        """Become the owner of a workspace, whoever was: from now on nobody else's changes are written."""
        with failures("cannot claim the workspace"):
            if not self._writer_number:
                self._writer.fetch("SELECT 1")
            (row,) = self._writer.fetch(CLAIM, workspace_id, self._owner, self._writer_number)
        self._fences[workspace_id], self._last_event[workspace_id] = row["fence"], row["last_event"]
        return int(row["fence"])

    def commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
        group = Group(changes)
        for workspace_id in group.workspaces:
            if workspace_id not in self._fences:
                self.claim(workspace_id)
        heads = {workspace_id: self._last_event[workspace_id] for workspace_id in group.workspaces}
        left_out = self._committed(group, uuid.uuid4().hex)
        return self._numbers(changes, left_out, heads)

    def _committed(self, group: Group, commit_id: str) -> list[bool]:
        """Whether each change was left out. A commit in doubt is looked up before anybody is told anything."""
        columns = group.columns()
        durable = any(change.durable for change in group.changes)
        try:
            with failures("cannot write"):
                return self._writer.call(lambda connection: self._write(connection, group, commit_id, durable, columns))
        except ConnectionBroken as error:
            return self._found_out(group, commit_id, error)

    async def _write(
        self, connection: PgConnection, group: Group, commit_id: str, durable: bool, columns: list[list[Any]]
    ) -> list[bool]:
        fences = [self._fences[workspace_id] for workspace_id in group.workspaces]
        lasts = [self._last_event[workspace_id] for workspace_id in group.workspaces]
        left_out: list[bool] = await connection.fetchval(
            COMMIT, self._owner, self._writer_number, commit_id, durable, group.workspaces, fences, lasts, *columns
        )
        return left_out

    def _found_out(self, group: Group, commit_id: str, broken: ConnectionBroken) -> list[bool]:
        """Connect until it is known what became of a commit whose connection broke (N6)."""
        while not self._closing.wait(RETRY_S):
            try:
                with failures("cannot connect"):
                    self._writer.fetch("SELECT 1")
            except StoreFailed:
                continue
            found = [self._landed.get(workspace_id) for workspace_id in group.workspaces]
            if all(each and each[0] == commit_id for each in found):
                assert found[0] is not None
                return found[0][1]
            raise broken
        raise broken

    def _numbers(
        self, changes: Sequence[Change], left_out: Sequence[bool], heads: dict[str, int]
    ) -> list[int | RunExists]:
        """The number of the first event of each change, counted as `covey_commit` did from the last ones before it."""
        results: list[int | RunExists] = []
        for change, was_left_out in zip(changes, left_out, strict=True):
            if was_left_out:
                assert isinstance(change.writes[0], InsertRun)
                results.append(RunExists(change.writes[0].row.run.run_id))
                continue
            results.append(heads[change.workspace_id] + 1)
            heads[change.workspace_id] += len(change.events)
        self._last_event.update(heads)
        return results

    # ── what nobody waits for ──

    def trim_events(self, workspace_id: str, keep: int) -> None:
        # The newest event is never removed: it is what the oldest is counted from.
        with failures("cannot trim the event log"):
            query = "SELECT coalesce(max(seq), 0) AS last FROM events WHERE workspace_id = $1"
            (row,) = self._writer.fetch(query, workspace_id)
            self._untrimmed[workspace_id] = row["last"] - max(keep, 1)
            self._trim()

    def upkeep(self) -> bool:
        with failures("upkeep failed"):
            return self._trim() or self._collect()

    def _trim(self) -> bool:
        for workspace_id, upto in self._untrimmed.items():
            (row,) = self._writer.fetch(TRIM, workspace_id, upto, TRIM_BATCH)
            if row["gone"] < TRIM_BATCH:
                del self._untrimmed[workspace_id]
            return True
        return False

    def _collect(self) -> bool:
        """Remove a further batch of a session that was dropped."""
        for row in self._writer.fetch("SELECT workspace_id, session_id FROM dropped_sessions LIMIT 1"):
            key = (row["workspace_id"], row["session_id"])
            (more,) = self._writer.fetch("SELECT covey_drop_batch($1, $2, $3) AS more", *key, DROP_BATCH)
            if not more["more"]:
                self._writer.fetch("DELETE FROM dropped_sessions WHERE workspace_id = $1 AND session_id = $2", *key)
            return True
        return False

    def is_lost(self) -> bool:
        return False

    def close(self) -> None:
        self._closing.set()
        self._writer.close()
        self._readers.close()

    def _fetch(self, query: str, *values: Any) -> Sequence[Any]:
        return self._readers.fetch(query, *values)
