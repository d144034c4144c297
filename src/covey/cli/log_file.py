"""The log of a server that nobody watches: a file with a bound, of which the part before is kept as well."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TextIO

MAX_BYTES = 1024 * 1024
"""Some weeks of everyday use. The file before it has as much."""


class LogFile(logging.FileHandler):
    """Takes stdout and stderr along if they lead into the same file: a traceback belongs into the newest one.

    `logging.handlers` has such a thing as well, and would bring along pickle, queues and sockets.
    """

    def __init__(self, path: Path) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))  # for the user's eyes only
        super().__init__(path, encoding="utf-8", errors="replace")
        self._along = [descriptor for descriptor in (1, 2) if _is_same(descriptor, path)]

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        stream = self.stream
        if stream and stream.tell() >= MAX_BYTES:
            try:
                self._put_aside(stream)
            except OSError:
                self.handleError(record)

    def _put_aside(self, stream: TextIO) -> None:
        os.replace(self.baseFilename, f"{self.baseFilename}.1")
        os.close(os.open(self.baseFilename, os.O_CREAT | os.O_WRONLY, 0o600))
        stream.close()
        self.stream = opened = self._open()
        for descriptor in self._along:
            os.dup2(opened.fileno(), descriptor)


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False
