"""What a store holds of each workspace, read as one moment saw it, without trusting any byte of it. Writes nothing.

Values stay as the JSON that clients see. What cannot be read as what it should be is left out and noted as a flaw.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import apsw
import msgspec

from covey.protocol.events import TYPES, decode_event
from covey.protocol.growth import GrowingMessage, TextPiece
from covey.protocol.messages import Attachment, Message, Session
from covey.protocol.runs import Run
from covey.store import schema
from covey.store.base import UndoRow, digest_of

TABLES: dict[str, dict[str, Any]] = {
    "workspaces": {"id": str, "path": str, "epoch": int, "created_at": int},
    "sessions": {"workspace_id": str, "id": str, "value": bytes, "updated_at": int, "mark": int},
    "messages": {
        "position": int,
        "id": str,
        "workspace_id": str,
        "session_id": str,
        "run_id": str | None,
        "role": str,
        "value": bytes,
    },
    "message_tails": {"message_id": str, "part": int, "offset": int, "kind": str, "text": str},
    "runs": {
        "workspace_id": str,
        "run_id": str,
        "session_id": str,
        "seq": int,
        "state": str,
        "ended": int,
        "cancelled": int,
        "digest": str,
        "value": bytes,
        "attachments": bytes,
    },
    "events": {"workspace_id": str, "seq": int, "session_id": str, "encoded": bytes},
    "early_cancels": {"workspace_id": str, "run_id": str, "until": float},
    "blobs": {"digest": str, "content": bytes},
    "file_versions": {
        "position": int,
        "workspace_id": str,
        "session_id": str,
        "run_id": str,
        "message_id": str,
        "path": bytes,
        "before": str | None,
        "after": str | None,
        "mode": int,
        "size": int,
    },
    "version_origins": {"position": int, "workspace_id": str, "value": bytes},
    "undos": {"workspace_id": str, "id": str, "session_id": str, "done": int, "value": bytes},
    "dropped_sessions": {"workspace_id": str, "session_id": str},
}
"""Every stored column, in the order of the table, and what it holds: a damaged file can hold anything anywhere."""
KEYS: dict[str, str] = {
    "workspaces": "id",
    "sessions": "workspace_id, id",
    "messages": "position",
    "message_tails": "message_id, part, offset",
    "runs": "workspace_id, run_id",
    "events": "workspace_id, seq",
    "early_cancels": "workspace_id, run_id",
    "blobs": "digest",
    "file_versions": "position",
    "version_origins": "position",
    "undos": "workspace_id, id",
    "dropped_sessions": "workspace_id, session_id",
}
LAST_NUMBER = 2**53
"""Larger numbers are not exact in JSON for everybody, and no store ever counts so far: one that has them is damaged."""


@dataclass(frozen=True)
class LogEvent:
    seq: int
    type: str
    change: str
    payload: Any


class Flaw(NamedTuple):
    """Something that only shows in the file: a value that cannot be read, or that contradicts its own columns."""

    kind: str
    table: str
    key: str


@dataclass
class Record:
    """All that a store holds of one workspace, as of one moment."""

    workspace_id: str
    events: list[LogEvent] = field(default_factory=list)
    runs: dict[str, Any] = field(default_factory=dict)
    run_columns: dict[str, tuple[int, str, bool]] = field(default_factory=dict)
    """By run: its seq, state and whether it has ended, as the columns say beside the value."""
    messages: dict[str, Any] = field(default_factory=dict)
    sessions: dict[str, Any] = field(default_factory=dict)
    growing: set[str] = field(default_factory=set)
    """Messages with text that was saved apart from them."""
    tails: dict[str, list[TextPiece]] = field(default_factory=dict)
    """That text."""
    undone: set[str] = field(default_factory=set)
    """Runs whose turns were taken back: they have no messages."""
    flaws: list[Flaw] = field(default_factory=list)
    path: str = ""
    epoch: int = 0


class Reading(NamedTuple):
    records: list[Record]
    stray_tails: list[str]
    """Messages that are not there, but of which text is."""
    wrong_contents: list[str]
    """Digests under which something else is kept."""


def select(table: str) -> str:
    """Texts are read as bytes: one that is not UTF-8 must not end the reading of the others."""
    columns = (name if kind in (int, float) else f"CAST({name} AS BLOB)" for name, kind in TABLES[table].items())
    return f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608 ours alone


def typed(table: str, row: Sequence[Any]) -> tuple[Any, ...]:
    """The row with values of the right types; ValueError if it cannot be one of this table."""
    values = []
    for (name, kind), value in zip(TABLES[table].items(), row, strict=True):
        found = value.decode() if isinstance(value, bytes) and kind is not bytes else value
        if not isinstance(found, kind):
            raise ValueError(f"a row of {table} has {type(found).__name__} in {name}")
        values.append(found)
    return tuple(values)


def read_records(connection: apsw.Connection) -> Reading:
    """Everything, by workspace. Raises apsw.Error or ValueError if the file does not even hold rows."""
    records: dict[str, Record] = {}
    for workspace_id, path, epoch, _ in _rows(connection, "workspaces"):
        if os.path.isabs(path):
            records[workspace_id] = Record(workspace_id, path=path, epoch=epoch)

    def of(workspace_id: str) -> Record:
        if workspace_id not in records:
            records[workspace_id] = Record(workspace_id, flaws=[Flaw("lost_workspace", "workspaces", workspace_id)])
        return records[workspace_id]

    for workspace_id, *event in _rows(connection, "events"):
        _add_event(of(workspace_id), *event)
    for workspace_id, *run in _rows(connection, "runs"):
        _add_run(of(workspace_id), *run)
    for workspace_id, *session in _rows(connection, "sessions"):
        _add_session(of(workspace_id), *session)
    owners: dict[str, Record | None] = {}
    dropped = set(_rows(connection, "dropped_sessions"))
    for _, message_id, workspace_id, session_id, *message in _rows(connection, "messages"):
        if (workspace_id, session_id) in dropped:  # it is removed piece by piece
            owners[message_id] = None
            continue
        owners[message_id] = of(workspace_id)
        _add_message(of(workspace_id), message_id, session_id, *message)
    for workspace_id, *undo in _rows(connection, "undos"):
        _add_undo(of(workspace_id), *undo)
    wrong = [digest for digest, content in _rows(connection, "blobs") if digest_of(content) != digest]
    return Reading(list(records.values()), _add_tails(connection, owners), wrong)


def _rows(connection: apsw.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """None of a table that the store of an older Covey does not have yet."""
    if connection.pragma("user_version") < len(schema.STEPS) and not connection.table_exists("main", table):
        return
    for row in connection.execute(f"{select(table)} ORDER BY {KEYS[table]}"):
        yield typed(table, row)


def _add_event(record: Record, seq: int, session_id: str, encoded: bytes) -> None:
    try:
        event = decode_event(encoded)
        value = msgspec.json.decode(encoded)
        logged = LogEvent(seq, value["type"], value["payload"]["type"], value["payload"]["payload"])
        if not isinstance(logged.payload, dict) or not 0 < seq < LAST_NUMBER:
            raise ValueError(seq)
        if logged.type in TYPES and event is None:
            raise ValueError(logged.change)
        if strict := _STRICT.get(logged.type):
            msgspec.convert(logged.payload, strict)
    except (msgspec.MsgspecError, RecursionError, TypeError, KeyError, ValueError):
        record.flaws.append(Flaw("unreadable_event", "events", str(seq)))
        return
    record.events.append(logged)
    if event and event.session_id != session_id:
        record.flaws.append(Flaw("misfiled_row", "events", str(seq)))


def _add_run(
    record: Record,
    run_id: str,
    session_id: str,
    seq: int,
    state: str,
    ended: int,
    cancelled: int,
    _: str,
    encoded: bytes,
    attachments: bytes,
) -> None:
    _decoded(record, "attachments", run_id, attachments, _attachments)
    value = _decoded(record, "runs", run_id, encoded, _run)
    if value is not None:
        record.runs[run_id] = value
        record.run_columns[run_id] = (seq, state, bool(ended))
        is_cancelled = "cancelled_by" in value and "ended_at" not in value
        if (value["run_id"], value["session_id"], is_cancelled) != (run_id, session_id, bool(cancelled)):
            record.flaws.append(Flaw("misfiled_row", "runs", run_id))


def _add_session(record: Record, session_id: str, encoded: bytes, updated_at: int, _: int) -> None:
    value = _decoded(record, "sessions", session_id, encoded, _session)
    if value is not None:
        record.sessions[session_id] = value
        if (value["id"], value["updated_at"]) != (session_id, updated_at):
            record.flaws.append(Flaw("misfiled_row", "sessions", session_id))


def _add_message(
    record: Record, message_id: str, session_id: str, run_id: str | None, role: str, encoded: bytes
) -> None:
    value = _decoded(record, "messages", message_id, encoded, _message)
    if value is not None:
        record.messages[message_id] = value
        says = (value["id"], value["session_id"], value.get("run_id"), value["role"])
        if says != (message_id, session_id, run_id, role):
            record.flaws.append(Flaw("misfiled_row", "messages", message_id))


def _add_undo(record: Record, undo_id: str, session_id: str, done: int, encoded: bytes) -> None:
    value = _decoded(record, "undos", undo_id, encoded, _undo)
    if value is not None:
        record.undone |= set(value["run_ids"])
        if (value["id"], value["session_id"], value["done"]) != (undo_id, session_id, bool(done)):
            record.flaws.append(Flaw("misfiled_row", "undos", undo_id))


class _CountedRun(Run, frozen=True):
    seq: Annotated[int, msgspec.Meta(ge=0, lt=LAST_NUMBER)]


class _CountedSession(Session, frozen=True):
    updated_at: Annotated[int, msgspec.Meta(ge=-LAST_NUMBER, lt=LAST_NUMBER)]


_STRICT = {"run": _CountedRun, "session": _CountedSession, "message": Message}
"""What must fit into a row. Clients forgive more: a number of any size, a part of an unknown type."""
_run = msgspec.json.Decoder(_CountedRun).decode
_session = msgspec.json.Decoder(_CountedSession).decode
_message = msgspec.json.Decoder(Message).decode
_attachments = msgspec.json.Decoder(tuple[Attachment, ...]).decode
_undo = msgspec.json.Decoder(UndoRow).decode


def _decoded(record: Record, table: str, key: str, encoded: bytes, decode: Callable[[bytes], Any]) -> Any:
    """The JSON of a value that the store itself could read too; None if it could not."""
    try:
        decode(encoded)
        return msgspec.json.decode(encoded)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        record.flaws.append(Flaw("unreadable_row", table, key))
        return None


def _add_tails(connection: apsw.Connection, owners: dict[str, Record | None]) -> list[str]:
    stray: dict[str, None] = {}
    for message_id, part, offset, kind, text in _rows(connection, "message_tails"):
        if record := owners.get(message_id):
            record.growing.add(message_id)
            record.tails.setdefault(message_id, []).append(TextPiece(part, kind, offset, text))
        elif message_id not in owners:
            stray[message_id] = None
    for message_id, record in owners.items():
        if record is None:
            continue
        pieces, message = record.tails.get(message_id), record.messages.get(message_id)
        if pieces and message and len(fitting(message, pieces)) < len(pieces):
            record.flaws.append(Flaw("stale_text", "message_tails", message_id))
    return list(stray)


def fitting(message: Any, pieces: list[TextPiece]) -> list[TextPiece]:
    """The pieces, up to the first that does not continue the message where it, or the piece before, left off."""
    return pieces[: GrowingMessage(msgspec.convert(message, Message)).extend(pieces)]
