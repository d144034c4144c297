"""A store in memory that behaves like a disk with moods: commits can be held, counted, refused and kept for later."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

from covey.store.base import Change, RunExists, StoreFailed
from tests.support.memory_store import MemoryStore

BOUND_S = 10.0
"""How long a test waits for what must happen: far longer than it takes."""


class Disk(MemoryStore):
    """Held: a commit waits inside, so that whatever it writes is decided but not written."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[list[Change]] = []
        """What was committed, group by group."""
        self.attempts = 0
        self.full = False
        self.poison = ""
        """A change that tells of this session is refused for good."""
        self.refuses: Callable[[Change], bool] = lambda change: False
        """A change of which it says so is refused for good."""
        self.bug = ""
        """On a change that tells of this session the store itself goes wrong."""
        self.closed = False
        self.keeps_copies = False
        self.copies: list[Disk] = []
        """The disk as it was after each commit: what a crash at that moment would leave."""
        self._attempted = threading.Condition()
        self._free = threading.Event()
        self._free.set()

    def hold(self) -> None:
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    async def wait_attempts(self, count: int) -> None:
        """Until the writing thread has begun so many commits."""

        def wait() -> bool:
            with self._attempted:
                return self._attempted.wait_for(lambda: self.attempts >= count, BOUND_S)

        assert await asyncio.to_thread(wait)

    def commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
        with self._attempted:
            self.attempts += 1
            self._attempted.notify_all()
        assert self._free.wait(BOUND_S)
        sessions = {event.session_id for change in changes for event in change.events}
        if self.full:
            raise StoreFailed("the disk is full", passing=True)
        if any(self.refuses(change) for change in changes) or (self.poison and self.poison in sessions):
            raise StoreFailed("too big", passing=False)
        if self.bug and self.bug in sessions:
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        result = super().commit(changes)
        self.groups.append(list(changes))
        if self.keeps_copies:
            self.copies.append(self.copy())
        return result

    def copy(self) -> Disk:
        """What is written, and nothing of the moods."""
        other = Disk()
        for name in (
            "_workspaces",
            "_sessions",
            "_messages",
            "_runs",
            "_early",
            "_versions",
            "_held",
            "_undos",
            "_spending",
        ):
            setattr(other, name, dict(getattr(self, name)))
        other._tails = {key: list(value) for key, value in self._tails.items()}
        other._events = {key: dict(value) for key, value in self._events.items()}
        return other

    def close(self) -> None:
        self.closed = True
