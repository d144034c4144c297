"""Finds out what commands change in the files of one workspace, by snapshots before and after each of them.

The snapshots cut the time into intervals, and each open *watch* gets what changed in the intervals that it saw. Where
only one command was at work, the change is its own. Where several were, or only jobs, which run while people work too,
it is listed for each of them as unsure, and an undo leaves it alone. What file tools and undos change is never taken
for a command's.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from covey.context.snapshot import TOO_SLOW, Comparison, SeenFile, Snapshot, SnapshotChange
from covey.context.snapshots import Snapshots
from covey.protocol.changes import MadeBy, Origin
from covey.tools.base import FileVersion
from covey.tools.threads import to_the_end

log = logging.getLogger(__name__)

CONTENT_BYTES = 32 * 1024 * 1024
"""Of the contents that are recorded for one command; files after that are listed, and not restorable."""
REST_S = 300.0
"""After a snapshot that took too long, none is taken for so long: a directory too large today is so in a minute."""
LABEL_CHARS = 200


@dataclass(slots=True, eq=False)
class Watch:
    """One command, while it runs."""

    session_id: str
    made_by: MadeBy
    label: str
    found: dict[str, FileVersion] = field(default_factory=dict)
    """By path: from how the file was before to how it is by now."""
    missed: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a command has changed, as far as it is known."""

    files: tuple[FileVersion, ...] = ()
    missed: str = ""
    """Why there may be more; empty: that is all."""
    made_by: MadeBy = "tool"
    label: str = ""
    """Of the command that was watched."""


class CommandChanges:
    """The watches of one workspace."""

    def __init__(self, root: Path, snapshots: Snapshots) -> None:
        self.root = root
        self._snapshots = snapshots
        self._lock = asyncio.Lock()
        self._watches: list[Watch] = []
        self._last: Snapshot | None = None
        self._rests_until = 0.0
        self._touched: set[str] = set()
        """Paths that others than commands have changed since the last snapshot."""
        self._touching: Counter[str] = Counter()

    # ── commands ──

    async def begin(self, session_id: str, made_by: MadeBy, command: str) -> Watch:
        """A command is about to start; `end` must follow. If whoever waits is cancelled, nothing is watched."""
        watch = Watch(session_id, made_by, " ".join(command.split())[:LABEL_CHARS])
        try:
            await to_the_end(self._begin(watch))
        except BaseException:
            self.drop(watch)
            raise
        return watch

    async def _begin(self, watch: Watch) -> None:
        async with self._lock:
            await self._cut()
            self._watches.append(watch)

    async def end(self, watch: Watch, follow: Watch | None = None) -> Changes:
        """It has ended, or need not be watched any more. `follow`: the job that it has started and left running.

        If whoever waits is cancelled, the watch is ended all the same, and `so_far` has what was found.
        """
        await to_the_end(self._end(watch, follow))
        return so_far(watch)

    async def _end(self, watch: Watch, follow: Watch | None) -> None:
        async with self._lock:
            await self._cut()
            self.drop(watch)
            if follow:
                self._watches.append(follow)

    def is_open(self, watch: Watch) -> bool:
        return watch in self._watches

    def drop(self, watch: Watch) -> None:
        """Watch it no more."""
        if watch in self._watches:
            self._watches.remove(watch)

    @contextmanager
    def touching(self, paths: Iterable[str]) -> Iterator[None]:
        """While these files are changed by others than commands, who record it themselves."""
        mine = list(paths)
        self._touching.update(mine)
        self._touched.update(mine)
        try:
            yield
        finally:
            self._touched.update(mine)
            self._touching.subtract(mine)
            self._touching += Counter()

    async def aclose(self) -> None:
        async with self._lock:
            self._last = None
            await self._snapshots.aclose()

    # ── intervals ──

    async def _cut(self) -> None:
        """End one interval and begin the next: every open watch gets what was changed in between."""
        watches, before = tuple(self._watches), self._last
        try:
            self._last = await self._take(before)
            comparison = await self._compared(before) if watches else Comparison(())
            await self._share(comparison, watches)
        except OSError as error:
            log.warning("what commands change in %s cannot be found out: %s", self.root, error)
            self._last = None
            await self._share(Comparison((), TOO_SLOW), watches)
        self._touched = {path for path, count in self._touching.items() if count}

    async def _take(self, before: Snapshot | None) -> Snapshot | None:
        if time.monotonic() < self._rests_until:
            return None
        taken = await self._snapshots.take(self.root, before)
        if taken.missed == TOO_SLOW:
            self._rests_until = time.monotonic() + REST_S
            return None
        return taken

    async def _compared(self, before: Snapshot | None) -> Comparison:
        if before is None or self._last is None:
            return Comparison((), TOO_SLOW)
        return await self._snapshots.compare(before, self._last)

    async def _share(self, comparison: Comparison, watches: tuple[Watch, ...]) -> None:
        commands = [watch for watch in watches if watch.made_by != "job"]
        is_sure = len(commands) == 1 and len({watch.session_id for watch in watches}) == 1
        versions = await self._versions(comparison.changes) if watches else []
        for watch in commands or watches:
            watch.missed = watch.missed or comparison.missed
            for version in versions:
                _add(watch, version, is_sure=is_sure)

    async def _versions(self, changes: Iterable[SnapshotChange]) -> list[FileVersion]:
        left = CONTENT_BYTES
        versions = []
        for change in changes:
            if change.path in self._touched or change.path in self._touching:
                continue
            before = await self._content(change.before, left)
            left -= len(before or b"")
            after = await self._content(change.after, left)
            left -= len(after or b"")
            versions.append(_version(change, before, after))
        return versions

    async def _content(self, version: SeenFile | None, left: int) -> bytes | None:
        return await self._snapshots.content(version) if version and version.size <= left else None


def so_far(watch: Watch) -> Changes:
    changed = tuple(version for version in watch.found.values() if _is_change(version))
    return Changes(changed, watch.missed, watch.made_by, watch.label)


def _version(change: SnapshotChange, before: bytes | None, after: bytes | None) -> FileVersion:
    return FileVersion(
        Path(change.path),
        before,
        after,
        mode=change.before.permissions if change.before else 0,
        before_mark=_mark(change.before, before, "before"),
        after_mark=_mark(change.after, after, "after"),
        origin=Origin(mode_after=change.after.permissions if change.after else 0),
    )


def _mark(version: SeenFile | None, content: bytes | None, which: str) -> str:
    """What a content is known by that is not given. What was not read is like no other content."""
    if version is None or content is not None:
        return ""
    if version.is_link:
        return f"link:{version.digest or which}"
    return version.digest or f"unread:{which}:{version.size}"


def _add(watch: Watch, version: FileVersion, *, is_sure: bool) -> None:
    """What a file was before the first of several changes stays; what it is now is that of the last."""
    path = os.fspath(version.path)
    known = watch.found.get(path)
    if known:
        version = replace(version, before=known.before, before_mark=known.before_mark, mode=known.mode)
        is_sure = is_sure and known.origin.is_sure
    origin = Origin(watch.made_by, watch.label, version.origin.mode_after, is_sure)
    watch.found[path] = replace(version, origin=origin)


def _is_change(version: FileVersion) -> bool:
    same = (version.before, version.before_mark) == (version.after, version.after_mark)
    return not same or bool((version.mode ^ version.origin.mode_after) & 0o100)
