"""The event stream of a workspace, as if the network never failed: it reconnects, resumes and reloads by itself.

    async with EventStream(client, workspace.id, session_id=session.id) as stream:
        async for event in stream:
            ...

Entering connects, so whatever is posted afterwards is seen. A connection that ends, breaks or falls silent is made
again, for ever, and resumes after the last event that the reader was given; the options stay the same. Where the
server no longer has what came in between, the reader gets a `Gap` and after it the messages as they are now.
It never makes up the end of a run: that is for the server to say.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from covey.client.client import SILENCE_S, Client
from covey.client.errors import ServerUnreachable
from covey.client.transport import OpenAnswer, TransportFailed
from covey.protocol.errors import ApiError
from covey.protocol.events import Event, Gap, created, decode_event, updated
from covey.protocol.messages import Message
from covey.protocol.sse import Frame, FrameDecoder

FIRST_DELAY_S = 0.25
"""A server that restarts needs about this long; a person hardly notices it."""
LONGEST_DELAY_S = 10.0
"""Long enough to cost nothing, short enough that nobody reaches for a restart."""

OnConnection = Callable[[bool, str], None]


def _unheard(connected: bool, why: str) -> None:
    """Nobody asked to hear about the connection."""


class EventStream:
    """An endless iterator of events. For one reader; `last_event_id` is that of the last event it was given."""

    def __init__(
        self,
        client: Client,
        workspace_id: str,
        *,
        session_id: str = "",
        last_event_id: str = "",
        reloads: bool = True,
        on_connection: OnConnection = _unheard,
        first_delay_s: float = FIRST_DELAY_S,
        silence_s: float = SILENCE_S,
    ) -> None:
        self.workspace_id = workspace_id
        """May change when the server had to open the workspace again."""
        self.session_id = session_id
        self.last_event_id = last_event_id
        self._client = client
        self._reloads = reloads
        """False: the reader itself loads what a gap has taken, such as a view (`follower.py`)."""
        self._on_connection = on_connection
        self._first_delay_s = first_delay_s
        self._silence_s = silence_s
        self._delay_s = 0.0
        self._hurry = asyncio.Event()
        self._exchange: OpenAnswer | None = None
        self._decoder = FrameDecoder()
        self._frames: deque[Frame] = deque()
        """What was received and waits until a gap before it is repaired."""
        self._ready: deque[tuple[str, Event]] = deque()
        self._reload_due = False
        self._sessions = {session_id} if session_id else set()
        """Whose messages the reader has seen: these are reloaded after a gap."""

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        return (await self.next())[1]

    async def next(self) -> tuple[str, Event]:
        """The next event, and its id ('': it has none, or it is a gap)."""
        while not self._ready:
            await self._read()
        event_id, event = self._ready.popleft()
        if event_id:
            self.last_event_id = event_id
        if isinstance(event.payload, Message):
            self._sessions.add(event.payload.session_id)
        return event_id if not isinstance(event.payload, Gap) else "", event

    @property
    def connected(self) -> bool:
        return self._exchange is not None

    def hurry(self) -> None:
        """Try again now, if it waits before its next attempt."""
        self._hurry.set()

    def reconnect(self) -> None:
        """Connect again, to get the present state of messages in progress: this closes a hole."""
        self._ready.clear()
        self._close()
        self._delay_s = self._first_delay_s

    # ── inside ──

    async def _read(self) -> None:
        """Take in whatever comes next; returns without anything when the connection was lost."""
        exchange = self._exchange or await self._connect_again()
        try:
            if self._reload_due:
                await self._reload()  # what it brings is passed on at once, not with whatever is received next
            elif not self._frames:
                chunk = await exchange.read(self._silence_s)
                if not chunk:
                    raise TransportFailed("the server ended it")
                self._frames.extend(self._decoder.feed(chunk))
        except TransportFailed as error:
            self._lose(str(error))
        except (ServerUnreachable, ApiError) as error:
            self._lose(f"reloading after a gap failed: {error}")
        while self._frames and not self._reload_due:
            self._take(self._frames.popleft())

    def _take(self, frame: Frame) -> None:
        self._delay_s = 0.0
        try:
            event = decode_event(frame.data)
        except msgspec.MsgspecError as error:
            # Skipping it silently would leave the reader with a state that nobody else has.
            event = created(Gap(reason=f"an event could not be read: {error}", resume_from=frame.id))
        if event is None:
            return
        if isinstance(event.payload, Gap):
            self._reload_due = self._reloads
            self._ready.append((event.payload.resume_from, event))
        else:
            self._ready.append((frame.id, event))

    async def _reload(self) -> None:
        """After a gap: the sessions, and the messages of those that the reader has seen, as they are now."""
        found = await self._client.sessions(self.workspace_id, children=True, archived=True)
        sessions = [session for session in found if self.session_id in ("", session.id)]
        events: list[Event] = [updated(session) for session in sessions]
        for session in sessions:
            if session.id in self._sessions:
                events += [updated(message) for message in await self._client.messages(self.workspace_id, session.id)]
        self._ready.extend(("", event) for event in events)
        self._reload_due = False

    async def _connect_again(self) -> OpenAnswer:
        """Until it works. Only an answer that no waiting will change (a wrong token, a deleted session) is raised."""
        while self._exchange is None:
            await self._pause()
            try:
                await self._introduce()
                await self._open()
            except ServerUnreachable:
                with suppress(ServerUnreachable):
                    await self._client.revive()
            except ApiError as error:
                if error.status < 500 and error.code not in ("workspace_closing", "queue_full"):
                    raise
        if self._reloads and not self.last_event_id:
            # Nothing was read before the connection broke, so there is no place to resume from.
            self._reload_due = True
            self._ready.append(("", created(Gap(reason="reconnected without an event id", resume_from=""))))
        return self._exchange

    async def _introduce(self) -> None:
        """A server that was started anew knows neither who this is nor that the workspace is needed."""
        with suppress(ApiError):  # such as that the directory is gone: whether there are events is said by the stream
            self.workspace_id = await self._client.rejoin(self.workspace_id)

    async def _pause(self) -> None:
        """Wait longer after each failure, and never in step with all the other clients that were cut off."""
        delay_s, self._delay_s = self._delay_s, min(max(self._first_delay_s, self._delay_s * 2), LONGEST_DELAY_S)
        self._hurry.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), delay_s * random.uniform(0.5, 1))

    async def _open(self) -> None:
        self._exchange = await self._client.open_events(
            self.workspace_id, session_id=self.session_id, last_event_id=self.last_event_id
        )
        self._decoder = FrameDecoder()
        self._on_connection(True, "")

    def _lose(self, why: str) -> None:
        self._close()
        self._delay_s = max(self._delay_s, self._first_delay_s)
        self._on_connection(False, why)

    def _close(self) -> None:
        self._frames.clear()
        if self._exchange is not None:
            self._exchange.close()
            self._exchange = None
