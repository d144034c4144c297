"""What tool calls changed on disk: kept with their results, and published as events."""

from __future__ import annotations

import os
from collections.abc import Sequence

from covey.engine.recorder import Batch
from covey.engine.world import World
from covey.protocol.events import ChangeKind, Event, File
from covey.protocol.messages import Message
from covey.store.base import PutFileVersion
from covey.tools.base import FileVersion


def record_files(batch: Batch, files: Sequence[FileVersion], message: Message, world: World) -> None:
    """Add what a call has changed to the change that holds its result (`message`): both are kept, or neither."""
    for number, file in enumerate(files):
        path = os.fspath(file.path)
        batch.writes.append(
            PutFileVersion(
                message.session_id,
                message.run_id or "",
                path,
                file.before,
                file.after,
                message_id=message.id,
                mode=file.mode,
            )
        )
        kind = change_kind(None if file.before is None else "", None if file.after is None else "")
        batch.events.append(file_event(kind, f"{message.id}.{number}", message.session_id, path, message.run_id, world))


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
