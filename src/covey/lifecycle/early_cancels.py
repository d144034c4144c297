"""Cancels that overtake their prompts."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class EarlyCancels:
    """Cancels for run ids that nobody has posted yet: kept for a while, so that a cancel may overtake its prompt."""

    until: tuple[tuple[str, float], ...] = ()
    limit: int = 1000

    def remember(self, run_id: str, now: float, keep_s: float) -> EarlyCancels:
        kept = tuple(item for item in self.until if item[1] > now and item[0] != run_id)
        return replace(self, until=(*kept, (run_id, now + keep_s))[-self.limit :])

    def covers(self, run_id: str, now: float) -> bool:
        return any(known == run_id and until > now for known, until in self.until)
