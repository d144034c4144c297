"""A seccomp program, assembled by hand: which system calls a command cannot make. Pure; the launcher loads it.

It refuses what Landlock does not know: sockets by family, attributes of files, namespaces, keyrings, other ways into
the kernel. It sees numbers only, never what a pointer points to.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from covey.sandbox import syscalls
from covey.sandbox.policy import Kind, Network, Sockets
from covey.sandbox.syscalls import ABSENT, ATTRIBUTES, FOREIGN, NEVER, Pair

Instructions = list[tuple[int, int, int, int]]
"""Code, how far to jump if true and if false, and the operand."""

MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""The kernel's name for each architecture, and its place in the pairs of `syscalls`."""

_EPERM, _EACCES, _ENOSYS, _ENETUNREACH = 1, 13, 38, 101
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32 = 0x40000000

_UNIX, _INET, _INET6, _NETLINK, _DATAGRAM = 1, 2, 10, 16, 2
_NEW_NAMESPACES = 0x7E020080
"""CLONE_NEW*: mounts, cgroup, UTS, IPC, user, PID, network, time."""
_FOR_CLONE = _NEW_NAMESPACES & ~0x80
"""The bit of the time namespace is part of the exit signal there."""
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI, TIOCLINUX: typing in somebody's place."""
_FILE_FLAGS = (0x40086602, 0x401C5820)
"""FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR: attributes of files, by a descriptor that may only be read."""

_TRUNCATES, _TRUNCATES_OR_WRITES = 0x200, 0x203


class _Rule(NamedTuple):
    number: int
    then: Instructions
    """What is done for it; ends with a return."""


@lru_cache(maxsize=64)
def program(machine: str, kind: Kind, network: Network, sockets: Sockets, landlock: int) -> bytes:
    """The filter, as the kernel takes it. LOOPBACK is as ALLOWED: whoever has no loopback of its own asks for NONE.

    `landlock` is its version: before 3, files can be emptied without writing to them. KeyError: a machine that is not
    known.
    """
    name, column = MACHINES[machine]
    rules: dict[int, Instructions] = {}

    def add(numbers: Pair, then: Instructions) -> None:
        number = numbers[column]
        if number is not None:
            rules[number] = then

    refused = {**NEVER, **({**FOREIGN, **ATTRIBUTES} if kind is Kind.UNASKED else {})}
    for numbers in refused.values():
        add(numbers, _refuse(_EPERM))
    for numbers in ABSENT.values():
        add(numbers, _refuse(_ENOSYS))
    add(syscalls.CLONE, _if_any_bit(0, _FOR_CLONE))
    add(syscalls.UNSHARE, _if_any_bit(0, _NEW_NAMESPACES))
    add(syscalls.IOCTL, _if_equal(1, (*_TERMINAL_INPUT, *(_FILE_FLAGS if kind is Kind.UNASKED else ())), _EPERM))
    add(syscalls.SOCKET, _socket(network, sockets))
    if sockets is Sockets.NONE:
        # A pair that sends single messages could also send them to somebody with a name.
        add(syscalls.SOCKETPAIR, [_load(1), (_AND, 0, 0, 0xF), (_EQUAL, 0, 1, _DATAGRAM), *_refuse(_EACCES), *_allow()])
    if landlock < 3:
        add(syscalls.TRUNCATE, _refuse(_EPERM))
        add(syscalls.OPENAT2, _refuse(_ENOSYS))
        add(syscalls.OPEN, _empties(1))
        add(syscalls.OPENAT, _empties(2))
    ordered = [_Rule(number, then) for number, then in sorted(rules.items())]
    return _packed([*_prologue(name, machine), *_tree(ordered)])


def _socket(network: Network, sockets: Sockets) -> Instructions:
    """Only families that are known, so that those which come later are refused too."""
    code = [_load(0)]
    if sockets is not Sockets.NONE:
        code += [(_EQUAL, 0, 1, _UNIX), *_allow()]
    internet = _refuse(_ENETUNREACH) if network is Network.NONE else _allow()
    for family in (_INET, _INET6):
        code += [(_EQUAL, 0, 1, family), *internet]
    if network is not Network.NONE:  # which addresses there are: routes are its protocol 0
        code += [(_EQUAL, 0, 3, _NETLINK), _load(2), (_EQUAL, 0, 1, 0), *_allow()]
    return [*code, *_refuse(_EACCES)]


def _empties(argument: int) -> Instructions:
    """Flags that empty a file which is opened to be read."""
    matches = (_EQUAL, 0, 1, _TRUNCATES)
    return [_load(argument), (_AND, 0, 0, _TRUNCATES_OR_WRITES), matches, *_refuse(_EACCES), *_allow()]


def _if_any_bit(argument: int, bits: int) -> Instructions:
    return [_load(argument), (_ANY_BIT, 0, 1, bits), *_refuse(_EPERM), *_allow()]


def _if_equal(argument: int, values: Sequence[int], error: int) -> Instructions:
    code = [_load(argument)]
    for value in values:
        code += [(_EQUAL, 0, 1, value), *_refuse(error)]
    return [*code, *_allow()]


def _load(argument: int) -> tuple[int, int, int, int]:
    """The lower half of an argument: all that the kernel looks at for these."""
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument)


def _refuse(error: int) -> Instructions:
    return [(_RETURN, 0, 0, _ERRNO | error)]


def _allow() -> Instructions:
    return [(_RETURN, 0, 0, _ALLOW)]


def _prologue(name: int, machine: str) -> Instructions:
    """Calls in the manner of another architecture have other numbers: whoever makes one is ended."""
    code: Instructions = [(_LOAD, 0, 0, _MACHINE_AT), (_EQUAL, 1, 0, name), (_RETURN, 0, 0, _KILL)]
    code.append((_LOAD, 0, 0, _NUMBER_AT))
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32), *_refuse(_ENOSYS)]
    return code


def _tree(rules: Sequence[_Rule]) -> Instructions:
    """A search by halves: every call passes here, and the kernel tries each number when the program is loaded."""
    if len(rules) == 1:
        [rule] = rules
        return [(_EQUAL, 0, len(rule.then), rule.number), *rule.then, *_allow()]
    middle = len(rules) // 2
    below, above = _tree(rules[:middle]), _tree(rules[middle:])
    if len(below) <= 255:
        return [(_AT_LEAST, len(below), 0, rules[middle].number), *below, *above]
    raise ValueError("too many rules for one jump")


def _packed(code: Instructions) -> bytes:
    return b"".join(
        operation.to_bytes(2, "little") + bytes((if_true, if_false)) + operand.to_bytes(4, "little")
        for operation, if_true, if_false, operand in code
    )
