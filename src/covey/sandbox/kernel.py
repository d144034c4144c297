"""System calls that Python has no function for, by number. Used in the launcher: imports as little as it can."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_prctl = _libc.prctl

CAPGET, CAPSET, MOUNT, UMOUNT, UNSHARE, PIVOT_ROOT = (
    (125, 126, 165, 166, 272, 155) if os.uname().machine == "x86_64" else (90, 91, 40, 39, 97, 41)
)
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_CAP_AMBIENT = 38, 22, 23, 24, 47
_CAPABILITY_VERSION = 0x20080522


def call(number: int, *args: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """The result of a system call. Raises OSError."""
    result = _syscall(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(result)


def prctl(option: int, *args: int | bytes) -> int:
    values = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in args]
    result = _prctl(option, *values, *[ctypes.c_ulong(0)] * (4 - len(values)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(result)


def capabilities() -> int:
    """Those that are in effect, as a set of bits."""
    data = ctypes.create_string_buffer(24)
    call(CAPGET, _capability_header(), data)
    words = [int.from_bytes(data.raw[at : at + 4], "little") for at in (0, 12)]
    return words[0] | words[1] << 32


def keep_capabilities(kept: int) -> None:
    """Give up all others, for good. An ordinary user has none."""
    held = capabilities()
    if held & 1 << 8:  # CAP_SETPCAP
        for number in range(_capabilities_known()):
            if not kept >> number & 1:
                prctl(PR_CAPBSET_DROP, number)
    prctl(PR_CAP_AMBIENT, 4)
    kept &= held
    low, high = ((kept >> shift & 0xFFFFFFFF).to_bytes(4, "little") for shift in (0, 32))
    call(CAPSET, _capability_header(), low + low + bytes(4) + high + high + bytes(4))


def _capabilities_known() -> int:
    """How many this kernel has, by a number that is looked for in halves: each question is a system call."""
    low, high = 0, 64
    while low < high:
        middle = (low + high) // 2
        try:
            prctl(PR_CAPBSET_READ, middle)
            low = middle + 1
        except OSError:
            high = middle
    return low


def _capability_header() -> bytes:
    return _CAPABILITY_VERSION.to_bytes(4, "little") + bytes(4)


def load_filter(program: bytes) -> None:
    """Let a seccomp program judge every system call from now on. Needs `no_new_privs`."""
    code = ctypes.create_string_buffer(program, len(program))
    address = ctypes.addressof(code)
    length = len(program) // 8
    prctl(PR_SET_SECCOMP, 2, length.to_bytes(8, "little") + address.to_bytes(8, "little"))
