"""What tool calls changed on disk: kept with their results, and published as events."""

from __future__ import annotations

import os
from dataclasses import dataclass

from msgspec import structs

from covey.engine.command_changes import Changes
from covey.engine.recorder import Batch
from covey.engine.session_book import SessionBook
from covey.engine.world import World
from covey.protocol.changes import Origin
from covey.protocol.events import ChangeKind, Event, File
from covey.protocol.messages import Message
from covey.protocol.runs import Run
from covey.store.base import PutFileVersion


@dataclass(frozen=True, slots=True)
class OwningTurn:
    """The session and the turn that a change counts for, and goes with in an undo."""

    session_id: str
    run_id: str


def owning_turn(run: Run, sessions: SessionBook) -> OwningTurn:
    """Of a run: its own or, if it writes for another one, that of whoever sent it."""
    child = sessions.find(run.session_id)
    principal = run.effective_options.writes_for
    if principal and child and child.parent_session_id:
        return OwningTurn(child.parent_session_id, principal)
    return OwningTurn(run.session_id, run.run_id)


@dataclass(frozen=True, slots=True)
class Cause:
    """What a change of a file is kept with."""

    session_id: str
    run_id: str
    """Empty: a command of a person, which belongs to no run."""
    id: str
    """Of the message with the result; one of its own for a call that has none."""
    label: str = ""
    """The name of the tool, where a change does not say who made it."""


def cause_of(message: Message, owner: OwningTurn | None = None) -> Cause:
    """A result; `owner`: the turn that its changes count for, if it is not that of the message."""
    name = message.tool_results[0].name if message.tool_results else ""
    owner = owner or OwningTurn(message.session_id, message.run_id or "")
    return Cause(owner.session_id, owner.run_id, message.id, name)


def record_changes(batch: Batch, changes: Changes, cause: Cause, world: World) -> None:
    """Add what a call has changed to the change that holds its result: both are kept, or neither."""
    for number, file in enumerate(changes.files):
        path = os.fspath(file.path)
        origin = file.origin
        if origin.made_by == "tool" and not origin.label:
            origin = structs.replace(origin, label=cause.label)
        batch.writes.append(
            PutFileVersion(
                cause.session_id,
                cause.run_id,
                path,
                file.before,
                file.after,
                message_id=cause.id,
                mode=file.mode,
                before_mark=file.before_mark,
                after_mark=file.after_mark,
                origin=origin,
            )
        )
        kind = change_kind(
            None if file.before is None and not file.before_mark else "",
            None if file.after is None and not file.after_mark else "",
        )
        event = file_event(kind, f"{cause.id}.{number}", cause.session_id, path, cause.run_id or None, world)
        batch.events.append(event)
    if changes.missed:
        origin = Origin(changes.made_by, changes.label, missed=changes.missed)
        batch.writes.append(
            PutFileVersion(cause.session_id, cause.run_id, "", None, None, message_id=cause.id, origin=origin)
        )


def change_kind(before: str | None, after: str | None) -> ChangeKind:
    if after is None:
        return "deleted"
    return "created" if before is None else "updated"


def file_event(kind: ChangeKind, file_id: str, session_id: str, path: str, run_id: str | None, world: World) -> Event:
    now = world.now_s()
    file = File(id=file_id, session_id=session_id, path=printable(path), created_at=now, updated_at=now, run_id=run_id)
    return Event(kind, file, session_id)


def printable(path: str) -> str:
    """A name that is no UTF-8 holds half characters, which no JSON can."""
    return path.encode("utf-8", "replace").decode()
