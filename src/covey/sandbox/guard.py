"""Puts back what a command must not have changed, where nothing could keep it from doing so.

Rules of Landlock hold for whole trees, so a file in a tree that may be written cannot be kept from writing; and over
what does not exist nothing can be mounted. Such paths are looked at before the command and after it. Nothing is
deleted: what should not be there is renamed. It blocks, for as long as it takes to read some small files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from covey.machine.regular import read_regular
from covey.machine.replace import replace_file

_MAX_BYTES = 1024 * 1024
"""Of a file that is remembered: more than any configuration or hook has."""
_MAX_ENTRIES = 100
"""Of a directory that is remembered."""

_SUFFIX = ".set-aside"


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    mode: int


@dataclass(frozen=True, slots=True)
class _Other:
    """A link, or what is too large to be remembered: only a change of it is noticed."""

    signature: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Directory:
    entries: dict[str, _Entry]


_Entry = _File | _Other | _Directory | None


class Guard:
    """Paths as they were. `restore` may be called once, when all processes of the command have ended."""

    def __init__(self, paths: Iterable[str], *, only_missing: bool = False) -> None:
        """`only_missing`: what exists cannot be changed, so that only the others are looked at."""
        looked_at = (path for path in paths if not only_missing or not os.path.lexists(path))
        self._before = {path: _look(path) for path in looked_at}

    def restore(self) -> tuple[str, ...]:
        """Put back what has changed; gives the paths that had."""
        return tuple(path for path, entry in self._before.items() if _restore(path, entry))


def _look(path: str, *, deep: bool = True) -> _Entry:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode) and deep:
        names = sorted(os.listdir(path))
        if len(names) <= _MAX_ENTRIES:
            return _Directory({name: _look(f"{path}/{name}", deep=False) for name in names})
    elif stat.S_ISREG(status.st_mode):
        content = read_regular(path, _MAX_BYTES)
        if content is not None and content.size == len(content.data):
            return _File(content.data, stat.S_IMODE(status.st_mode))
    return _Other((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))


def _restore(path: str, before: _Entry) -> bool:
    above = os.path.dirname(path)
    if os.path.realpath(above) != above:
        return True  # the way there was bent: writing would change something else
    after = _look(path)
    if after == before:
        return False
    with suppress(OSError):
        match before:
            case None:
                _set_aside(path)
            case _File(content, mode):
                _put_back(path, content, mode)
            case _Directory(entries):
                _put_back_directory(path, entries)
            case _Other():
                pass
            case _:
                assert_never(before)
    return True


def _put_back(path: str, content: bytes, mode: int) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        _set_aside(path)
    replace_file(Path(path), content, mode=mode, keep_mode=False)


def _put_back_directory(path: str, entries: dict[str, _Entry]) -> None:
    if os.path.islink(path) or not os.path.isdir(path):
        if os.path.lexists(path):
            _set_aside(path)
        os.mkdir(path)
    for name in {*os.listdir(path), *entries}:
        before = entries.get(name)
        if _look(f"{path}/{name}", deep=False) == before:
            continue
        if isinstance(before, _File):
            _put_back(f"{path}/{name}", before.content, before.mode)
        elif before is None and not name.endswith(_SUFFIX):
            _set_aside(f"{path}/{name}")


def _set_aside(path: str) -> None:
    number = 0
    target = f"{path}{_SUFFIX}"
    while os.path.lexists(target):
        number += 1
        target = f"{path}.{number}{_SUFFIX}"
    os.rename(path, target)
