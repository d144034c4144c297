"""Whether the process at the other end of a unix socket is one that our own tools started.

Such a process may read and prompt, but not approve: else a test suite that somebody allowed to run could allow
everything else. It is known by our tag, its own or that of a process that it descends from. What drops the tag and its
ancestors, or is gone when we look, is not ours to trust either way: what cannot be looked at counts as ours. This is
the second net; the first is the sandbox, from which the socket cannot be reached.
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

from covey.machine.names import TAG_VARIABLE

_MARK = f"{TAG_VARIABLE}=".encode()
_GENERATIONS = 64
"""More than there are between a tool and what it started; a loop cannot be."""

PROC = Path("/proc")


def peer_pid(connection: socket.socket) -> int:
    """The process that connected; 0 if the system does not say."""
    if connection.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return 0
    with suppress(OSError):
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, _, _ = struct.unpack("3i", credentials)
        return int(pid)
    return 0


def is_from_our_tools(pid: int) -> bool:
    """Whether the process, or one that it descends from up to this server, carries our tag."""
    if not pid or not PROC.joinpath("self").exists():
        return False  # a system that does not say who is there: nothing can be known
    for _ in range(_GENERATIONS):
        if pid in (0, 1, os.getpid()):
            return False
        try:
            if _is_tagged(pid):
                return True
            pid = _parent(pid)
        except OSError:
            return True
    return True


def _is_tagged(pid: int) -> bool:
    """A process of another user cannot be looked into, and is none that we started."""
    try:
        environment = PROC.joinpath(str(pid), "environ").read_bytes()
    except PermissionError:
        return False
    return any(entry.startswith(_MARK) for entry in environment.split(b"\0"))


def _parent(pid: int) -> int:
    # The name stands in brackets and may hold anything, brackets too.
    fields = PROC.joinpath(str(pid), "stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[1])
