"""Which queued runs are parked, by which client and until when (R7). Deadlines are values: the shell sleeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

PARK_S = 300.0
"""Nobody edits a prompt for longer; whoever does parks it again."""


@dataclass(frozen=True, slots=True)
class Parked:
    run_id: str
    client_id: str
    """Who edits it; '' if it did not say, and then only time ends it."""
    until: float


@dataclass(frozen=True, slots=True)
class Parking:
    """All parked runs of one workspace."""

    parked: tuple[Parked, ...] = ()

    def park(self, run_id: str, client_id: str, now: float) -> Parking:
        return Parking((*self.unpark(run_id).parked, Parked(run_id, client_id, now + PARK_S)))

    def unpark(self, run_id: str) -> Parking:
        return Parking(tuple(one for one in self.parked if one.run_id != run_id))

    def due(self, now: float, is_here: Callable[[str], bool]) -> tuple[str, ...]:
        """The runs that nobody edits any more: their time is over, or their client has left."""
        return tuple(
            one.run_id for one in self.parked if one.until <= now or (one.client_id and not is_here(one.client_id))
        )

    def next_deadline(self) -> float | None:
        return min((one.until for one in self.parked), default=None)
