"""The events of a workspace, for one client after the other: what it missed, what is in progress, what happens.

A client is subscribed first, and everything before that moment is read from the store: nothing falls in between, and
nothing is sent twice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import nullcontext

from covey.engine.commands.asks import Asks
from covey.engine.commands.clients import Clients
from covey.engine.commands.parts import WorkspaceParts
from covey.engine.commands.stalled import Stalled
from covey.feed.feed import Subscription
from covey.protocol.events import Gap, Payload, created, encode_event, updated
from covey.protocol.runs import Run
from covey.protocol.sse import EventId, frame

REPLAY_PAGE = 500
"""Events read from the store at once during a replay."""
LARGE_BYTES = 2 * 1024 * 1024
"""An event that is replayed only while few others of that size are: see `Shared.large_replays`."""
NOT_KEPT = "the events after this id are not kept any more"


class Streams:
    """Opens readers, and knows how many events there are."""

    def __init__(self, parts: WorkspaceParts, asks: Asks, clients: Clients) -> None:
        self._parts = parts
        self._asks = asks
        self._clients = clients
        self._stalled = Stalled(parts)

    def close(self) -> None:
        """The workspace ends."""
        self._stalled.close()

    def open(self, session_id: str = "", *, deltas: bool, client_id: str = "") -> Reader:
        """Begin to read: the events of one session, or of all (''). Who reads need not hear who they are."""
        now: list[Payload] = [*_waiting(self._parts, session_id), *self._clients.present(but=client_id)]
        now += self._stalled.now(session_id)
        return Reader(self._parts, self._asks, session_id, now, deltas=deltas)

    def last_seq(self) -> int:
        """The number of the newest event: so many there have been."""
        return self._parts.feed.last_seq

    def is_closed(self) -> bool:
        """The workspace is closed: every stream ends."""
        return self._parts.feed.closed


class Reader:
    """One client's way through the events. Frames are bytes as they are sent."""

    def __init__(
        self, parts: WorkspaceParts, asks: Asks, session_id: str, now: Sequence[Payload], *, deltas: bool
    ) -> None:
        messages = [updated(message) for message in parts.feed.in_progress(session_id)]
        outputs = [updated(output) for output in parts.feed.printed(session_id)]
        requests = [created(request) for request in asks.waiting(session_id)]
        facts = [updated(fact) for fact in now]
        self.present = b"".join(frame(encode_event(event)) for event in (*messages, *outputs, *facts, *requests))
        """What a client that attaches now must know: messages in progress, what calls print, what runs wait on, who is
        there, and what waits for answers."""
        self.live: Subscription = parts.feed.subscribe(deltas=deltas, session_id=session_id)
        """What happens from now on. Whoever opened the reader closes it."""
        self._parts = parts
        self._session_id = session_id
        self._upto = parts.feed.last_seq

    @property
    def is_over(self) -> bool:
        """Nothing more comes: the workspace is closed, the client left, or it was too slow."""
        return self.live.closed or self._parts.feed.closed

    async def missed(self, last_id: str) -> AsyncGenerator[bytes, None]:
        """The durable events between `last_id` and the moment of opening, or a gap if they are not kept any more.

        Whoever takes an empty piece must wait until most of what was taken before is sent: only then is there room
        for another that is as large.
        """
        parts, upto = self._parts, self._upto
        known = EventId.parse(last_id)
        bounds = await parts.read(parts.store.log_bounds)
        if known is None or known.epoch != parts.feed.epoch or not bounds.floor <= known.seq <= upto:
            yield self._gap("the event id is unknown" if known is None else NOT_KEPT)
            return
        after = known.seq
        while after < upto:
            is_large = await parts.read(parts.store.next_size, after, upto, self._session_id) > LARGE_BYTES
            async with parts.shared.large_replays if is_large else nullcontext():
                page = await parts.read(parts.store.events, after, upto, self._session_id, REPLAY_PAGE)
                if (await parts.read(parts.store.log_bounds)).floor > after:  # the log was trimmed under our hands
                    yield self._gap(NOT_KEPT)
                    return
                if not page:
                    return
                after = page[-1].seq
                yield b"".join(frame(event.encoded, EventId(parts.feed.epoch, event.seq)) for event in page)
                if is_large:
                    del page
                    yield b""

    def _gap(self, reason: str) -> bytes:
        resume_from = EventId(self._parts.feed.epoch, self._upto)
        return frame(encode_event(created(Gap(reason=reason, resume_from=str(resume_from)))))


def _waiting(parts: WorkspaceParts, session_id: str) -> list[Run]:
    """What the active runs wait on: no event of the log says so."""
    return [run for run in parts.lanes.waiting_runs() if session_id in ("", run.session_id)]
