"""The memory of this process, which holds keys: closed to the other processes of the same user."""

from __future__ import annotations

import ctypes
import sys

_PR_SET_DUMPABLE = 4


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
