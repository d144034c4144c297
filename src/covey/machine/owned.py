"""Whether somebody else on this machine can change a file or a directory that we rely on."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def why_not_ours(status: os.stat_result) -> str:
    """Why others can change it, to go on after its name; empty if only we (and root) can."""
    if status.st_uid != os.geteuid():
        return "belongs to somebody else"
    return "can be changed by others" if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def why_not_our_directory(directory: Path) -> str:
    """The same for a directory, links followed. Raises OSError if it cannot be looked at."""
    status = directory.stat()
    return why_not_ours(status) if stat.S_ISDIR(status.st_mode) else "is not a directory"
