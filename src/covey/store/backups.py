"""A copy of the store for each day, made by upkeep in small pieces: what a damaged file is replaced with.

It is copied with SQLite's own backup, through the connection that writes: what is written meanwhile is in the copy as
well, and no piece has to be copied twice for it. It is seen under its name only when it is whole and on the disk.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import apsw

log = logging.getLogger(__name__)

DIRECTORY = "backups"
PIECE_PAGES = 256
"""Copied at once: 1 MiB, for which nobody waits longer than for a large change."""
ROOM = 2
"""Times the length of the store that must be free on the disk: a backup must not be what fills it."""
_NAMES = "covey-????-??-??.db"
_PART = ".part"


def backups_in(data_dir: Path) -> list[Path]:
    """All of them, the newest first."""
    return sorted((data_dir / DIRECTORY).glob(_NAMES), reverse=True)


class Backups:
    """The backups of one store. Called by the thread that writes."""

    def __init__(self, connection: apsw.Connection, path: Path, now: Callable[[], float] = time.time) -> None:
        self.kept = 0
        """How many stay; 0: none is made."""
        self._connection = connection
        self._path = path
        self._directory = path.parent / DIRECTORY
        self._now = now
        self._looked_on = ""
        """The last day on which it was found out whether there is something to do."""
        self._target = Path()
        self._copy: apsw.Connection | None = None
        self._copying: apsw.Backup | None = None

    def piece(self) -> bool:
        """Copy a piece, if there is no backup of today; False: there is nothing to do. Outside of a transaction."""
        if not self.kept:
            return False
        if self._copying is None and not self._begin():
            return False
        assert self._copying is not None
        try:
            if self._copying.step(PIECE_PAGES):
                self._finish()
                return False
        except BaseException:
            self.abandon()
            raise
        return True

    def abandon(self) -> None:
        """Leave nothing of one that is not whole."""
        if self._copying is not None and self._copy is not None:
            with contextlib.suppress(apsw.Error):
                self._copying.close(True)
            self._copy.close()
            self._copying = self._copy = None
            self._part.unlink(missing_ok=True)

    @property
    def _part(self) -> Path:
        return self._target.with_name(self._target.name + _PART)

    def _begin(self) -> bool:
        today = time.strftime("%Y-%m-%d", time.gmtime(self._now()))
        if today == self._looked_on or not self._connection.execute("SELECT EXISTS (SELECT * FROM runs)").get:
            return False
        self._looked_on = today  # also if it fails: it is tried again tomorrow, not at once
        self._target = self._directory / f"covey-{today}.db"
        if self._target.exists():
            return False
        size = self._connection.pragma("page_count") * self._connection.pragma("page_size")
        if shutil.disk_usage(self._path.parent).free < ROOM * size:
            log.warning("no backup of the store is made today: there is too little room on the disk")
            return False
        self._directory.mkdir(mode=0o700, exist_ok=True)
        for left in self._directory.glob(f"*{_PART}*"):  # of a server that was killed
            left.unlink(missing_ok=True)
        os.close(os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        self._copy = apsw.Connection(str(self._part))
        self._copy.pragma("synchronous", "OFF")  # it is flushed once, when it is whole
        self._copying = self._copy.backup("main", self._connection, "main")
        return True

    def _finish(self) -> None:
        assert self._copying is not None and self._copy is not None
        self._copying.finish()
        self._copy.close()
        self._copying = self._copy = None
        for path in (self._part, self._directory):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if path == self._part:
                os.replace(path, self._target)
        for old in backups_in(self._path.parent)[self.kept :]:
            old.unlink(missing_ok=True)
