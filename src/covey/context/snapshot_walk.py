"""The files of a directory where there is no git to ask: all of them count as new. No rules of ignoring are read."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from covey.context.snapshot import Listed
from covey.context.snapshot_git import FILES

_ALWAYS_IGNORED = frozenset({".git"})


def walk(root: Path, ignored: Collection[str], deadline: float) -> Listed | None:
    """Up to `FILES`, in the order of their paths; None when the time is over first."""
    names = {os.fsencode(name) for name in _ALWAYS_IGNORED.union(ignored)}
    found: list[bytes] = []
    for path in _files(os.fsencode(root), b"", names):
        if time.monotonic() > deadline:
            return None
        if len(found) == FILES:
            return Listed(found, [], found[-1], has_inner=False)
        found.append(path)
    return Listed(found, [], None, has_inner=False)


def _files(directory: bytes, prefix: bytes, ignored: set[bytes]) -> Iterator[bytes]:
    """In the order of bytes: a directory is sorted as if its name ended with a slash, as all paths in it do."""
    try:
        with os.scandir(directory) as entries:
            here = [(entry.name + b"/" * entry.is_dir(follow_symlinks=False), entry) for entry in entries]
    except OSError:
        return
    for name, entry in sorted(here, key=lambda pair: pair[0]):
        if entry.name in ignored:
            continue
        if name.endswith(b"/"):
            yield from _files(entry.path, prefix + name, ignored)
        elif _is_file(entry):
            yield prefix + name


def _is_file(entry: os.DirEntry[bytes]) -> bool:
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)
