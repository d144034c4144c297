"""The machine's process table: find the processes that belong to a tool call, and signal exactly those.

It reads `/proc`. Where there is none (`AVAILABLE` is false) nothing is found, and callers fall back to process groups.
It starts nothing, and it decides nothing about when a process has to end.
"""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterable, Set
from contextlib import suppress
from typing import NamedTuple

TAG = "COVEY_PROCESS_TAG"
"""The environment variable that says for which tool call a process runs. Children inherit it."""

AVAILABLE = os.path.exists("/proc/self/stat")

_LOOKS = 50
_LOOK_AGAIN_S = 0.001
"""A process in the middle of `exec` has no environment for a moment, mostly far less than a millisecond."""

_PIECE = 65536
"""More than the environment of nearly every process: one read for each, as all processes are looked at."""


class Process(NamedTuple):
    """One process for ever: a pid is given out again, a pid with its start time (clock ticks since boot) is not."""

    pid: int
    start: int


class _Status(NamedTuple):
    state: str
    parent: int
    group: int
    session: int
    start: int


def tagged(tag: str, *, since: int = 0) -> set[Process]:
    """The living processes of this user whose tag is `tag` or begins with `tag` and a slash.

    Whole parts are compared, and no run id has a slash: looking for run `a1` never finds run `a10` or `a1.b`.

    An empty answer is a proof, up to `exec`: the table is listed again until nothing new is in it, so a process that
    was missed must have been born after the last listing, by a parent that was alive then and would have been found.
    `since` is a start time: nothing older is waited for when it has no environment yet.
    """
    if not tag:
        raise ValueError("an empty tag would cover every process that Covey ever started")
    found: set[Process] = set()
    settled: set[int] = {os.getpid()}
    for _ in range(_LOOKS):
        new = _pids() - settled
        if not new:
            break
        starting = {pid for pid in new if _look(pid, tag, found) and _may_be_starting(pid, since)}
        settled |= new - starting
        if starting == new:
            time.sleep(_LOOK_AGAIN_S)
    return found


def relatives(leader: int, known: Set[Process] = frozenset()) -> set[Process]:
    """The living processes in the group or session of `leader`, and all that descend from it, them or `known`.

    The leader must not have been reaped: until then nobody else can get its pid.
    """
    table = {pid: status for pid in _pids() if (status := _status(pid))}
    members = {pid for pid, status in table.items() if leader in (pid, status.group, status.session)}
    members |= {pid for pid, start in known if pid in table and table[pid].start == start}
    children = defaultdict(list)
    for pid, status in table.items():
        children[status.parent].append(pid)
    unvisited = list(members)
    while unvisited:
        offspring = [pid for pid in children[unvisited.pop()] if pid not in members]
        members.update(offspring)
        unvisited += offspring
    members.discard(os.getpid())
    return {Process(pid, table[pid].start) for pid in members if table[pid].state not in "ZX"}


def is_alone(leader: int) -> bool:
    """Whether nothing else is in the leader's session, not even a zombie: a quick look that spares a longer one."""
    for pid in _pids() - {leader}:
        with suppress(OSError):
            if os.getsid(pid) == leader:
                return False
    return True


def start_time(pid: int) -> int:
    """When this process began, also if it is a zombie; 0 if there is none."""
    status = _status(pid)
    return status.start if status else 0


def send(processes: Iterable[Process], number: signal.Signals) -> None:
    """Signal each of them that is still the process it was when it was found."""
    for process in sorted(processes, key=lambda process: process.start):  # a shell first: else it reports the others
        # Gone, or not ours to signal (a program that changed its user): neither can be helped.
        with suppress(ProcessLookupError, PermissionError):
            _send(process, number)


def _send(process: Process, number: signal.Signals) -> None:
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        raise
    except (AttributeError, OSError):  # an old kernel, or a sandbox that forbids it
        if start_time(process.pid) == process.start:
            os.kill(process.pid, number)
        return
    try:
        # Checked after opening: from here on the handle cannot come to mean another process.
        if start_time(process.pid) == process.start:
            signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)


def _pids() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()} if AVAILABLE else set()


def _look(pid: int, tag: str, found: set[Process]) -> bool:
    """Add the process to `found` if it carries the tag. True: it has no environment to look at."""
    environment = _read(pid, "environ")
    if environment and _carries(environment, tag) and _is_own(pid) and (start := start_time(pid)):
        found.add(Process(pid, start))
    return environment == b""


def _carries(environment: bytes, tag: str) -> bool:
    exact = b"\0" + f"{TAG}={tag}".encode()
    environment = b"\0" + environment + b"\0"
    return exact + b"\0" in environment or exact + b"/" in environment


def _is_own(pid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid == os.geteuid()
    except OSError:
        return False


def _may_be_starting(pid: int, since: int) -> bool:
    """Whether a process without an environment may get one: kernel threads and zombies have no program either."""
    try:
        os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return False
    return start_time(pid) >= max(since, 1)


def _status(pid: int) -> _Status | None:
    line = _read(pid, "stat")
    if not line:
        return None
    # The program's name stands in parentheses and may contain anything, parentheses too.
    fields = line[line.rindex(b")") + 2 :].split()
    return _Status(fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def _read(pid: int, name: str) -> bytes | None:
    """The file, in full; None if there is no such process or it may not be read."""
    try:
        file = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        content = piece = os.read(file, _PIECE)
        while len(piece) == _PIECE:
            content += (piece := os.read(file, _PIECE))
        return content
    except OSError:
        return None
    finally:
        os.close(file)
