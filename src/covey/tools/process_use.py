"""How much memory and time processes use, with all that descends from them. Reads `/proc`; blocks."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress

_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / (1024 * 1024)
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def used_by(pids: Iterable[int]) -> dict[int, tuple[float, float]]:
    """For each process that is alive: megabytes of memory and seconds of CPU time, of its whole family."""
    children, table = defaultdict(list), {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit() and (found := _look(int(name))):
            parent, memory_mb, cpu_s = found
            children[parent].append(int(name))
            table[int(name)] = (memory_mb, cpu_s)
    used = {}
    for pid in pids:
        family, unvisited = [], [pid] if pid in table else []
        while unvisited:
            member = unvisited.pop()
            family.append(table[member])
            unvisited += children[member]
        if family:
            used[pid] = (sum(memory for memory, _ in family), sum(cpu for _, cpu in family))
    return used


def _look(pid: int) -> tuple[int, float, float] | None:
    """Its parent, its memory and its time; None: it is gone, or another user's."""
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        # The program's name stands in parentheses and may contain anything, parentheses too.
        fields = file.read().rpartition(b")")[2].split()
        user, system, resident = int(fields[11]), int(fields[12]), int(fields[21])
        return int(fields[1]), resident * _PAGE_MB, (user + system) / _TICKS_PER_S
    return None
