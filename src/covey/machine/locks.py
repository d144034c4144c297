"""Locks on files. They die with the process that holds them, so a stale one cannot keep anybody out."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_RETRY_S = 0.02
"""How often to look whether somebody else has let go: nobody notices 20 ms."""


@contextmanager
def open_lock(path: Path | str) -> Iterator[int]:
    """The descriptor of a lock file, which is made if need be; nothing is locked yet. At the end the lock is freed.

    A link in its place is not followed: it could make a file of somebody else's into a lock.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
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


@contextmanager
def locked(path: Path | str, patience_s: float) -> Iterator[None]:
    """Hold the lock of this file. Waits for whoever has it; OSError if that takes longer than `patience_s`."""
    with open_lock(path) as descriptor:
        deadline = time.monotonic() + patience_s
        while not try_lock(descriptor):
            if time.monotonic() > deadline:
                raise OSError(0, "somebody else is changing it, and does not finish")
            time.sleep(_RETRY_S)
        yield
