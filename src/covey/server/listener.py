"""The socket that a server listens on: for this user alone if it is a unix socket, never anybody else's file."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from covey.protocol.paths import Address, make_private

BACKLOG = 1024
"""Connections that may wait while the loop is busy: a hundred terminals may come back at once."""
PROBE_S = 1.0
"""How long to wait for an answer from a socket that was found."""


class CannotServe(Exception):
    """The server cannot start; the text says why and what to do."""


@contextlib.contextmanager
def listening(address: Address) -> Iterator[socket.socket]:
    """A bound and listening socket; a unix socket is removed afterwards."""
    listener = _bind_unix(address.path) if address.is_unix else _bind_tcp(address)
    try:
        listener.listen(BACKLOG)
        listener.setblocking(False)
        yield listener
    finally:
        listener.close()
        if address.is_unix:
            with contextlib.suppress(OSError):
                os.unlink(address.path)


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
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_S)
        try:
            probe.connect(path)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        else:
            raise CannotServe(f"a server answers on unix://{path} already; use it, or stop it with `covey stop`")
