"""Writing a new file beside an old one and renaming it: readers see the old content or the new, never half of it."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def name_beside(path: Path) -> Path:
    """An unused name in the same directory, for a file that will be renamed to `path`."""
    return path.with_name(f".covey-{secrets.token_hex(6)}.tmp")


def create_new(path: Path | str, mode: int | None = None, *, dir_fd: int | None = None) -> BinaryIO:
    """A new file, open to be written. FileExistsError if anything has its name, also a link that leads nowhere.

    `mode` None: readable for whom the umask allows.
    """
    return os.fdopen(os.open(path, _NEW, 0o666 if mode is None else mode, dir_fd=dir_fd), "wb")


def copy_owner_and_mode(
    source: Path | str,
    descriptor: int,
    *,
    mode: int | None = None,
    follow_links: bool = True,
    dir_fd: int | None = None,
) -> None:
    """Give an open file the mode and, if we may, the owner of the file `source`; if that is not there, `mode`."""
    try:
        old = os.stat(source, dir_fd=dir_fd, follow_symlinks=follow_links)
    except FileNotFoundError:
        if mode is not None:
            os.fchmod(descriptor, mode)
        return
    with suppress(PermissionError):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def replace_file(
    path: Path, content: bytes, *, mode: int | None = None, keep_mode: bool = True, sync: bool = False
) -> os.stat_result:
    """Put the content in place in one step; gives the new file's status. A link at `path` itself is replaced.

    `mode` is that of a file that is new (None: left to the umask), and with `keep_mode=False` also of one that is
    replaced; otherwise the old file's mode and owner stay. `sync`: the content is on the disk before the rename.
    """
    temporary = name_beside(path)
    try:
        with create_new(temporary, mode) as file:
            file.write(content)
            file.flush()
            if keep_mode:  # after writing, which would take away a set-user-id bit
                copy_owner_and_mode(path, file.fileno(), mode=mode)
            if sync:
                os.fsync(file.fileno())
            status = os.fstat(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    return status
