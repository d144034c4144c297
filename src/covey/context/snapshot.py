"""What the files of a directory are at one moment, as far as it is cheap to say; and how two such moments differ. Pure.

A file that git knows and that did not change since is in the index: its content is an object of the repository, and
nothing is read or kept for it. Others, changed and new ones, are *loose*: they are read, and kept if they are small.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

TOO_MANY = "there are too many new and changed files to look at all of them"
TOO_SLOW = "to look at all files took too long, or git could not be asked"
INNER = "files of repositories inside of this one are not looked at"
TOO_MANY_CHANGES = "more files were changed than are recorded at once"


class Signature(NamedTuple):
    """What a directory says of a file. As long as it is the same, so is the content."""

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file at one moment."""

    mode: int
    """As git has it: a regular file that may be executed or not, or a link."""
    digest: str | None
    """Of its content, or of where a link leads; None: it was too large to be read, or git converts it."""
    size: int
    is_kept: bool
    """Its content can be had."""
    permissions: int = field(default=0, compare=False)
    """All permission bits; those of a new file where only git knew it. Whether they differ does not count."""

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)


@dataclass(frozen=True, slots=True)
class LooseFile:
    """A file that is not as git knows it. No version: git knows it, and it is not there."""

    version: SeenFile | None
    signature: Signature | None = None
    is_settled: bool = False
    """False: it was changed so shortly before that a further change might not show in its signature."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A file that is as git knows it."""

    mode: int
    oid: str
    size: int
    """On the disk."""


State = LooseFile | Blob | None
"""A file as a snapshot knows it; None: there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    root: Path
    loose: Mapping[bytes, LooseFile]
    """By path from the root."""
    index: Path | None
    """A copy of git's index; None: there is none."""
    index_id: bytes
    """Two copies with the same are the same."""
    upto: bytes | None
    """If there were too many loose files: up to which path they were looked at. None: all were."""
    missed: str = ""
    """Why not all files were looked at, in words; empty: all were."""


class Listed(NamedTuple):
    """Paths of loose files, in order."""

    changed: list[bytes]
    gone: list[bytes]
    upto: bytes | None
    """Up to which path all of them are known; None: all are."""
    has_inner: bool
    """There is another repository inside, into which git does not look."""


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """A file that is not what it was. None: there was, or is, no file."""

    path: str
    """Absolute, as `os.fsdecode` gives it."""
    before: SeenFile | None
    after: SeenFile | None


@dataclass(frozen=True, slots=True)
class Comparison:
    changes: tuple[SnapshotChange, ...]
    """In the order of their paths."""
    missed: str = ""
    """Why there may be more changes, in words; empty: these are all."""


def suspects(before: Snapshot, after: Snapshot) -> set[bytes]:
    """Paths of loose files that may have changed, as far as the two know without a look into the indexes."""
    seen = before.loose.keys() | after.loose.keys()
    return {path for path in seen if _in_reach(path, before, after) and _may_differ(before, after, path)}


def _in_reach(path: bytes, *snapshots: Snapshot) -> bool:
    """Where one was cut short, it does not know whether there is a loose file."""
    return all(snapshot.upto is None or path <= snapshot.upto for snapshot in snapshots)


def _may_differ(before: Snapshot, after: Snapshot, path: bytes) -> bool:
    one, two = before.loose.get(path), after.loose.get(path)
    if one is None or two is None:
        return True  # it became loose, or is no more: the index says what it was
    return one.version != two.version or _changed_unseen(one, two)


def _changed_unseen(one: LooseFile, two: LooseFile) -> bool:
    """A file that is too large to be read is known by its signature alone."""
    return one.version is not None and one.version.digest is None and one.signature != two.signature


def differing(
    before: Snapshot,
    after: Snapshot,
    index_before: Mapping[bytes, Blob],
    index_after: Mapping[bytes, Blob],
    paths: set[bytes],
) -> Iterator[tuple[bytes, State, State]]:
    """Files among these that are not what they were, in order. Contents of git are compared by their ids."""
    for path in sorted(path for path in paths if _in_reach(path, before, after)):
        one = before.loose.get(path, index_before.get(path))
        two = after.loose.get(path, index_after.get(path))
        if _is_absent(one) and _is_absent(two):
            continue
        if isinstance(one, Blob) and isinstance(two, Blob) and (one.mode, one.oid) == (two.mode, two.oid):
            continue
        yield path, one, two


def _is_absent(state: State) -> bool:
    return state is None or (isinstance(state, LooseFile) and state.version is None)
