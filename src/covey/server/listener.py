"""The socket that a server listens on: for this user alone if it is a unix socket, never anybody else's file."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from covey.protocol.errors import CoveyError
from covey.protocol.paths import Address, make_private

BACKLOG = 1024
"""Connections that may wait while the loop is busy: a hundred terminals may come back at once."""


class CannotServe(CoveyError):
    """The server cannot start; the text says why and what to do."""

    code = "cannot_serve"


class Listener:
    """The socket of a server, and the file by which clients find it if it is a unix socket."""

    def __init__(self, address: Address) -> None:
        self._path = address.path if address.is_unix else ""
        self.socket = _listening_on(address)
        self._file = _identity(self._path)
        self._was_dead = False

    def renewed(self) -> socket.socket | None:
        """A new socket, if the file of ours is gone and nobody else serves there; None: there is nothing to do.

        One that refuses connections may belong to a server that is just starting: it is looked at twice.
        """
        found = _identity(self._path)
        if not self._path or found == self._file:
            return None
        is_dead = found is not None and not _answers(self._path)
        if found is not None and not (is_dead and self._was_dead):
            self._was_dead = is_dead
            return None
        self._was_dead = False
        self.socket = _listening_on(Address(path=self._path))
        self._file = _identity(self._path)
        return self.socket

    def close(self) -> None:
        """The file goes too, if it is still ours."""
        self.socket.close()
        if self._path and _identity(self._path) == self._file:
            with contextlib.suppress(OSError):
                os.unlink(self._path)


@contextlib.contextmanager
def listening(address: Address) -> Iterator[Listener]:
    """Bound and listening; a unix socket is removed afterwards."""
    listener = Listener(address)
    try:
        yield listener
    finally:
        listener.close()


def _listening_on(address: Address) -> socket.socket:
    listener = _bind_unix(address.path) if address.is_unix else _bind_tcp(address)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def _identity(path: str) -> tuple[int, int] | None:
    """What tells one socket file from another of the same name; None: there is none.

    Not by its number alone: the next file may get that of one that was removed. The time is when it was made.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


def bound_address(address: Address, listener: socket.socket) -> Address:
    """Where it really listens: port 0 has become a free one."""
    if address.is_unix:
        return address
    host, port = listener.getsockname()[:2]
    return Address(host=host, port=port)


def _bind_tcp(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
    except OSError as error:
        listener.close()
        hint = " Choose another port, or 0 for any free one." if error.errno == errno.EADDRINUSE else ""
        raise CannotServe(f"cannot listen on {address}: {error.strerror}.{hint}") from None
    return listener


def _bind_unix(path: str) -> socket.socket:
    parent = Path(path).parent
    if not parent.exists():
        make_private(parent)
    _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listener.bind(path)
    except OSError as error:
        listener.close()
        raise CannotServe(f"cannot listen on unix://{path}: {error.strerror or error}") from None
    finally:
        os.umask(mask)
    return listener


def _remove_stale(path: str) -> None:
    """A socket that a crash left behind is removed; one that answers is not, and no other file ever."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise CannotServe(f"{path} exists and is not a socket; choose another path")
    except FileNotFoundError:
        return
    if _answers(path):
        raise CannotServe(f"a server answers on unix://{path} already; use it, or stop it with `covey stop`")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        return probe.connect_ex(path) in (0, errno.EAGAIN)  # EAGAIN: it has more to accept than it can
