"""Whoever watches a workspace is told while the store refuses to write: what runs under way say waits until then.

None of it can be stored, of course. It is a fact of the moment, as what a run waits on is one.
"""

from __future__ import annotations

import asyncio

from msgspec import structs

from covey.engine.commands.parts import WorkspaceParts
from covey.engine.lanes.open_runs import SHOWN_CHARS
from covey.protocol.events import AgentEvent, Payload, created, updated
from covey.protocol.runs import Run
from covey.store.base import StoreFailed

STORE = "store"
"""What a run waits on then."""


def as_it_is(run: Run, refusal: str) -> Run:
    """A run as it was told to clients, with the store that it waits on if that refuses to write."""
    return structs.replace(run, waiting_on=STORE) if refusal and run.state == "active" else run


class Stalled:
    """The runs that clients believe to be active, each with a warning, as long as nothing can be written."""

    def __init__(self, parts: WorkspaceParts) -> None:
        self._parts = parts
        self._journal = parts.shared.journal
        self._runs: list[Run] = []
        self._looking: asyncio.Task[None] | None = None
        if not parts.shared.ownership.is_shared:  # one that others share is away, and back, without anybody noticing
            self._journal.on_refusal.add(self._changed)

    def close(self) -> None:
        self._journal.on_refusal.discard(self._changed)
        if self._looking:
            self._looking.cancel()

    def now(self, session_id: str) -> list[Payload]:
        """What a client that comes now must know."""
        return [each for run in self._runs if session_id in ("", run.session_id) for each in self._told(run)]

    def _changed(self) -> None:
        if self._looking:
            self._looking.cancel()
            self._looking = None
        if self._journal.refusal:
            self._looking = asyncio.create_task(self._look())
            return
        known, self._runs = {run.run_id for run in self._runs}, []
        for run in self._parts.lanes.waiting_runs():
            if run.run_id in known:
                self._parts.feed.announce(updated(run))

    async def _look(self) -> None:
        """As the store has them: in memory a run may have ended, and nobody has been told."""
        try:
            rows = await self._parts.read(self._parts.store.open_runs)
        except StoreFailed:
            return
        self._runs = [as_it_is(row.run, self._journal.refusal) for row in rows if row.run.state == "active"]
        for run in self._runs:
            for payload in self._told(run):
                event = created(payload) if isinstance(payload, AgentEvent) else updated(payload)
                self._parts.feed.announce(event)

    def _told(self, run: Run) -> list[Payload]:
        reason = f"{self._journal.refusal}. The run goes on by itself when it can be written."
        warning = AgentEvent(type="warning", session_id=run.session_id, run_id=run.run_id, reason=reason)
        return [*([run] if len(run.prompt) <= SHOWN_CHARS else []), warning]
