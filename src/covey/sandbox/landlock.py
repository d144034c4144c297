"""Landlock: rules about trees of files, TCP, signals and abstract sockets. Used in the launcher, and to probe.

A rule can only allow, and holds for all that is below. What is hidden in a tree is therefore left out one directory
after the other: the directories on the way there are listed, and each other entry gets a rule of its own.
"""

from __future__ import annotations

import os

from covey.sandbox import kernel

TYPE_CHECKING = False  # `typing` and `collections` take longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV, _RESOLVE_UNIX = 1 << 14, 1 << 15, 1 << 16
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV | _RESOLVE_UNIX

READ = _READ_FILE | _READ_DIR
RUN = READ | _EXECUTE
WRITE = (1 << 17) - 1
LIST = _READ_DIR

_TCP = 0b11
_SCOPES = 0b11
_QUIET = 0b1
"""Denials are not written to the system's log: they are answers to a model, not incidents. Since version 7."""

_KNOWN = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16, 6: 16, 7: 16, 8: 16}
"""How many rights there are about files in each version; since version 9 there are 17."""


def version() -> int:
    """The version of Landlock in this kernel; 0: it has none, or it is switched off."""
    try:
        return kernel.call(kernel.LANDLOCK_CREATE_RULESET, 0, 0, 1)
    except OSError:
        return 0


def handled(abi: int) -> int:
    """All rights about files that a kernel of this version can refuse."""
    return (1 << _KNOWN.get(abi, 17)) - 1


def restrict(
    abi: int, rules: Iterable[tuple[int, str]], hidden: Sequence[str], *, tcp: bool, scoped: bool, unix: bool
) -> None:
    """From now on only what these rules allow. `tcp`, `unix`: connections stay possible; `scoped`: own signals only."""
    fs = handled(abi) & ~(_RESOLVE_UNIX if unix else 0)
    attributes = [fs, 0 if tcp or abi < 4 else _TCP, _SCOPES if scoped and abi >= 6 else 0]
    attributes = attributes[: 1 if abi < 4 else 2 if abi < 6 else 3]
    packed = b"".join(value.to_bytes(8, "little") for value in attributes)
    ruleset = kernel.call(kernel.LANDLOCK_CREATE_RULESET, packed, len(packed), 0)
    try:
        for rights, root in rules:
            for allowed, path in _split(rights, root, hidden):
                _add(ruleset, fs & allowed, path)
        kernel.call(kernel.LANDLOCK_RESTRICT_SELF, ruleset, _QUIET if abi >= 7 else 0)
    finally:
        os.close(ruleset)


def _split(rights: int, root: str, hidden: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The rules for a tree without what is hidden in it. Links are left out: they lead to where other rules hold."""
    if root in hidden:
        return
    inside = [path for path in hidden if path.startswith(root.rstrip("/") + "/")]
    if not inside:
        yield rights, root
        return
    yield LIST & rights, root
    for entry in os.scandir(root):
        if not entry.is_symlink():
            yield from _split(rights, entry.path, inside)


def _add(ruleset: int, rights: int, path: str) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(f"/proc/self/fd/{place}"):
            rights &= _OF_FILES
        kernel.call(kernel.LANDLOCK_ADD_RULE, ruleset, 1, rights.to_bytes(8, "little") + place.to_bytes(4, "little"), 0)
    finally:
        os.close(place)
