"""What turns used: what is written of it, and what is read again."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from covey.protocol.runs import Usage


class AddSpending(msgspec.Struct, frozen=True):
    """A turn has ended: what it used is added to its day. It stays when its session is deleted."""

    day: int
    """Since the beginning of 1970, in UTC."""
    model: str
    """`provider/model`, '' if that is not known."""
    usage: Usage


class SpendingRow(NamedTuple):
    """What the turns of a day used, of one workspace and one model."""

    day: int
    workspace_id: str
    model: str
    runs: int
    usage: Usage
