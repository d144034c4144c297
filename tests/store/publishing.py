"""What tests of the journal write, and a publisher that remembers what was published."""

from __future__ import annotations

import asyncio

from covey.protocol.events import Event, MessageDelta, created
from covey.store.journal import WorkspaceJournal
from tests.store.test_store_conformance import session
from tests.support.disk import BOUND_S


class Published:
    """A publisher that remembers: ids of sessions for events, texts for growth."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.seqs: list[int] = []

    def publish(self, seq: int, event: Event, encoded: bytes) -> None:
        self.seqs.append(seq)
        self.order.append(event.session_id)

    def grow(self, delta: MessageDelta) -> None:
        self.order.append(delta.delta)


def say(book: WorkspaceJournal, name: str, *, patient: bool = True, durable: bool = True) -> asyncio.Future[None]:
    """One change about session `name`."""
    return book.write((), (created(session(name)),), patient=patient, durable=durable)


def growth(value: str) -> MessageDelta:
    return MessageDelta(message_id="m", session_id="s", run_id="r", part=0, kind="text", offset=0, delta=value)


async def within_bound(*futures: asyncio.Future[None]) -> None:
    done, pending = await asyncio.wait(futures, timeout=BOUND_S)
    assert not pending
    for future in done:
        future.result()
