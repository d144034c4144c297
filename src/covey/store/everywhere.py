"""What a store that several servers share says of all workspaces: in one question, however many of them there are."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from covey.protocol.messages import Session
from covey.protocol.runs import Run
from covey.store.search_text import Hit


class PlacedRun(NamedTuple):
    workspace_id: str
    path: str
    run: Run


class PlacedSession(NamedTuple):
    workspace_id: str
    path: str
    session: Session
    is_busy: bool = False
    """A run is open in it."""


class PlacedHit(NamedTuple):
    workspace_id: str
    path: str
    session: Session
    hit: Hit


class PlacedHits(NamedTuple):
    """The newest first."""

    titles: list[PlacedHit]
    messages: list[PlacedHit]


class ReadsEverywhere(Protocol):
    def newest_runs(self, state: str, limit: int) -> list[PlacedRun]:
        """In one state or any (''), the newest first."""
        ...

    def newest_sessions(
        self, before: tuple[int, str, str], limit: int, *, children: bool, archived: bool
    ) -> list[PlacedSession]:
        """As `Store.sessions_page`, of all workspaces, whose ids decide between equals: the last part of `before`."""
        ...

    def search_everywhere(self, query: str, limit: int) -> PlacedHits:
        """As `Store.search`, at most `limit` of each."""
        ...
