"""Nodes, and which of them owns which workspace. Called on threads that may wait; all times are the database's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from covey.store.base import StoreFailed, WorkspaceRow
from covey.store.postgres.connection import Readers
from covey.store.postgres.schema import FORMAT

PLACE = "any"
"""Where the files of a workspace are: every node that shares the store sees them under the same path."""

_ALIVE = "coalesce(n.lease_until > now(), false)"
_JOIN = (
    "INSERT INTO nodes (id, name, home, address, reach, version, covey, lease_until, steady_since)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, now() + $8, now())"
)
_BEAT = (
    "UPDATE nodes SET lease_until = now() + $2,"
    " steady_since = CASE WHEN $3 AND lease_until > now() THEN steady_since ELSE now() END"
    " WHERE id = $1 AND lease_until <> '-infinity' RETURNING 1"
)
_OWNERS = (
    "SELECT w.id AS workspace_id, w.path, w.place, l.owner, l.fence, l.min_version, n.name, n.address,"  # noqa: S608 ours
    f" {_ALIVE} AS alive, EXISTS (SELECT 1 FROM runs r WHERE r.workspace_id = w.id AND NOT r.ended) AS is_needed"
    " FROM workspaces w LEFT JOIN logs l ON l.workspace_id = w.id LEFT JOIN nodes n ON n.id = l.owner"
    " WHERE w.id = ANY ($1)"
)
_OWNERLESS = (
    "SELECT w.id, w.path, w.epoch, w.created_at FROM workspaces w LEFT JOIN logs l ON l.workspace_id = w.id"  # noqa: S608
    " LEFT JOIN nodes n ON n.id = l.owner WHERE w.place = ANY ($2) AND coalesce(l.min_version, 0) <= $3"
    " AND EXISTS (SELECT 1 FROM runs r WHERE r.workspace_id = w.id AND NOT r.ended)"
    f" AND (l.owner IS NULL OR (l.owner <> $4 AND NOT {_ALIVE})) AND NOT w.id = ANY ($5) ORDER BY w.id LIMIT $1"
)
_NODES = (
    "SELECT id, name, home, address, reach, version, covey, draining, "  # noqa: S608 ours alone
    f"{_ALIVE} AS alive, CASE WHEN lease_until = '-infinity' THEN 0"
    " ELSE greatest(0, extract(epoch FROM lease_until - now()))::float8 END AS lease_left_s,"
    " (SELECT count(*) FROM logs l WHERE l.owner = n.id) AS owned FROM nodes n ORDER BY name, id"
)
_DEAD = "UPDATE nodes SET lease_until = '-infinity' WHERE id = $1 AND lease_until <> '-infinity' RETURNING 1"
_CLEAN = (
    "DELETE FROM nodes n WHERE lease_until < now() - interval '1 day'"
    " AND NOT EXISTS (SELECT 1 FROM logs l WHERE l.owner = n.id)"
)


RESULTS_KEPT = 50
"""Results of a session that are too long for the model: as many as there are files on a disk (`tools/spill.py`)."""
_KEEP_RESULT = (
    "WITH old AS (DELETE FROM results WHERE workspace_id = $1 AND session_id = $2 AND position <="
    " (SELECT position FROM results WHERE workspace_id = $1 AND session_id = $2 ORDER BY position DESC"
    " OFFSET $5 - 1 LIMIT 1)) INSERT INTO results (workspace_id, session_id, name, content)"
    " VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
)
PRESENCE = "covey node "
"""How the connections of a node are named, before its id."""
_PRESENT = (
    "SELECT DISTINCT application_name FROM pg_stat_activity"
    " WHERE application_name LIKE $1 AND datname = current_database()"
)
_ABSENT_DEAD = (
    "UPDATE nodes SET lease_until = '-infinity' WHERE id = $1 AND lease_until <> '-infinity' AND NOT EXISTS"
    " (SELECT 1 FROM pg_stat_activity WHERE application_name = $2 AND datname = current_database()) RETURNING 1"
)


def _presence_of(node_id: str) -> str:
    return f"{PRESENCE}{node_id}"


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node, as others see it."""

    id: str
    name: str
    home: str
    """Its data directory, by an id that is kept in there: two lives of one node have the same."""
    address: str
    reach: tuple[str, ...] = (PLACE,)
    version: int = FORMAT
    covey: str = ""
    draining: bool = False
    is_alive: bool = True
    lease_left_s: float = 0.0
    owned: int = 0
    """How many workspaces are its own."""


class Taken(NamedTuple):
    """A workspace that was claimed."""

    fence: int
    was: str
    """What it was before: new, released, own, or its owner was killed or its lease has run out."""


class OwnerRow(NamedTuple):
    """Who owns a workspace; `node_id` is '' if nobody does."""

    workspace_id: str
    path: str
    place: str
    node_id: str
    name: str
    address: str
    alive: bool
    fence: int
    min_version: int
    is_needed: bool
    """Runs are open in it."""


class NodeTable:
    """The nodes of a cluster, seen by one of them. Each thread that calls it has a connection of its own."""

    def __init__(self, url: str, lease_s: float, *, version: int = FORMAT, reach: tuple[str, ...] = (PLACE,)) -> None:
        self._connections = Readers(url)
        self._lease = timedelta(seconds=lease_s)
        self.version = version
        self._id = ""
        self._reach = reach

    def join(self, node: NodeRow) -> None:
        """Be one of the nodes. A former life of this one, which had the same directory, is known to be over.

        Raises StoreFailed if another node of this name is alive.
        """
        for other in self.nodes():
            if other.name != node.name or not other.is_alive:
                continue
            if other.home != node.home:
                raise StoreFailed(
                    f"a node named {node.name!r} is alive already, at {other.address}: give this one another name, or"
                    " wait until that one is gone",
                    passing=False,
                )
            self.declare_dead(other.id)
        self._connections.name = _presence_of(node.id)
        self._fetch(_CLEAN)
        own = (list(self._reach), self.version, node.covey, self._lease)
        self._fetch(_JOIN, node.id, node.name, node.home, node.address, *own)
        self._id = node.id

    def beat(self, no_beat_failed: bool) -> dict[str, int] | None:
        """Go on being alive. Gives what is owned, with its fence; None: this node was declared dead.

        `no_beat_failed`: none since the last one that did not.
        """
        if not self._fetch(_BEAT, self._id, self._lease, no_beat_failed):
            return None
        rows = self._fetch("SELECT workspace_id, fence FROM logs WHERE owner = $1", self._id)
        return {row["workspace_id"]: row["fence"] for row in rows}

    def claim(self, workspace_id: str) -> int | None:
        """Own a workspace, under a new fence; None: somebody else does, or a newer Covey has written it."""
        taken = self.take(workspace_id)
        return taken and taken.fence

    def take(self, workspace_id: str) -> Taken | None:
        """The same, with what became of the owner before."""
        query = "SELECT new_fence, was FROM covey_claim($1, $2, $3, $4)"
        rows = self._fetch(query, self._id, workspace_id, self.version, self._lease)
        return Taken(*rows[0]) if rows else None

    def release(self, workspace_id: str, fence: int) -> None:
        query = "UPDATE logs SET owner = NULL WHERE workspace_id = $1 AND owner = $2 AND fence = $3"
        self._fetch(query, workspace_id, self._id, fence)

    def owner(self, workspace_id: str) -> OwnerRow | None:
        """None: there is no such workspace."""
        return self.owners([workspace_id]).get(workspace_id)

    def owners(self, workspace_ids: Sequence[str]) -> dict[str, OwnerRow]:
        rows = self._fetch(_OWNERS, list(workspace_ids))
        return {
            row["workspace_id"]: OwnerRow(
                row["workspace_id"],
                row["path"],
                row["place"],
                row["owner"] or "",
                row["name"] or "",
                row["address"] or "",
                row["alive"],
                row["fence"] or 0,
                row["min_version"] or 0,
                row["is_needed"],
            )
            for row in rows
        }

    def ownerless(self, limit: int, leave_out: Sequence[str] = ()) -> list[WorkspaceRow]:
        """Workspaces with open runs that nobody cares for, and that this node could."""
        rows = self._fetch(_OWNERLESS, limit, list(self._reach), self.version, self._id, list(leave_out))
        return [WorkspaceRow(*row) for row in rows]

    def row(self, workspace_id: str) -> WorkspaceRow | None:
        rows = self._fetch("SELECT id, path, epoch, created_at FROM workspaces WHERE id = $1", workspace_id)
        return WorkspaceRow(*rows[0]) if rows else None

    def row_at(self, new: WorkspaceRow) -> WorkspaceRow:
        """The row of a directory: the new one, unless there is one."""
        query = "SELECT * FROM covey_workspace_at($1, $2, $3, $4)"
        return WorkspaceRow(*self._fetch(query, new.id, new.path, new.epoch, new.created_at)[0])

    def kept(self, workspace_id: str) -> bytes:
        """What the owners of a workspace have kept for the next one: JSON."""
        rows = self._fetch("SELECT kept FROM workspaces WHERE id = $1", workspace_id)
        return bytes(rows[0][0]) if rows else b"{}"

    def keep(self, workspace_id: str, fence: int, value: bytes) -> bool:
        """False: it is not owned under this fence any more."""
        query = (
            "UPDATE workspaces SET kept = $4 WHERE id = $1 AND EXISTS"
            " (SELECT 1 FROM logs WHERE workspace_id = $1 AND owner = $2 AND fence = $3 FOR UPDATE) RETURNING 1"
        )
        return bool(self._fetch(query, workspace_id, self._id, fence, value))

    def keep_result(self, workspace_id: str, session_id: str, name: str, content: bytes) -> None:
        """A result that is too long for the model; of a session the newest are kept."""
        self._fetch(_KEEP_RESULT, workspace_id, session_id, name, content, RESULTS_KEPT)

    def result(self, workspace_id: str, session_id: str, name: str) -> bytes | None:
        query = "SELECT content FROM results WHERE workspace_id = $1 AND session_id = $2 AND name = $3"
        return next((bytes(row[0]) for row in self._fetch(query, workspace_id, session_id, name)), None)

    # ── about nodes ──

    def nodes(self) -> list[NodeRow]:
        return [
            NodeRow(
                row["id"],
                row["name"],
                row["home"],
                row["address"],
                tuple(row["reach"]),
                row["version"],
                row["covey"],
                row["draining"],
                row["alive"],
                row["lease_left_s"],
                row["owned"],
            )
            for row in self._fetch(_NODES)
        ]

    def declare_dead(self, node_id: str) -> bool:
        """Somebody knows that it is gone. It comes back with a new id, if it comes back."""
        return bool(self._fetch(_DEAD, node_id))

    def present(self) -> tuple[set[str], int]:
        """The ids of nodes that are connected to the store, as far as no pooler hides them.

        And a number that rises when the connection of this thread broke.
        """
        rows = self._fetch(_PRESENT, f"{PRESENCE}%")
        return {row[0].removeprefix(PRESENCE) for row in rows}, self._connections.made()

    def declare_absent_dead(self, node_id: str) -> bool:
        """Declare a node dead whose connections are gone, unless they are there again."""
        return bool(self._fetch(_ABSENT_DEAD, node_id, _presence_of(node_id)))

    def set_draining(self, node_id: str) -> None:
        self._fetch("UPDATE nodes SET draining = true WHERE id = $1", node_id)

    def forget(self, name: str) -> int:
        """Forget a node that is not alive: what it owned is nobody's. Gives how many of that name there were."""
        query = "DELETE FROM nodes WHERE name = $1 AND NOT lease_until > now() RETURNING id"
        return len(self._fetch(query, name))

    def close(self) -> None:
        self._connections.close()

    def _fetch(self, query: str, *values: Any) -> Sequence[Any]:
        return self._connections.fetch(query, *values)
