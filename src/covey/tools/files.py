"""What the file tools share: which files a session has seen, opening them safely, replacing them in one step.

Paths come from a model, and through links from whoever wrote the workspace's content. Only regular files are opened:
a FIFO would wait for a writer, a device may do something when it is opened, and `/proc` would show the server itself.
Everything here blocks, so it is called in a thread.
"""

from __future__ import annotations

import difflib
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO, NamedTuple

import msgspec

from covey.machine import regular
from covey.machine.regular import NotRegular
from covey.machine.replace import replace_file
from covey.tools.base import FileVersion, ToolContext, ToolFailed, is_inside

SIZE_LIMIT = 5 * 1024 * 1024
"""Bytes of a file that is changed: it is held in memory several times, and source files are far smaller."""

_SEEN_LIMIT = 10_000
"""Files remembered for each workspace. Forgetting the oldest costs a model one more view."""
_ENTRIES_LIMIT = 2_000
"""Directory entries looked at for the sake of a better error message."""
_PSEUDO = (Path("/proc"), Path("/sys"))


class FileParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the parameters of all file tools begin with."""

    file_path: Annotated[str, msgspec.Meta(description="Path of the file, absolute or relative to the workspace root.")]


class FileStamp(NamedTuple):
    """A state of a file's content, as far as its directory entry tells."""

    mtime_ns: int
    size: int


class FileReads:
    """Which version of which file each session of a workspace has seen: nothing is overwritten unseen.

    `changing` is held while a file is read, changed and replaced, so that two calls of one step never lose an edit.
    """

    def __init__(self) -> None:
        self.changing = threading.RLock()
        self._seen: dict[tuple[str, Path], FileStamp] = {}
        self._recalled: set[str] = set()

    def needs_recall(self, session_id: str) -> bool:
        """Whether what the session saw before this workspace was opened has yet to be recalled; True only once."""
        needed = session_id not in self._recalled
        self._recalled.add(session_id)
        return needed

    def recall(self, session_id: str, seen: Iterable[tuple[Path, FileStamp]]) -> None:
        """Take up what the session had seen before, the oldest first. What it has seen since counts more."""
        with self.changing:
            for path, version in dict(seen).items():
                self._seen.setdefault((session_id, path), version)

    def record(self, session_id: str, path: Path, version: FileStamp) -> None:
        with self.changing:
            self._seen.pop((session_id, path), None)
            self._seen[session_id, path] = version
            if len(self._seen) > _SEEN_LIMIT:
                del self._seen[next(iter(self._seen))]

    def latest(self, session_id: str, path: Path) -> FileStamp | None:
        """The version that the session has seen last."""
        return self._seen.get((session_id, path))

    def has_seen(self, session_id: str, path: Path) -> bool:
        return (session_id, path) in self._seen

    def check(self, session_id: str, path: Path, version: FileStamp, name: str) -> None:
        """Raise ToolFailed unless the session has seen this very version of the file."""
        seen = self._seen.get((session_id, path))
        if seen is None:
            raise ToolFailed(f"{name} exists, and you have not viewed it in this session. View it first.")
        if seen != version:
            raise ToolFailed(f"{name} has changed since you last viewed it. View it again, then decide.")


def name_for(context: ToolContext, path: Path) -> str:
    """How to call a file: by its path from the root of the workspace, or in full with a warning."""
    if is_inside(context, path):
        return printable(str(path.relative_to(context.root)))
    return printable(f"{path} (outside the workspace)")


def may_look(context: ToolContext, path: Path) -> bool:
    """Whether nobody need be asked before it is read: the workspace, and what was spilled of this session's results."""
    if is_inside(context, path):
        return True
    return context.spill_dir is not None and path.is_relative_to(context.spill_dir.resolve())


def printable(text: str) -> str:
    """Text that can be sent: names and contents that are no UTF-8 hold half characters, which no JSON can."""
    return text.encode("utf-8", "replace").decode()


def exists(path: Path, name: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise ToolFailed(f"{name} cannot be read: {error.strerror}.") from None
    return True


@contextmanager
def open_regular(path: Path, name: str) -> Iterator[tuple[BinaryIO, FileStamp]]:
    """Open a regular file to read. Raises ToolFailed, with what helps, for anything else."""
    if any(path.is_relative_to(pseudo) for pseudo in _PSEUDO):
        raise ToolFailed(f"{name} is not a file on a disk. If you need it, ask for it with bash.")
    try:
        regular.check_regular(os.stat(path))  # through a link: what is wrong with where it leads is reported
        with regular.open_regular(path, look_first=False) as (file, status):
            yield file, FileStamp(status.st_mtime_ns, status.st_size)
    except NotRegular as error:
        raise ToolFailed(_what_it_is(error, path, name)) from None
    except (FileNotFoundError, NotADirectoryError):
        raise ToolFailed(f"{name} does not exist.{_suggestion(path)}") from None
    except OSError as error:
        raise ToolFailed(f"{name} cannot be read: {error.strerror}.") from None


def read_for_change(path: Path, name: str) -> tuple[bytes, FileStamp]:
    with open_regular(path, name) as (file, version):
        content = file.read(SIZE_LIMIT + 1)
    if len(content) > SIZE_LIMIT:
        raise ToolFailed(f"{name} is larger than {SIZE_LIMIT // 1024 // 1024} MB: too large for this tool. Use bash.")
    return content, version


def replace(path: Path, content: bytes, name: str) -> FileStamp:
    """Put a new content in the place of the old in one step, keeping mode and owner; makes missing directories."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        status = replace_file(path, content)
    except OSError as error:
        raise ToolFailed(f"{name} cannot be written: {error.strerror}.") from None
    return FileStamp(status.st_mtime_ns, status.st_size)


def version_of(path: Path, before: bytes | None, after: bytes) -> FileVersion:
    """What undo needs of a file that was just changed, or made. Its mode is still that of before."""
    mode = 0
    if before is not None:
        with suppress(OSError):
            mode = stat.S_IMODE(os.stat(path).st_mode)
    return FileVersion(path, before, after, mode)


def _what_it_is(found: NotRegular, path: Path, name: str) -> str:
    if not found.is_directory:
        return f"{name} is not a regular file."
    entries = sorted(_entries(path))
    listing = "".join(f"\n  {entry}" for entry in entries[:50]) + ("\n  ..." if len(entries) > 50 else "")
    return f"{name} is a directory." + (f" It contains:{listing}" if listing else " It is empty.")


def _suggestion(path: Path) -> str:
    parent = path.parent
    if not parent.is_dir():
        return printable(f" There is no directory {parent} either.")
    near = difflib.get_close_matches(path.name, _entries(parent), n=3)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def _entries(directory: Path) -> list[str]:
    with suppress(OSError), os.scandir(directory) as found:
        return [printable(entry.name) + "/" * entry.is_dir() for entry in islice(found, _ENTRIES_LIMIT)]
    return []
