"""The store on PostgreSQL. A group of changes is one statement, guarded by the fence of each of its workspaces."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from covey.store.base import Change, Fenced, InsertRun, RunExists, StoreFailed
from covey.store.postgres import connection as connections
from covey.store.postgres.connection import Connection, ConnectionBroken, PgConnection, Readers, failures
from covey.store.postgres.migrations import migrate
from covey.store.postgres.reads import ReadsPostgres
from covey.store.postgres.writes import DROP_BATCH, Group

log = logging.getLogger(__name__)

COMMIT = "SELECT covey_commit(" + ", ".join(f"${number}" for number in range(1, 23)) + ")"
HEADS = "SELECT workspace_id, last_event FROM logs WHERE owner = $1 AND workspace_id = ANY ($2)"
LOOK_UP = (
    "UPDATE logs SET writer = $1 WHERE owner = $2 AND writer < $1 RETURNING workspace_id, last_commit, last_left_out"
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


@dataclass
class Figures:
    """What was written so far, counted by the thread that writes."""

    commits: int = 0
    changes: int = 0
    seconds: float = 0.0
    in_doubt: int = 0
    """Commits whose connection broke: they were looked up."""
    made: int = 0
    """Those of them that had been made."""
    fenced: int = 0

    def wrote(self, changes: int, seconds: float) -> None:
        self.commits += 1
        self.changes += changes
        self.seconds += seconds


class PostgresStore(ReadsPostgres):
    """One database for all workspaces of several servers. It claims none: see `nodes.NodeTable`.

    A change is written if its workspace is owned by `owner`, and under the fence that the change carries.
    """

    def __init__(self, url: str, owner: str) -> None:
        self.owner = owner
        """The id of the node that writes. A node that was declared dead comes back with a new one."""
        self._writer_number = 0
        self._last_event: dict[str, tuple[int, int]] = {}
        """By workspace, a fence and the last event that was written under it: nobody else writes under that."""
        self._closing = threading.Event()
        self.while_away: Callable[[], None] = lambda: None
        self._untrimmed: dict[str, int] = {}
        """By workspace: up to which event the log is still to be trimmed."""
        self._landed: dict[str, tuple[str, list[bool]]] = {}
        """By workspace, what the last look-up found: the commit that was written last, and what it left out."""
        self.figures = Figures()
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
        self._last_event.clear()  # of a commit in doubt nobody knows whether it counts
        for row in await connection.fetch(LOOK_UP, self._writer_number, self.owner):
            self._landed[row["workspace_id"]] = (row["last_commit"], row["last_left_out"])

    # ── writing ──

    def commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
        group = Group(changes)
        began = time.monotonic()
        try:
            heads = self._heads(group)
            left_out = self._committed(group, heads, uuid.uuid4().hex)
        except Fenced:
            self.figures.fenced += 1
            raise
        self.figures.wrote(len(changes), time.monotonic() - began)
        return self._numbers(group, left_out, heads)

    def _heads(self, group: Group) -> dict[str, int]:
        """By workspace, the last event that is in its log. What was claimed since the last time is read."""
        fences = group.fences
        if any(self._last_event.get(w, (-1, 0))[0] != fence for w, fence in fences.items()):
            with failures("cannot write"):  # all of them: a connection that is made anew here knows none any more
                found = self._writer.fetch(HEADS, self.owner, list(fences))
            self._last_event |= {row["workspace_id"]: (fences[row["workspace_id"]], row["last_event"]) for row in found}
            if lost := fences.keys() - {row["workspace_id"] for row in found}:
                raise Fenced(f"the workspace {lost.pop()} has another owner by now")
        return {workspace_id: self._last_event[workspace_id][1] for workspace_id in fences}

    def _committed(self, group: Group, heads: dict[str, int], commit_id: str) -> list[bool]:
        """Whether each change was left out. A commit in doubt is looked up before anybody is told anything."""
        columns = group.columns()
        durable = any(change.durable for change in group.changes)
        try:
            with failures("cannot write"):
                return self._writer.call(
                    lambda connection: self._write(connection, group, heads, commit_id, durable, columns)
                )
        except ConnectionBroken as error:
            return self._found_out(group, commit_id, error)

    async def _write(
        self,
        connection: PgConnection,
        group: Group,
        heads: dict[str, int],
        commit_id: str,
        durable: bool,
        columns: list[list[Any]],
    ) -> list[bool]:
        fences = [group.fences[workspace_id] for workspace_id in group.workspaces]
        lasts = [heads[workspace_id] for workspace_id in group.workspaces]
        left_out: list[bool] = await connection.fetchval(
            COMMIT, self.owner, self._writer_number, commit_id, durable, group.workspaces, fences, lasts, *columns,
            timeout=connections.STATEMENT_S,
        )  # fmt: skip
        return left_out

    def _found_out(self, group: Group, commit_id: str, broken: ConnectionBroken) -> list[bool]:
        """Connect until it is known what became of a commit whose connection broke (N6)."""
        self.figures.in_doubt += 1
        while not self._closing.wait(RETRY_S):
            self.while_away()
            try:
                with failures("cannot connect"):
                    self._writer.fetch("SELECT 1")
            except StoreFailed:
                continue
            found = [self._landed.get(workspace_id, ("", [])) for workspace_id in group.workspaces]
            # One is enough: a group is written as a whole, and others of it may have been lost since.
            for last_commit, left_out in found:
                if last_commit == commit_id:
                    self.figures.made += 1
                    return left_out
            raise broken
        raise broken

    def _numbers(self, group: Group, left_out: Sequence[bool], heads: dict[str, int]) -> list[int | RunExists]:
        """The number of the first event of each change, counted as `covey_commit` did from the last ones before it."""
        results: list[int | RunExists] = []
        for change, was_left_out in zip(group.changes, left_out, strict=True):
            if was_left_out:
                assert isinstance(change.writes[0], InsertRun)
                results.append(RunExists(change.writes[0].row.run.run_id))
                continue
            results.append(heads[change.workspace_id] + 1)
            heads[change.workspace_id] += len(change.events)
        self._last_event |= {w: (fence, heads[w]) for w, fence in group.fences.items()}
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
