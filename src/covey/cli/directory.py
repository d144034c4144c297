"""Which directory a command works on: the one that was named, else the git repository around the current one."""

from __future__ import annotations

import os
from pathlib import Path


def default_directory(current: Path) -> Path:
    """The root of the git repository that the directory is in, or the directory itself.

    So all directories of a repository share sessions, rules and trust. A root that holds the user's home, or is not
    the user's own, is not taken: nobody means all of that, and what others put there must not count.
    """
    home = Path(os.path.realpath(os.path.expanduser("~")))
    for directory in (current, *current.parents):
        if directory == home or directory in home.parents:
            break
        if _is_own_repository(directory):
            return directory
    return current


def _is_own_repository(directory: Path) -> bool:
    """`.git` is a directory, or a file where it is a worktree or a submodule. git, too, asks whose it is."""
    try:
        return all(os.stat(path).st_uid == os.getuid() for path in (directory / ".git", directory))
    except OSError:
        return False
