"""What people have decided about a workspace, for whoever owns it next: who heard it may be gone by then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec
from msgspec import structs

from covey.config.schema import AllowRule
from covey.engine.ownership import Ownership
from covey.permissions.reach import Reach


class Kept(msgspec.Struct, frozen=True):
    """With the row of the workspace in a store that several servers share."""

    yolo: bool = False
    """Nothing is asked about, until the workspace is released."""
    allow: tuple[str | AllowRule, ...] = ()
    """What is always allowed here: one server writes it into its user's file, which others do not read."""


class Keeping:
    """What is kept of one workspace. On one server nothing is: files and memory are enough."""

    def __init__(self, workspace_id: str, fence: int, ownership: Ownership, *, yolo: bool) -> None:
        self._workspace_id = workspace_id
        self._fence = fence
        self._ownership = ownership
        self._kept = Kept(yolo=yolo)

    @property
    def is_used(self) -> bool:
        return self._ownership.is_shared

    @property
    def yolo(self) -> bool:
        return self._kept.yolo

    @property
    def allow(self) -> tuple[str | AllowRule, ...]:
        return self._kept.allow

    async def read(self, *, yolo: bool | None) -> None:
        """Know what was kept. `yolo`: what whoever opens it says; None: nobody does, so it stays as it was."""
        if self.is_used:
            found = msgspec.json.decode(await self._ownership.kept(self._workspace_id), type=Kept)
            self._kept = found
            if yolo is not None:
                await self.set_yolo(yolo)

    async def set_yolo(self, yolo: bool) -> None:
        await self._keep(structs.replace(self._kept, yolo=yolo))

    async def add(self, rules: Sequence[str], reach: Reach) -> None:
        """Allow this from now on."""
        entries = [_entry(rule, reach) for rule in rules]
        new = [entry for entry in entries if entry not in self._kept.allow]
        await self._keep(structs.replace(self._kept, allow=(*self._kept.allow, *new)))

    async def _keep(self, kept: Kept) -> None:
        if self.is_used and kept != self._kept:
            await self._ownership.keep(self._workspace_id, self._fence, msgspec.json.encode(kept))
        self._kept = kept


def _entry(rule: str, reach: Reach) -> str | AllowRule:
    match reach:
        case Reach.WORKSPACE:
            return rule
        case Reach.NETWORK:
            return AllowRule(rule=rule, network=True)
        case Reach.EVERYTHING:
            return AllowRule(rule=rule, sandbox="off")
        case _:
            assert_never(reach)
