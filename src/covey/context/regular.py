"""Reading files that others wrote, bounded and without waiting: a FIFO would wait for a writer, a device may act."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_regular(path: Path, limit: int) -> tuple[bytes, int] | None:
    """The first `limit` bytes of a regular file, and its size; None for anything else, also for a link."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        # Something else may have taken its place since: neither is a link followed, nor a FIFO waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):  # not there, or not allowed; a name with a NUL character
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(limit), status.st_size
    except OSError:
        return None
    finally:
        os.close(descriptor)


def resolved_inside(path: Path, directory: Path) -> Path | None:
    """`path` without links, if that is in `directory` (which has none); None if it leads elsewhere, or nowhere."""
    try:
        real = path.resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links; a name with a NUL character
        return None
    return real if real.is_relative_to(directory) else None


def inside(path: Path, directory: Path) -> bool:
    return resolved_inside(path, directory) is not None
