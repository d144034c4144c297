"""Locks on files. They die with the process that holds them, so a stale one cannot keep anybody out."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_lock(path: Path | str) -> Iterator[int]:
    """The descriptor of a lock file, which is made if need be; nothing is locked yet. At the end the lock is freed."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Lock it for us alone, without waiting; False if somebody else has it. OSError: it cannot be locked at all."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
