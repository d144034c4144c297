"""The memory of this process: closed to other processes of the same user, as it holds keys, and not spread out."""

from __future__ import annotations

import ctypes
import sys

_PR_SET_DUMPABLE = 4
_M_ARENA_MAX = -8


def close_memory() -> bool:
    """Let no other process of this user read our memory or our first environment; False where that is not possible.

    On Linux `/proc/<pid>/environ` and `/proc/<pid>/mem` then belong to root, nobody attaches a debugger, and a crash
    leaves no core file. Programs that we start are as open as always: this ends with `exec`. Root is not kept out.
    """
    if sys.platform != "linux":
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def keep_together() -> bool:
    """Let all threads take memory from one place; False where that is not possible.

    By default glibc gives each thread a place of its own, in which what others have freed is of no use. Python runs one
    thread at a time, so they hardly ever wait for each other. To be called before there is a second thread.
    """
    if sys.platform != "linux":
        return False
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1) == 1)
    except (OSError, AttributeError):  # a C library that has none
        return False
