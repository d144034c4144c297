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

from covey.machine.names import TAG_VARIABLE

_MARK = f"{TAG_VARIABLE}=".encode()
_PARTS = 8
"""More than a tag of ours has."""

AVAILABLE = os.path.exists("/proc/self/stat")

_LOOKS = 50
_LOOK_AGAIN_S = 0.001
"""A process in the middle of `exec` has no environment for a moment, mostly far less than a millisecond."""

_PIECE = 65536
"""More than the environment of nearly every process: one read for each, as all processes are looked at."""

_PIDS_PER_S = 100_000 * (os.cpu_count() or 64)
"""No machine gives out pids faster: to make a thread and end it takes a processor about 10 microseconds."""


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


def tagged(*tags: str, leader: int = 0) -> set[Process]:
    """The living processes of this user whose tag is one of `tags` or begins with one of them and a slash.

    Whole parts are compared, and no run id has a slash: looking for run `a1` never finds run `a10` or `a1.b`.

    An empty answer is a proof, up to `exec`: the table is listed again until nothing new is in it, so a process that
    was missed must have been born after the last listing, by a parent that was alive then and would have been found.
    `leader` is the first process of these tags, not yet reaped: nothing that is older need be looked at.
    """
    if not all(tags):
        raise ValueError("an empty tag would cover every process that Covey ever started")
    wanted = frozenset(tag.encode() for tag in tags)
    found: set[Process] = set()
    settled: set[int] = {os.getpid()}
    since, oldest = start_time(leader), _oldest(leader)
    for _ in range(_LOOKS):
        new = {pid for pid in _pids() if pid >= oldest} - settled
        if not new:
            break
        starting = {pid for pid in new if _look(pid, wanted, found) and _may_be_starting(pid, since)}
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


def children_of(parents: Set[Process], among: Set[Process]) -> set[Process]:
    """Those of `among` whose parent is one of `parents`, and alive."""
    pids = {process.pid for process in parents}
    statuses = {process: _status(process.pid) for process in among}
    return {process for process, status in statuses.items() if status and status.parent in pids}


def send(processes: Iterable[Process], number: signal.Signals) -> None:
    """Signal each of them that is still the process it was when it was found."""
    # The oldest first: a shell that outlives its children for a moment would report their end in the output.
    for process in sorted(processes, key=lambda process: (process.start, process.pid)):
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


def _oldest(leader: int) -> int:
    """No process that began after the leader has a lower pid than this.

    Pids rise until they reach a maximum and then start again at the bottom. Unless that may have happened since, those
    below the leader's are older: a quick command costs a look at the few processes younger than itself.
    """
    start = start_time(leader)
    if not start:
        return 0
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - start / os.sysconf("SC_CLK_TCK")
    with open("/proc/sys/kernel/pid_max") as file:
        maximum = int(file.read())
    return leader if age_s >= 0 and leader + age_s * _PIDS_PER_S < maximum else 0


def _look(pid: int, wanted: Set[bytes], found: set[Process]) -> bool:
    """Add the process to `found` if it carries a wanted tag. True: it has no environment to look at."""
    environment = _read(pid, "environ")
    # All processes come by here, so what nearly none of them has is asked first.
    if environment and _MARK in environment and _carries(environment, wanted) and _is_own(pid):
        found.add(Process(pid, start_time(pid)))
    return environment == b""


def _carries(environment: bytes, wanted: Set[bytes]) -> bool:
    entries = (entry for entry in environment.split(b"\0") if entry.startswith(_MARK))
    return any(not wanted.isdisjoint(_beginnings(entry.removeprefix(_MARK))) for entry in entries)


def _beginnings(tag: bytes) -> set[bytes]:
    """The tag and what stands before each of its slashes, or of the first few: it may be somebody else's long text."""
    parts = tag.split(b"/", _PARTS)[:_PARTS]
    return {tag, *(b"/".join(parts[:count]) for count in range(1, len(parts) + 1))}


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
