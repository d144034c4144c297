"""Rows and events that belong together are collected in a `Batch` and written by the `Recorder` as one change."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from covey.engine.run_log import RunLog
from covey.engine.session_book import SessionBook
from covey.protocol.errors import Unavailable
from covey.protocol.events import Event, MessageDelta, created, updated
from covey.protocol.messages import Message, Session
from covey.protocol.runs import Run, RunComplete
from covey.store.base import Fenced, PutMessage, PutSession, StoreFailed, UpdateRun, Write
from covey.store.journal import WorkspaceJournal

T = TypeVar("T")

READ_RETRY_S = 0.25
"""How long to wait before something is read again that could not be."""
STORE_WAIT_S = 5.0
"""How long a request waits for a change that will be written sooner or later, before it is answered so."""


@dataclass(slots=True)
class Batch:
    """One change in the making. Events leave in the order in which they were added."""

    writes: list[Write] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def add_message(self, message: Message) -> None:
        self.writes.append(PutMessage(message))
        self.events.append(created(message))

    def update_message(self, message: Message) -> None:
        self.writes.append(PutMessage(message))
        self.events.append(updated(message))

    def update_session(self, session: Session) -> None:
        self.writes.append(PutSession(session))
        self.events.append(updated(session))

    def update_run(self, run: Run) -> None:
        self.writes.append(UpdateRun(run))
        self.events.append(updated(run))

    def end_run(self, run: Run, terminal: RunComplete) -> None:
        """The run's last row and its terminal event: in one change, so that they cannot disagree."""
        assert run.ended
        self.update_run(run)
        self.events.append(created(terminal))


class Recorder:
    """Writes batches for one workspace, and keeps each session's message count true."""

    def __init__(
        self,
        journal: WorkspaceJournal,
        sessions: SessionBook,
        view: Callable[[Session], Session] = lambda session: session,
    ) -> None:
        self._journal = journal
        self._sessions = sessions
        self._run_log = RunLog()
        self._view = view
        """Adds to a session what is true at the moment: whether it is busy, and who looks at it."""

    def write(
        self,
        batch: Batch,
        *,
        patient: bool = True,
        durable: bool = True,
        then: Callable[[Exception | None], None] | None = None,
    ) -> asyncio.Future[None]:
        added = Counter(
            event.session_id
            for event in batch.events
            if event.change == "created" and isinstance(event.payload, Message)
        )
        counted = {}
        for session_id, count in added.items():
            if session := self._sessions.change(session_id, added_messages=count):
                batch.writes.append(PutSession(session))
                counted[session_id] = session
        events = [self._as_seen(event, counted) for event in batch.events]

        def landed(refusal: Exception | None) -> None:
            for session_id, count in added.items() if refusal else ():
                self._sessions.change(session_id, added_messages=-count)
            if not refusal:
                self._run_log.note(events)
            if then:
                then(refusal)

        return self._journal.write(batch.writes, events, patient=patient, durable=durable, then=landed)

    def _as_seen(self, event: Event, counted: Mapping[str, Session]) -> Event:
        """A session as clients see it, with the messages that the same change adds to it."""
        if isinstance(event.payload, Session):
            session = counted.get(event.session_id, event.payload)
            return Event(event.change, self._view(session), event.session_id)
        return event

    def grow(self, delta: MessageDelta) -> None:
        self._journal.grow(delta)


async def patiently(read: Callable[[], Awaitable[T]]) -> T:
    """What is read for a run under way: it waits while the store is away, as what it writes does."""
    while True:
        try:
            return await read()
        except StoreFailed as error:
            if not error.passing:
                raise
        await asyncio.sleep(READ_RETRY_S)


async def confirmed(done: asyncio.Future[None]) -> None:
    """Wait until a patient change is written, but not for ever: whoever asked for it gets an answer."""
    try:
        await asyncio.wait_for(asyncio.shield(done), STORE_WAIT_S)
    except Fenced:
        raise
    except (TimeoutError, StoreFailed):
        message = "it is done, but could not be written yet; it will be as soon as the store can write again"
        raise Unavailable(message, "store_unavailable") from None
