"""What is old, large or much enough to be thrown away, by settings that somebody chose. Pure.

A session goes as a whole. One with an open run never goes, nor one that was archived, which is put aside to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

DAY_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Keep:
    """What stays of the sessions of a workspace; 0: no bound."""

    days: int = 0
    count: int = 0
    size: int = 0
    """Bytes of their messages together."""

    @property
    def is_everything(self) -> bool:
        return not (self.days or self.count or self.size)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A session that might go, with those in which agents worked for it."""

    session_id: str
    updated_at: int
    is_open: bool
    """It, or one in which an agent works for it, has an open run."""
    is_archived: bool = False


def outdated(
    newest_first: Iterable[Candidate], keep: Keep, now: int, size_of: Callable[[str], int], limit: int
) -> list[str]:
    """The sessions to drop now, at most `limit`, the oldest first.

    `size_of` says how many bytes a session has. It is asked only until the bound is reached, so this costs what is
    kept, not what there is. The newest session stays, however large it is.
    """
    if keep.is_everything:
        return []
    found: list[str] = []
    count = size = 0
    for session in newest_first:
        if session.is_archived:
            continue
        is_too_many = bool(keep.count) and count >= keep.count
        is_too_old = bool(keep.days) and session.updated_at < now - keep.days * DAY_S
        is_too_large = bool(keep.size) and size >= keep.size
        if keep.size and not (is_too_many or is_too_old or is_too_large):
            size += size_of(session.session_id)
            is_too_large = size > keep.size and count > 0
        count += 1
        if (is_too_many or is_too_old or is_too_large) and not session.is_open:
            found.append(session.session_id)
    return found[::-1][:limit]


def events_to_keep(sizes_newest_first: Iterable[int], count: int, size: int) -> int:
    """How many of the newest events stay: at most `count`, with at most `size` bytes (0: no bound), but one always."""
    kept = total = 0
    for event in sizes_newest_first:
        total += event
        if kept and (kept >= count or (size and total > size)):
            break
        kept += 1
    return max(kept, 1)
