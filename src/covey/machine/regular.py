"""Opening files that others wrote, without waiting: a FIFO would wait for a writer, a device may act when opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class NotRegular(Exception):
    """Something else is there: a directory, a FIFO, a socket, a device, or a link that is not followed."""

    def __init__(self, mode: int) -> None:
        super().__init__(f"no regular file (mode {mode:o})")
        self.is_directory = stat.S_ISDIR(mode)


class Content(NamedTuple):
    data: bytes
    """The beginning of the file, as much as was asked for."""
    size: int
    """Of the whole file."""


def check_regular(status: os.stat_result) -> None:
    """Raise NotRegular for anything but a regular file."""
    if not stat.S_ISREG(status.st_mode):
        raise NotRegular(status.st_mode)


@contextmanager
def open_regular(
    path: Path | str, *, follow_links: bool = False, look_first: bool = True, dir_fd: int | None = None
) -> Iterator[tuple[BinaryIO, os.stat_result]]:
    """A regular file, open to be read, and its status. Raises NotRegular or OSError.

    `look_first`: nothing else is even opened, as far as can be known beforehand. Without it there is one system call
    less, for callers that have just looked.
    """
    if look_first:
        check_regular(os.stat(path, dir_fd=dir_fd, follow_symlinks=follow_links))
    # Something else may have taken its place since: a link is not followed, and a FIFO is not waited for.
    descriptor = os.open(path, _READ if follow_links else _READ | os.O_NOFOLLOW, dir_fd=dir_fd)
    try:
        status = os.fstat(descriptor)
        check_regular(status)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file, status
    finally:
        os.close(descriptor)


def read_regular(path: Path | str, limit: int, *, look_first: bool = True) -> Content | None:
    """The first `limit` bytes of a regular file, and its size; None for anything else, also for a link."""
    try:
        with open_regular(path, look_first=look_first) as (file, status):
            return Content(file.read(limit), status.st_size)
    except (NotRegular, OSError, ValueError):  # not there, or not allowed; a name with a NUL character
        return None
