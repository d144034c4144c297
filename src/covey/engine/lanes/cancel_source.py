"""Who cancels."""

from __future__ import annotations

from typing import NamedTuple

from covey.protocol.runs import CancelledBy


class CancelSource(NamedTuple):
    """How a cancel came about, and which client asked for it, if one did."""

    by: CancelledBy
    client: str | None = None
