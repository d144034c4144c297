"""Snapshots around a command, and what a test sees of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from covey.context.snapshot import Snapshot, SnapshotChange
from covey.context.snapshots import Snapshots


class Shown(dict[str, tuple[bytes | None, bytes | None]]):
    """Changes by path from the root: what was in a file, and what is; None: no file, or not kept."""

    is_complete = True


async def around(taking: Snapshots, root: Path, command: Callable[[], object]) -> Shown:
    before = await taking.take(root)
    command()
    after = await taking.take(root, before)
    return await compared(taking, before, after)


async def compared(taking: Snapshots, before: Snapshot, after: Snapshot) -> Shown:
    comparison = await taking.compare(before, after)
    shown = Shown()
    for change in comparison.changes:
        name = os.path.relpath(change.path, after.root)
        shown[name] = (await taking.content(change.before), await taking.content(change.after))
    shown.is_complete = not comparison.missed
    return shown


async def changes_of(taking: Snapshots, root: Path, command: Callable[[], object]) -> dict[str, SnapshotChange]:
    before = await taking.take(root)
    command()
    comparison = await taking.compare(before, await taking.take(root, before))
    return {os.path.relpath(change.path, root): change for change in comparison.changes}
