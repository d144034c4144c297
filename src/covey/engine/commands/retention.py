"""Throws away what the settings say is old, large or much enough: a day after the last time, and when it is opened."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator

from covey.config.schema import RetentionSettings
from covey.engine.commands.parts import WorkspaceParts
from covey.engine.commands.sessions import Sessions
from covey.lifecycle.retention import DAY_S, Candidate, Keep, events_to_keep, outdated
from covey.protocol.errors import ApiError
from covey.store.base import Store
from covey.store.session_order import NEWEST, place_of

log = logging.getLogger(__name__)

MB = 1024 * 1024
AT_ONCE = 100
"""Sessions dropped in one go: the next ones follow after a pause, so that others can write meanwhile."""
PAUSE_S = 5.0
PAGE = 500
"""Sessions read at once, to find those that are outdated."""
EVENTS_LOOKED_AT = 100_000


class Retention:
    """One workspace's. With the default settings nothing is ever thrown away, and nothing is looked at."""

    def __init__(self, parts: WorkspaceParts, sessions: Sessions) -> None:
        self._parts = parts
        self._sessions = sessions
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Nothing is started where nothing is to be thrown away: a change of that counts from the next opening on."""
        if self._parts.agent.config.retention != RetentionSettings():
            self._task = asyncio.create_task(self._go_on())

    async def aclose(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _go_on(self) -> None:
        while True:
            try:
                has_more = await self.prune()
            except ApiError as error:  # a full disk, or the workspace closes: tomorrow is soon enough
                log.warning("what is outdated was not thrown away: %s", error)
                has_more = False
            await asyncio.sleep(PAUSE_S if has_more else DAY_S)

    async def prune(self) -> bool:
        """Drop what is outdated, some of it at a time; whether there may be more."""
        settings = self._parts.agent.config.retention
        keep = Keep(settings.sessions_days, settings.sessions_kept, settings.sessions_mb * MB)
        if keep.is_everything and not settings.events_mb:
            return False
        dropped = await self._outdated(keep)
        for session_id in dropped:
            await self._sessions.delete(session_id)
        if dropped:
            log.info("%d sessions were thrown away, as [retention] says", len(dropped))
        if settings.events_mb:
            await self._trim_events(settings.events_mb * MB)
        return len(dropped) == AT_ONCE

    async def _outdated(self, keep: Keep) -> list[str]:
        parts = self._parts
        in_use = {self._root_of(run.session_id) for run in parts.lanes.open_runs()}
        now, size = parts.shared.world.now_s(), parts.store.session_size

        def decide(own: str) -> list[str]:
            candidates = _candidates(parts.store, own, in_use)
            return outdated(candidates, keep, now, lambda one: size(own, one), AT_ONCE)

        # Decided where the store is read, so that only those sizes are read which are asked for.
        return await parts.read(decide)

    def _root_of(self, session_id: str) -> str:
        """The session for which, in the end, an agent works in this one."""
        session = self._parts.book.find(session_id)
        while session and session.parent_session_id and (parent := self._parts.book.find(session.parent_session_id)):
            session = parent
        return session.id if session else session_id

    async def _trim_events(self, size: int) -> None:
        parts = self._parts
        sizes = await parts.read(parts.store.event_sizes, EVENTS_LOOKED_AT)
        keep = events_to_keep(sizes, parts.agent.config.limits.events_kept, size)
        parts.shared.journal.trim_events(parts.id, keep)


def _candidates(store: Store, workspace_id: str, in_use: Collection[str]) -> Iterator[Candidate]:
    """The newest first, a page at a time; without those of agents, which go with the session they worked for."""
    place = NEWEST
    while page := store.sessions_page(workspace_id, place, PAGE, children=False, archived=True):
        for row in page:
            session = row.session
            is_archived = session.archived_at is not None
            yield Candidate(session.id, session.updated_at, is_open=session.id in in_use, is_archived=is_archived)
        place = place_of(page[-1].session)
