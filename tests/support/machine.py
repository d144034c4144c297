"""A look at the machine that does not use the code under test: processes, ports, and waiting for a condition."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WAIT_FOR = 'wait_for() { until [ -s "$1" ]; do sleep 0.01; done; }; '
"""A shell function: wait until a file has content."""
TREE = WAIT_FOR + "(setsid sh -c 'sleep 60 & echo $! > pid' > /dev/null 2>&1 &); wait_for pid; touch ready; sleep 60"
"""A shell command with a grandchild in a session of its own, whose pid is in `pid`. All is there once `ready` is."""


def carriers(tag: str) -> list[str]:
    """The command lines of all living processes whose environment has this tag, or one that begins with it."""
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                if f"COVEY_PROCESS_TAG={tag}".encode() in (directory / "environ").read_bytes():
                    found.append(f"{directory.name}: {(directory / 'cmdline').read_bytes()!r}")
            except OSError:
                continue
    return found


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state not in (b"Z", b"X")


def pid_in(file: Path) -> int:
    return int(file.read_text())


async def until(condition: Callable[[], bool], bound_s: float = 30) -> None:
    async with asyncio.timeout(bound_s):
        while not condition():
            await asyncio.sleep(0.005)


@contextmanager
def refusing_port() -> Iterator[int]:
    """A port that refuses connections. It is held meanwhile: one that is given back may be somebody else's at once.

    Whoever knows its number may still listen on it.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def free_port() -> int:
    """A port for a server that has to be given one: of those that the system gives to nobody who asks for any port."""
    while True:
        port = random.randrange(15_000, 30_000)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def has_pid(file: Path) -> bool:
    """Whether a command has written a whole pid there."""
    return file.exists() and file.read_text().endswith("\n")
