"""Files on the disk, as an undo sees them: looked at, prepared beside, and put back in one step. Blocks: use a thread.

A path was free of links when it was recorded. It is walked from the root without following any, so that a link which
has appeared since leads nowhere: neither is anything read behind it, nor written.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from covey.lifecycle.undo import Found, Odd, Restore
from covey.machine.regular import NotRegular, open_regular
from covey.machine.replace import copy_owner_and_mode, create_new

COMPARED_BYTES = 64 * 1024 * 1024
"""Above this a file is not compared: nothing of that size was ever written by a tool of ours."""
CHUNK = 1024 * 1024

LINKED = "a link, or something that is no directory, is on the way to it now"
NO_FILE = "it is no regular file now"
TOO_LARGE = "it is too large to be compared now"

_WALK = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class CannotRestore(Exception):
    """The file stays as it is; the text says why."""


def look(path: str) -> Found:
    """What is at the path: the digest of a file, None for nothing, or something that cannot be compared."""
    try:
        with _parent(path) as (directory, name):
            return _look(directory, name)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return Odd(LINKED)
    except OSError as error:
        return Odd(f"it cannot be read: {error.strerror}")


def _look(directory: int, name: str) -> Found:
    digest, size = hashlib.sha256(), 0
    try:
        with open_regular(name, dir_fd=directory) as (file, _):
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                size += len(chunk)
                if size > COMPARED_BYTES:
                    return Odd(TOO_LARGE)
    except NotRegular:
        return Odd(NO_FILE)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Staged:
    """One file of an undo, with its old content in a file beside it: putting it back is one rename."""

    restore: Restore
    beside: str
    """The name of that file. Nothing has that name if the file is to be removed."""

    def prepare(self, content: bytes | None) -> None:
        """Whatever may fail for lack of space or permission fails here, before anything is changed."""
        if content is None or self.restore.found == self.restore.target:
            return
        try:
            with _parent(self.restore.path, make=True) as (directory, name):
                self._write(directory, name, content)
        except OSError as error:
            raise CannotRestore(f"it cannot be written: {error.strerror}") from None

    def _write(self, directory: int, name: str, content: bytes) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.beside, dir_fd=directory)  # of an undo that a crash cut off
        new = create_new(self.beside, dir_fd=directory)
        try:
            with new as file:
                file.write(content)
                file.flush()
                mode = self.restore.mode or None  # 0: none was recorded
                copy_owner_and_mode(name, file.fileno(), mode=mode, follow_links=False, dir_fd=directory)
                self._set_bit(file.fileno())
                os.fsync(file.fileno())
        except BaseException:
            os.unlink(self.beside, dir_fd=directory)
            raise

    def put(self) -> None:
        """Give the file its old content, if it is still as it was found. Doing it twice changes nothing."""
        try:
            with _parent(self.restore.path) as (directory, name):
                self._put(directory, name)
        except FileNotFoundError:
            if self.restore.target is not None:
                raise CannotRestore("its directory, or its old content, is gone") from None
        except NotADirectoryError:
            raise CannotRestore(LINKED) from None
        except OSError as error:
            raise CannotRestore(f"it cannot be written: {error.strerror}") from None

    def _put(self, directory: int, name: str) -> None:
        try:
            now = _look(directory, name)
        except FileNotFoundError:
            now = None
        if now == self.restore.target:
            if now is not None:
                with open_regular(name, dir_fd=directory) as (file, _):
                    self._set_bit(file.fileno())
            return
        if now != self.restore.found:
            raise CannotRestore(now.why if isinstance(now, Odd) else "it was changed meanwhile")
        if self.restore.target is None:
            os.unlink(name, dir_fd=directory)
        else:
            os.replace(self.beside, name, src_dir_fd=directory, dst_dir_fd=directory)
        _flush(directory)

    def _set_bit(self, descriptor: int) -> None:
        """Who may read it may execute it, or nobody may. The other permission bits stay as they are."""
        if self.restore.executable is not None:
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            wanted = mode | (mode & 0o444) >> 2 if self.restore.executable else mode & ~0o111
            if wanted != mode:
                os.fchmod(descriptor, wanted)

    def clear(self) -> None:
        """Leave nothing beside the file."""
        with contextlib.suppress(OSError), _parent(self.restore.path) as (directory, _):
            os.unlink(self.beside, dir_fd=directory)


@contextlib.contextmanager
def _parent(path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The directory of a file, open, and the file's name in it. NotADirectoryError: a link is on the way."""
    *names, name = [part for part in path.split("/") if part]
    directory = os.open("/", _WALK)
    try:
        for part in names:
            inner = _enter(directory, part, make=make)
            os.close(directory)
            directory = inner
        yield directory, name
    finally:
        os.close(directory)


def _enter(directory: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _WALK, dir_fd=directory)
    except FileNotFoundError:
        if not make:
            raise
        os.mkdir(name, dir_fd=directory)
        return _enter(directory, name, make=False)
    except OSError as error:  # which one a link gives depends on the system
        if stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            raise NotADirectoryError(error.errno, error.strerror, name) from None
        raise


def _flush(directory: int) -> None:
    """The rename survives a power cut. Not every file system can promise that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
