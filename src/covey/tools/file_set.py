"""Changing several files as one: all of them, or none. A patch and a rename do so. Blocks: call it in a thread."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covey.tools.base import FileVersion, ToolFailed
from covey.tools.diffs import Diff, unified
from covey.tools.excerpt import around
from covey.tools.files import FileReads, printable, replace, version_of


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What will be done to one path."""

    path: Path
    name: str
    before: bytes | None
    after: bytes | None
    """None: there is no such file, or there will not be one."""
    diff: Diff
    mode: int | None = None
    """For a file that takes the place of another: that one's."""


def planned(path: Path, name: str, before: bytes | None, after: bytes | None) -> PlannedChange:
    texts = [(content or b"").decode("utf-8", "replace") for content in (before, after)]
    return PlannedChange(path, name, before, after, unified(texts[0], texts[1], name))


def write_all(changes: Sequence[PlannedChange], reads: FileReads, session_id: str) -> tuple[FileVersion, ...]:
    """All of them; if one fails, those before it are put back. What is deleted goes last: nothing can fail then.

    Hold `reads.changing` from where the changes were planned until this has returned.
    """
    done: list[PlannedChange] = []
    files: list[FileVersion] = []
    try:
        for change in sorted(changes, key=lambda change: change.after is None):
            files.append(_put(change, reads, session_id))
            done.append(change)
    except (ToolFailed, OSError) as error:
        for change in reversed(done):
            with suppress(ToolFailed, OSError):
                _put_back(change)
        raise ToolFailed(f"{error} Nothing was changed.") from None
    return tuple(files)


def _put(change: PlannedChange, reads: FileReads, session_id: str) -> FileVersion:
    if change.after is not None:
        stamp = replace(change.path, change.after, change.name)
        if change.mode is not None:
            os.chmod(change.path, change.mode)
        if change.before is None or reads.has_seen(session_id, change.path):
            # What it has not seen it does not know now either: it has to view it before it can overwrite it.
            reads.record(session_id, change.path, stamp)
        return version_of(change.path, change.before, change.after)
    mode = stat.S_IMODE(os.stat(change.path).st_mode)
    try:
        change.path.unlink()
    except OSError as error:
        raise ToolFailed(f"{change.name} cannot be deleted: {error.strerror}.") from None
    return FileVersion(change.path, change.before, None, mode)


def _put_back(change: PlannedChange) -> None:
    if change.before is not None:
        replace(change.path, change.before, change.name)
    else:
        change.path.unlink(missing_ok=True)


def shown(changes: Sequence[PlannedChange]) -> dict[str, Any]:
    """For screens: as if it were one file, and what there is of each."""
    files = [
        {"file_path": printable(str(c.path)), "additions": c.diff.additions, "removals": c.diff.removals}
        for c in changes
    ]
    return {
        "file_path": files[0]["file_path"],
        "diff": "".join(change.diff.text for change in changes),
        "additions": sum(change.diff.additions for change in changes),
        "removals": sum(change.diff.removals for change in changes),
        "files": files,
    }


def summary(change: PlannedChange) -> str:
    """A line for the model, with the text around what was changed."""
    if change.after is None:
        return f"- deleted {change.name}"
    if change.before is None:
        return f"- added {change.name}"
    around_it = around(change.after.decode("utf-8", "replace"), change.diff.spans)
    return f"- updated {change.name}. Now there is:\n{around_it}"
