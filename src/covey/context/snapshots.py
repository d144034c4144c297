"""Snapshots of a directory, taken around commands, so that what a command changed is known and can be taken back.

git says which files are new or changed, by what it remembers of them: it opens none of the others. It works in a
repository of ours, so no filter, hook or monitor of the project runs. Only what git calls new or changed is read, up to
a bound, and what did not change since the last snapshot is not read again. Where there is no git, the directory is
walked. Nothing is written into the project or its repository. Files that are ignored, and those of repositories inside
of this one, are not seen.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from covey.context.git_index import BadIndex
from covey.context.snapshot import (
    INNER,
    TOO_MANY,
    TOO_MANY_CHANGES,
    TOO_SLOW,
    Blob,
    Comparison,
    LooseFile,
    SeenFile,
    Signature,
    Snapshot,
    SnapshotChange,
    State,
    differing,
    suspects,
)
from covey.context.snapshot_contents import Contents, digest_of
from covey.context.snapshot_git import (
    FILE_BYTES,
    KnownSettings,
    SnapshotPlace,
    find_place,
    list_loose,
    read_blobs,
    tracked,
)
from covey.context.snapshot_walk import walk
from covey.machine.regular import NotRegular, open_regular

CHANGES = 2_000
"""Changes that one comparison gives: more is a checkout, which git can take back better."""
SECONDS = 5.0
"""For one snapshot or comparison. With 50,000 files it takes a fifth of a second."""

_RACY_NS = 50_000_000
"""File systems count time in steps; a file that changed so shortly before may change again without showing it."""


class Snapshots:
    """The snapshots of one directory, and the contents that they keep in a directory of ours."""

    def __init__(self, directory: Path, environ: Mapping[str, str], ignored: Collection[str] = ()) -> None:
        """`directory` is for this alone. `ignored`: names that count as ignored, wherever they are."""
        self._environ = environ
        self._ignored = frozenset(ignored)
        self._contents = Contents(directory)
        self._settings = KnownSettings()
        self._lock = asyncio.Lock()

    async def take(self, root: Path, known: Snapshot | None = None) -> Snapshot:
        """What the files are now. `known` is an earlier snapshot: what did not change since is not read again.

        Contents that neither of the two needs are let go. Raises OSError if contents cannot be written.
        """
        async with self._lock:
            return await asyncio.to_thread(self._take, root, known)

    async def compare(self, before: Snapshot, after: Snapshot) -> Comparison:
        """What is not as it was. `after` is the latest snapshot: a file that git knows by now is read from the disk.

        A file that only has another name is one that is gone and one that is new. Raises OSError as `take` does.
        """
        async with self._lock:
            return await asyncio.to_thread(self._compare, before, after)

    async def content(self, version: SeenFile | None) -> bytes | None:
        """What a regular file held, until the next `take`; None if that is not kept, or there was no file."""
        if version is None or not version.is_kept or version.digest is None:
            return None
        return await asyncio.to_thread(self._contents.read, version.digest)

    async def aclose(self) -> None:
        """Let everything go."""
        async with self._lock:
            await asyncio.to_thread(self._contents.clear)

    # ── taking ──

    def _take(self, root: Path, known: Snapshot | None) -> Snapshot:
        deadline = time.monotonic() + SECONDS
        root = root.resolve()
        self._contents.open()
        place = find_place(root, self._environ, self._settings)
        index, index_id = self._contents.copy_index(place.repository) if place else (None, b"")
        self._contents.let_go(known, index)
        ignored = self._ignored
        listed = list_loose(place, index, ignored, deadline) if place else walk(root, ignored, deadline)
        if listed is None:
            return Snapshot(root, {}, None, b"", upto=b"", missed=TOO_SLOW)
        loose = {path: LooseFile(None) for path in listed.gone}
        upto, missed = listed.upto, TOO_MANY if listed.upto is not None else ""
        reached = b""
        for path in listed.changed:
            if time.monotonic() > deadline:
                upto, missed = reached, TOO_SLOW
                break
            reached = path
            loose[path] = self._look(root, path, known.loose.get(path) if known else None)
        if not missed and (listed.has_inner or (place and (place.top / ".gitmodules").exists())):
            missed = INNER
        return Snapshot(root, loose, index, index_id, upto, missed)

    def _look(self, root: Path, path: bytes, earlier: LooseFile | None = None) -> LooseFile:
        full = os.path.join(os.fsencode(root), path)
        try:
            status = os.lstat(full)
        except OSError:
            return LooseFile(None)
        signature = Signature(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        if earlier and earlier.is_settled and earlier.signature == signature:
            return earlier
        is_settled = time.time_ns() - max(signature.mtime_ns, signature.ctime_ns) > _RACY_NS
        return LooseFile(self._read(full, status), signature, is_settled)

    def _read(self, path: bytes, status: os.stat_result) -> SeenFile:
        mode, permissions = _canonical(status.st_mode), stat.S_IMODE(status.st_mode)
        unread = SeenFile(mode, None, status.st_size, is_kept=False, permissions=permissions)
        if stat.S_ISLNK(mode):
            try:
                return SeenFile(mode, digest_of(os.readlink(path)), status.st_size, is_kept=False)
            except OSError:
                return unread
        if not stat.S_ISREG(mode) or status.st_size > FILE_BYTES:
            return unread
        try:
            with open_regular(os.fsdecode(path), look_first=False) as (file, _):
                content = file.read(FILE_BYTES + 1)
        except (NotRegular, OSError):
            return unread
        return self._contents.keep(mode, content, permissions) if len(content) <= FILE_BYTES else unread

    # ── comparing ──

    def _compare(self, before: Snapshot, after: Snapshot) -> Comparison:
        deadline = time.monotonic() + SECONDS
        missed = before.missed or after.missed
        paths = suspects(before, after)
        place = find_place(after.root, self._environ, self._settings)
        if not paths and before.index_id == after.index_id:
            return Comparison((), missed)
        try:
            found = _differing(place, before, after, paths)
        except (BadIndex, OSError):
            return Comparison((), missed=TOO_SLOW)
        chosen = found[:CHANGES]
        had = self._had(place, before, {path: one for path, one, _ in chosen if isinstance(one, Blob)}, deadline)
        changes = []
        for path, one, two in chosen:
            was = had[path] if isinstance(one, Blob) else _version(one)
            now = _version(self._look(after.root, path) if isinstance(two, Blob) else two)
            if was != now or (was is not None and was.digest is None):
                full = os.path.join(os.fsencode(after.root), path)
                changes.append(SnapshotChange(os.fsdecode(full), was, now))
        return Comparison(tuple(changes), missed or (TOO_MANY_CHANGES if len(found) > CHANGES else ""))

    def _had(
        self, place: SnapshotPlace | None, before: Snapshot, blobs: Mapping[bytes, Blob], deadline: float
    ) -> dict[bytes, SeenFile]:
        """Files that were as git knows them. Their content is had from git, unless git converts it."""
        contents = read_blobs(place, before.index, blobs, deadline) if place else {}
        had = {}
        for path, blob in blobs.items():
            content = contents.get(path)
            if content is None:
                had[path] = SeenFile(blob.mode, None, blob.size, is_kept=False)
            elif stat.S_ISLNK(blob.mode):
                had[path] = SeenFile(_canonical(blob.mode), digest_of(content), blob.size, is_kept=False)
            else:
                permissions = self._contents.permissions & blob.mode
                had[path] = self._contents.keep(blob.mode, content, permissions)
        return had


def _differing(
    place: SnapshotPlace | None, before: Snapshot, after: Snapshot, paths: set[bytes]
) -> list[tuple[bytes, State, State]]:
    """As long as git has taken up nothing, only the files that are known to be suspect need to be looked up."""
    if place is None:
        return list(differing(before, after, {}, {}, paths))
    if before.index_id == after.index_id:
        known = tracked(place, before, paths)
        return list(differing(before, after, known, known, paths))
    old, new = tracked(place, before, None), tracked(place, after, None)
    taken_up = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
    return list(differing(before, after, old, new, paths | taken_up))


def _version(state: LooseFile | None) -> SeenFile | None:
    return state.version if state else None


def _canonical(mode: int) -> int:
    """As git has it: of permission bits only counts whether a file may be executed."""
    if stat.S_ISREG(mode):
        return stat.S_IFREG | (0o755 if mode & stat.S_IXUSR else 0o644)
    return stat.S_IFMT(mode)
