"""The log of a server that nobody watches: a file with a bound, of which the part before is kept as well."""

from __future__ import annotations

import os
from logging.handlers import RotatingFileHandler
from pathlib import Path

MAX_BYTES = 1024 * 1024
"""Some weeks of everyday use. The file before it has as much."""


class LogFile(RotatingFileHandler):
    """Takes stdout and stderr along if they lead into the same file: a traceback belongs into the newest one."""

    def __init__(self, path: Path) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))  # for the user's eyes only
        super().__init__(path, maxBytes=MAX_BYTES, backupCount=1, encoding="utf-8", errors="replace")
        self._along = [descriptor for descriptor in (1, 2) if _is_same(descriptor, path)]

    def doRollover(self) -> None:
        super().doRollover()
        os.chmod(self.baseFilename, 0o600)
        if stream := self.stream:
            for descriptor in self._along:
                os.dup2(stream.fileno(), descriptor)


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False
