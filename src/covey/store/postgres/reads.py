"""Reading from PostgreSQL. Every read goes by an index, and costs what it gives, not what there is."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from covey.protocol.changes import Origin
from covey.protocol.errors import NotFound
from covey.protocol.growth import TextPiece, grown
from covey.protocol.messages import Attachment, Message, Session
from covey.protocol.runs import Run, Usage
from covey.store.base import (
    LogBounds,
    Place,
    PutEarlyCancel,
    RunRow,
    SessionRow,
    StoredEvent,
    UndoRow,
    WorkspaceRow,
    digest_of,
    unknown_message,
)
from covey.store.everywhere import PlacedRun, PlacedSession
from covey.store.postgres.search import ReadsWords
from covey.store.postgres.writes import ARCHIVED, CHILD
from covey.store.spending import SpendingRow

if TYPE_CHECKING:
    from covey.lifecycle.undo import FileStep

EVENTS_BYTES = 1024 * 1024
"""Events are given out together up to this; a larger one comes alone."""
RECENT_EVENTS = 1000
"""How far back to look for sessions that were deleted: nobody sets a clock back further by accident."""

_session = msgspec.json.Decoder(Session).decode
_message = msgspec.json.Decoder(Message).decode
_run = msgspec.json.Decoder(Run).decode
_attachments = msgspec.json.Decoder(tuple[Attachment, ...]).decode
_undo = msgspec.json.Decoder(UndoRow).decode
_origin = msgspec.json.Decoder(Origin).decode

ENDED_STATES = ["folded", "completed", "failed", "cancelled", "interrupted"]
_OF_SESSION = "workspace_id = $1 AND session_id = $2"


class ReadsPostgres(ReadsWords, ABC):
    """The half of the store that reads."""

    @abstractmethod
    def _fetch(self, query: str, *values: Any) -> Sequence[Any]:
        """The rows of a query, on the connection of the thread that asks."""

    def _one(self, query: str, *values: Any) -> Any:
        return self._fetch(query, *values)[0][0]

    # ── the log ──

    def workspaces(self) -> list[WorkspaceRow]:
        return [WorkspaceRow(*row) for row in self._fetch("SELECT id, path, epoch, created_at FROM workspaces")]

    def log_bounds(self, workspace_id: str) -> LogBounds:
        query = "SELECT coalesce(min(seq) - 1, 0), coalesce(max(seq), 0) FROM events WHERE workspace_id = $1"
        return LogBounds(*self._fetch(query, workspace_id)[0])

    def events(self, workspace_id: str, after: int, upto: int, session_id: str, limit: int) -> list[StoredEvent]:
        query = (
            "SELECT seq, encoded FROM (SELECT seq, encoded, row_number() OVER (ORDER BY seq) AS number,"
            " sum(octet_length(encoded)) OVER (ORDER BY seq) AS upto FROM (SELECT seq, encoded FROM events"
            " WHERE workspace_id = $1 AND seq > $2 AND seq <= $3 AND ($4 = '' OR session_id IN ('', $4))"
            " ORDER BY seq LIMIT $5) AS next) AS page WHERE number = 1 OR upto <= $6 ORDER BY seq"
        )
        rows = self._fetch(query, workspace_id, after, upto, session_id, limit, EVENTS_BYTES)
        return [StoredEvent(*row) for row in rows]

    def next_size(self, workspace_id: str, after: int, upto: int, session_id: str) -> int:
        query = (
            "SELECT octet_length(encoded) FROM events WHERE workspace_id = $1 AND seq > $2 AND seq <= $3"
            " AND ($4 = '' OR session_id IN ('', $4)) ORDER BY seq LIMIT 1"
        )
        return next((row[0] for row in self._fetch(query, workspace_id, after, upto, session_id)), 0)

    def event_sizes(self, workspace_id: str, limit: int) -> list[int]:
        query = "SELECT octet_length(encoded) FROM events WHERE workspace_id = $1 ORDER BY seq DESC LIMIT $2"
        return [row[0] for row in self._fetch(query, workspace_id, limit)]

    def newest_id(self, workspace_id: str) -> str:
        query = (
            "SELECT max(id) FROM messages WHERE workspace_id = $1 UNION ALL"
            " SELECT max(id) FROM undos WHERE workspace_id = $1 UNION ALL"
            " SELECT max(id) FROM sessions WHERE workspace_id = $1 UNION ALL SELECT max(session_id) FROM"
            " (SELECT session_id FROM events WHERE workspace_id = $1 ORDER BY seq DESC LIMIT $2) AS recent"
        )
        return max((row[0] for row in self._fetch(query, workspace_id, RECENT_EVENTS) if row[0]), default="")

    # ── sessions ──

    def sessions(self, workspace_id: str) -> list[SessionRow]:
        query = "SELECT value, mark FROM sessions WHERE workspace_id = $1 ORDER BY updated_at DESC, id DESC"
        return [SessionRow(_session(value), mark) for value, mark in self._fetch(query, workspace_id)]

    def session(self, workspace_id: str, session_id: str) -> SessionRow | None:
        query = "SELECT value, mark FROM sessions WHERE workspace_id = $1 AND id = $2"
        rows = self._fetch(query, workspace_id, session_id)
        return next((SessionRow(_session(value), mark) for value, mark in rows), None)

    def child_sessions(self, workspace_id: str, session_id: str) -> list[SessionRow]:
        query = "SELECT value, mark FROM sessions WHERE workspace_id = $1 AND parent = $2 AND parent <> '' ORDER BY id"
        return [SessionRow(_session(value), mark) for value, mark in self._fetch(query, workspace_id, session_id)]

    def newest_mark(self, workspace_id: str) -> int:
        return int(self._one("SELECT coalesce(max(mark), 0) FROM sessions WHERE workspace_id = $1", workspace_id))

    def sessions_page(
        self, workspace_id: str, before: Place, limit: int, *, children: bool, archived: bool
    ) -> list[SessionRow]:
        """A page of each shelf, by one index, and of these the newest."""
        shelves = _shelves(children=children, archived=archived)
        query = (
            "SELECT page.value, page.mark FROM unnest($2::smallint[]) AS shelves (shelf), LATERAL (SELECT updated_at,"
            " id, value, mark FROM sessions s WHERE s.workspace_id = $1 AND s.shelf = shelves.shelf"
            " AND (s.updated_at, s.id) < ($3, $4) ORDER BY s.updated_at DESC, s.id DESC LIMIT $5) AS page"
            " ORDER BY page.updated_at DESC, page.id DESC LIMIT $5"
        )
        rows = self._fetch(query, workspace_id, shelves, *before, limit)
        return [SessionRow(_session(value), mark) for value, mark in rows]

    def newest_sessions(
        self, before: tuple[int, str, str], limit: int, *, children: bool, archived: bool
    ) -> list[PlacedSession]:
        """A page of each shelf of each workspace, by one index, and of these the newest."""
        query = (
            "SELECT w.id, w.path, page.value, EXISTS (SELECT 1 FROM runs r WHERE r.workspace_id = w.id"
            " AND r.session_id = page.id AND NOT r.ended) FROM workspaces w, unnest($1::smallint[]) AS shelves (shelf),"
            " LATERAL (SELECT updated_at, id, value FROM sessions s WHERE s.workspace_id = w.id"
            " AND s.shelf = shelves.shelf AND (s.updated_at, s.id, s.workspace_id) < ($2, $3, $4)"
            " ORDER BY s.updated_at DESC, s.id DESC LIMIT $5) AS page"
            " ORDER BY page.updated_at DESC, page.id DESC, w.id DESC LIMIT $5"
        )
        rows = self._fetch(query, _shelves(children=children, archived=archived), *before, limit)
        return [PlacedSession(place, path, _session(value), busy) for place, path, value, busy in rows]

    def session_size(self, workspace_id: str, session_id: str) -> int:
        query = f"SELECT coalesce(sum(octet_length(value)), 0) FROM messages WHERE {_OF_SESSION}"  # noqa: S608 ours alone
        return int(self._one(query, workspace_id, session_id))

    # ── messages ──

    def messages(self, workspace_id: str, session_id: str, after: str, limit: int) -> list[Message]:
        start = self._position_of(workspace_id, session_id, after) if after else 0
        return self._messages(
            workspace_id, session_id, "position > $3 ORDER BY position LIMIT $4", start, limit or None
        )

    def messages_before(self, workspace_id: str, session_id: str, before: str, limit: int) -> list[Message]:
        end = self._position_of(workspace_id, session_id, before) if before else 2**62
        where = "position < $3 ORDER BY position DESC LIMIT $4"
        return self._messages(workspace_id, session_id, where, end, limit)[::-1]

    def messages_since(self, workspace_id: str, session_id: str, message_id: str) -> list[Message]:
        try:
            start = self._position_of(workspace_id, session_id, message_id) if message_id else 0
        except NotFound:
            start = 0
        prompt = self._last_prompt(workspace_id, session_id, start) if start else 0
        where = "position > $3 AND (position >= $4 OR role IN ('assistant', 'user')) ORDER BY position"
        return self._messages(workspace_id, session_id, where, prompt, start)

    def messages_of_run(self, workspace_id: str, session_id: str, run_id: str) -> list[Message]:
        return self._messages(workspace_id, session_id, "run_id = $3 ORDER BY position", run_id)

    def prompts(self, workspace_id: str, session_id: str, limit: int) -> list[Message]:
        query = f"SELECT value FROM messages WHERE {_OF_SESSION} AND is_prompt ORDER BY position DESC LIMIT $3"  # noqa: S608
        return [_message(row[0]) for row in self._fetch(query, workspace_id, session_id, limit)]

    def _position_of(self, workspace_id: str, session_id: str, message_id: str) -> int:
        query = "SELECT position FROM messages WHERE workspace_id = $1 AND session_id = $2 AND id = $3"
        for row in self._fetch(query, workspace_id, session_id, message_id):
            return int(row[0])
        raise unknown_message(message_id)

    def _last_prompt(self, workspace_id: str, session_id: str, before: int) -> int:
        query = (
            f"SELECT position FROM messages WHERE {_OF_SESSION} AND is_prompt AND position < $3"  # noqa: S608 ours alone
            " ORDER BY position DESC LIMIT 1"
        )
        return next((row[0] for row in self._fetch(query, workspace_id, session_id, before)), 0)

    def _messages(self, workspace_id: str, session_id: str, where: str, *values: Any) -> list[Message]:
        query = (
            "SELECT value, EXISTS (SELECT 1 FROM message_tails t WHERE t.workspace_id = $1"  # noqa: S608 ours alone
            f" AND t.message_id = messages.id) FROM messages WHERE {_OF_SESSION} AND {where}"
        )
        rows = self._fetch(query, workspace_id, session_id, *values)
        return [self._with_tail(workspace_id, _message(value)) if tail else _message(value) for value, tail in rows]

    def _with_tail(self, workspace_id: str, message: Message) -> Message:
        query = (
            "SELECT part, kind, start, content FROM message_tails WHERE workspace_id = $1 AND message_id = $2"
            " ORDER BY part, start"
        )
        rows = self._fetch(query, workspace_id, message.id)
        pieces = (TextPiece(part, kind, at, text.decode("utf-8", "surrogatepass")) for part, kind, at, text in rows)
        return grown(message, pieces)

    # ── runs ──

    def run(self, workspace_id: str, run_id: str) -> RunRow | None:
        return next(iter(self._run_rows("run_id = $2", workspace_id, run_id)), None)

    def runs(self, workspace_id: str, session_id: str, state: str, limit: int) -> list[Run]:
        is_open = " AND NOT ended" if state in ("accepted", "queued", "active") else ""  # by the index of open runs
        query = (
            "SELECT value FROM runs WHERE workspace_id = $1 AND ($2 = '' OR session_id = $2)"  # noqa: S608 ours alone
            f" AND ($3 = '' OR state = $3){is_open} ORDER BY seq DESC LIMIT $4"
        )
        return [_run(row[0]) for row in self._fetch(query, workspace_id, session_id, state, limit)]

    def newest_runs(self, state: str, limit: int) -> list[PlacedRun]:
        """A page of each state, by one index, and of these the newest; those that are open are few."""
        query = (
            "SELECT w.id, w.path, r.value FROM (SELECT page.* FROM unnest($1::text[]) AS states (state), LATERAL"
            " (SELECT workspace_id, accepted_at, seq, value FROM runs WHERE ended AND runs.state = states.state"
            " ORDER BY accepted_at DESC LIMIT $2) AS page UNION ALL"
            " SELECT workspace_id, accepted_at, seq, value FROM runs WHERE NOT ended AND $3 IN ('', state)) AS r"
            " JOIN workspaces w ON w.id = r.workspace_id ORDER BY r.accepted_at DESC, r.seq DESC LIMIT $2"
        )
        rows = self._fetch(query, [state] if state else ENDED_STATES, limit, state)
        return [PlacedRun(workspace_id, path, _run(value)) for workspace_id, path, value in rows]

    def open_runs(self, workspace_id: str) -> list[RunRow]:
        return self._run_rows("NOT ended ORDER BY seq", workspace_id)

    def _run_rows(self, where: str, *values: Any) -> list[RunRow]:
        query = f"SELECT value, digest, attachments FROM runs WHERE workspace_id = $1 AND {where}"  # noqa: S608 ours alone
        rows = self._fetch(query, *values)
        return [RunRow(_run(value), digest, _attachments(attachments)) for value, digest, attachments in rows]

    def last_run_seq(self, workspace_id: str) -> int:
        return int(self._one("SELECT coalesce(max(seq), 0) FROM runs WHERE workspace_id = $1", workspace_id))

    def early_cancels(self, workspace_id: str) -> list[PutEarlyCancel]:
        query = "SELECT run_id, until FROM early_cancels WHERE workspace_id = $1 ORDER BY until"
        return [PutEarlyCancel(*row) for row in self._fetch(query, workspace_id)]

    # ── files, undos, spending ──

    def file_steps(self, workspace_id: str, session_id: str, run_ids: Sequence[str] | None) -> list[FileStep]:
        from covey.lifecycle.undo import FileStep

        query = (
            "SELECT run_id, message_id, path, before, after, mode, before IS NULL OR EXISTS (SELECT 1 FROM blobs b"  # noqa: S608
            " WHERE b.workspace_id = $1 AND b.digest = before), origin FROM file_versions"
            f" WHERE {_OF_SESSION} AND ($3::text[] IS NULL OR run_id = ANY ($3)) ORDER BY position"
        )
        rows = self._fetch(query, workspace_id, session_id, None if run_ids is None else list(run_ids))
        return [
            FileStep(run, at, os.fsdecode(path), before, after, mode, kept, _origin(origin) if origin else Origin())
            for run, at, path, before, after, mode, kept, origin in rows
        ]

    def content(self, workspace_id: str, digest: str) -> bytes | None:
        query = "SELECT content FROM blobs WHERE workspace_id = $1 AND digest = $2"
        for row in self._fetch(query, workspace_id, digest):
            if digest_of(row[0]) == digest:
                return bytes(row[0])
        return None

    def undos(self, workspace_id: str, *, pending: bool) -> list[UndoRow]:
        query = "SELECT value FROM undos WHERE workspace_id = $1 AND NOT (done AND $2) ORDER BY id"
        return [_undo(row[0]) for row in self._fetch(query, workspace_id, pending)]

    def spending(self, since_day: int, limit: int) -> list[SpendingRow]:
        query = (
            "SELECT day, workspace_id, model, runs, prompt_tokens, completion_tokens, cached_tokens, cost FROM spending"
            " WHERE day >= $1 ORDER BY day DESC, workspace_id DESC, model DESC LIMIT $2"
        )
        return [
            SpendingRow(
                row["day"],
                row["workspace_id"],
                row["model"],
                row["runs"],
                Usage(**{name: row[name] for name in Usage.__struct_fields__}),
            )
            for row in self._fetch(query, since_day, limit)
        ]


def _shelves(*, children: bool, archived: bool) -> list[int]:
    return [shelf for shelf in range(4) if (children or not shelf & CHILD) and (archived or not shelf & ARCHIVED)]
