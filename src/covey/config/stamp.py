"""Whether files have changed since they were read, without reading them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

Stamp = tuple[tuple[int, int, int, int] | None, ...]
"""What the system says of each of some files; None: it is not there, or cannot be looked at."""


def stamp_of(paths: Sequence[Path]) -> Stamp:
    """As the files are now. Blocks for a system call each. What is to be compared later is taken *before* reading."""
    return tuple(_status(path) for path in paths)


def _status(path: Path) -> tuple[int, int, int, int] | None:
    """Links are followed. The time of the last change of the inode also moves when an editor puts the old time back."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
