"""`covey doctor --set-aside`: where nothing can be saved, the file is kept under another name and a new one begun."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from covey.doctor.oracle_file import NAME, NoStore

OFFER = "`covey doctor --set-aside` renames it, and the next server begins anew, without the sessions in it."


def set_aside(data_dir: Path, now: Callable[[], float] = time.time) -> Path:
    """Rename the store, with what belongs to it, and give its new path. Nothing is deleted. Raises NoStore, OSError."""
    path = data_dir / NAME
    if not path.exists():
        raise NoStore(f"there is no store in {data_dir}: {NAME} is missing")
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now()))
    target = data_dir / f"{NAME}.aside-{stamp}"
    for ending in ("-wal", "-shm", ""):  # the store last: while it is there, it is not done
        part = data_dir / f"{NAME}{ending}"
        if part.exists():
            part.rename(f"{target}{ending}")
    return target
