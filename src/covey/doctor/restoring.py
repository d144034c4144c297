"""A backup takes the place of a damaged store. No server may be running.

What was said since the backup is lost. So each workspace begins a new epoch, since clients may know newer events; and
prompts that waited then are cancelled, since they may have run: nothing runs twice.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec
from msgspec import structs

from covey.doctor.oracle_file import NAME, NoStore, complaints, copy_bytes, flush, open_to_read, unused
from covey.protocol.runs import Run
from covey.store.backups import backups_in


def newest_backup(data_dir: Path) -> Path | None:
    """The newest one that is whole."""
    return next((path for path in backups_in(data_dir) if _is_whole(path)), None)


def _is_whole(path: Path) -> bool:
    try:
        with contextlib.closing(open_to_read(path)) as connection:
            return not complaints(connection)
    except (NoStore, apsw.Error, OSError):
        return False


def restore(
    data_dir: Path, backup: Path, set_aside: Callable[[Path], Path], now: Callable[[], float] = time.time
) -> Path | None:
    """Put the backup in the place of the store; gives where that is now, None if there was none. Raises OSError."""
    new = unused(data_dir / f"{NAME}.new")
    try:
        copy_bytes(backup, new)
        with contextlib.closing(apsw.Connection(str(new))) as connection:
            connection.pragma("journal_mode", "DELETE")  # one file, that can be renamed
            with connection:
                _begin_anew(connection, int(now()))
        flush(new)
        aside = set_aside(data_dir) if (data_dir / NAME).exists() else None
        os.replace(new, data_dir / NAME)
        flush(data_dir)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return aside


def _begin_anew(connection: apsw.Connection, now: int) -> None:
    connection.execute("UPDATE workspaces SET epoch = max(epoch + 1, ?)", (now,))
    waiting = "SELECT workspace_id, run_id, value FROM runs WHERE ended = 0 AND state IN ('accepted', 'queued')"
    rows: list[Any] = connection.execute(waiting).fetchall()
    for workspace_id, run_id, value in rows:
        run = structs.replace(msgspec.json.decode(value, type=Run), cancelled_by="shutdown")
        key = (msgspec.json.encode(run), workspace_id, run_id)
        connection.execute("UPDATE runs SET cancelled = 1, value = ? WHERE workspace_id = ? AND run_id = ?", key)
