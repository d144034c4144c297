"""What goes on in all workspaces, for whoever watches the server as a whole. It claims no workspace.

It is a feed of its own, without a past: whoever attaches gets what is open now, then what happens. One who reads too
slowly falls out of the log, which is bounded, and attaches again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable

from covey.feed.feed import Feed, Subscription
from covey.protocol.activity import Present, decode_activity, encode_activity, encode_present, shortened
from covey.protocol.events import Event, Payload, created, updated
from covey.protocol.runs import Run
from covey.protocol.sse import FrameDecoder, frame


class ActivityFeed:
    """The one of a server."""

    def __init__(self) -> None:
        self._feed = Feed(0, 0)
        self._states: dict[tuple[str, str], str] = {}
        """By workspace and run, of those that are open: the state that was sent last."""

    def note(self, workspace_id: str, path: str, event: Event) -> None:
        """Something was published in a workspace."""
        run = event.payload if isinstance(event.payload, Run) else None
        if run and not self._has_moved(workspace_id, run):
            return  # it waits on something else, or was edited: no start and no end
        if self._feed.readers and (short := shortened(event)):
            self._feed.announce_frame(frame(encode_activity(workspace_id, path, short)))

    def _has_moved(self, workspace_id: str, run: Run) -> bool:
        known = self._states.pop((workspace_id, run.run_id), None)
        if not run.ended:
            self._states[workspace_id, run.run_id] = run.state
        return run.ended or known != run.state

    def open(self, now: Iterable[tuple[str, str, list[Event]]]) -> ActivityReader:
        """Begin to read. `now`: of each workspace its id, its path, and what is open there."""
        events = [(workspace_id, path, event) for workspace_id, path, found in now for event in found]
        return ActivityReader(self._feed, events)

    def close(self) -> None:
        """End every stream."""
        self._feed.close()


class ActivityReader:
    """One client's way through it. Frames are bytes as they are sent."""

    def __init__(self, feed: Feed, events: list[tuple[str, str, Event]]) -> None:
        runs = [each for each in events if isinstance(each[2].payload, Run)]
        asks = [each for each in events if not isinstance(each[2].payload, Run)]
        self.runs, self.asks = _encoded(runs), _encoded(asks)
        count = encode_present(Present(runs=len(runs), asks=len(asks)))
        self.present = b"".join(map(frame, (count, *self.runs, *self.asks)))
        """What is open now."""
        self.live: Subscription = feed.subscribe(deltas=True)
        self._feed = feed

    @property
    def is_over(self) -> bool:
        return self.live.closed or self._feed.closed

    async def missed(self, last_id: str) -> AsyncGenerator[bytes, None]:
        """Nothing: it has no past."""
        return
        yield b""


def _encoded(events: Iterable[tuple[str, str, Event]]) -> list[bytes]:
    found = ((workspace_id, path, shortened(event)) for workspace_id, path, event in events)
    return [encode_activity(workspace_id, path, short) for workspace_id, path, short in found if short]


class ToldActivity:
    """What another server says: the bytes of its stream, as they come."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.asks: list[str] = []
        self.rest: list[str] = []
        """What came with them, and is news already."""
        self._decoder = FrameDecoder()
        self._count: Present | None = None

    @property
    def has_begun(self) -> bool:
        """It has said what is open."""
        return self._count is not None and (len(self.runs), len(self.asks)) == (self._count.runs, self._count.asks)

    def take(self, data: bytes) -> list[str]:
        """News in these bytes: nothing until it has begun."""
        was_begun = self.has_begun
        news = [found.data for found in self._decoder.feed(data) if not self._is_present(found.data)]
        if was_begun:
            return news
        self.rest += news
        return []

    def _is_present(self, event: str) -> bool:
        if self.has_begun:
            return False
        if self._count is None:
            self._count = decode_activity(event).present or Present(runs=0, asks=0)
        elif len(self.runs) < self._count.runs:
            self.runs.append(event)
        else:
            self.asks.append(event)
        return True


class MergedActivity:
    """What several servers of a cluster say, as one stream. `mine`: what this one says."""

    def __init__(self, mine: ActivityReader) -> None:
        self._mine = mine
        self._feed = Feed(0, 0)
        self.live: Subscription = self._feed.subscribe(deltas=True)
        self._runs, self._asks = list(mine.runs), list(mine.asks)
        self._following = asyncio.create_task(self._follow())

    @property
    def present(self) -> bytes:
        """What is open now, everywhere."""
        count = encode_present(Present(runs=len(self._runs), asks=len(self._asks)))
        return b"".join(map(frame, (count, *self._runs, *self._asks)))

    def add_present(self, told: ToldActivity) -> None:
        """What another one has open, as it says it. Only before `present` is read."""
        self._runs += (data.encode() for data in told.runs)
        self._asks += (data.encode() for data in told.asks)

    def add(self, events: Iterable[str]) -> None:
        """What another one says."""
        self._feed.announce_frame(b"".join(frame(data.encode()) for data in events))

    @property
    def is_over(self) -> bool:
        return self.live.closed or self._feed.closed

    async def missed(self, last_id: str) -> AsyncGenerator[bytes, None]:
        """Nothing: it has no past."""
        return
        yield b""

    def close(self) -> None:
        self._following.cancel()
        self._mine.live.close()
        self._feed.close()

    async def _follow(self) -> None:
        while True:
            if data := self._mine.live.take():
                self._feed.announce_frame(data)
            elif self._mine.is_over:
                self._feed.close()
                return
            else:
                await self._mine.live.wait()


def open_facts(runs: Iterable[Run], asks: Iterable[Payload]) -> list[Event]:
    """What is open in a workspace, as events."""
    return [*map(updated, runs), *map(created, asks)]
