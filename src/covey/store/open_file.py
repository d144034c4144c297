"""Whether the files of an open database are still the ones at their paths.

A process goes on writing to a file that was deleted or replaced, and every write succeeds: it is gone when the process
ends. As long as the database is open its inode cannot be given to another file, so comparing is enough.
"""

from __future__ import annotations

import errno
import os

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ESTALE})


class OpenFile:
    """A database that has just been opened. What was committed last may be in its log alone: that counts as well."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._log = f"{path}-wal"
        self._identity = _identity(path)
        self._log_identity: tuple[int, int] | None = None

    def is_lost(self) -> bool:
        """Asked after a commit, at the cost of two system calls."""
        found, log = _identity(self._path), _identity(self._log)
        if found is None or log is None:
            return True
        self._log_identity = self._log_identity or log  # it is made by the first write
        return found != self._identity or log != self._log_identity


def _identity(path: str) -> tuple[int, int] | None:
    """None: nothing is there. What cannot be looked at for another reason is not known to be gone."""
    try:
        status = os.stat(path)
    except OSError as error:
        return None if error.errno in _GONE else (0, 0)
    return status.st_dev, status.st_ino
