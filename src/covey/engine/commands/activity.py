"""What goes on in all workspaces, for whoever watches the server as a whole. It claims no workspace.

It is a feed of its own, without a past: whoever attaches gets what is open now, then what happens. One who reads too
slowly falls out of the log, which is bounded, and attaches again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable

from covey.feed.feed import Feed, Subscription
from covey.protocol.activity import Present, encode_activity, encode_present, shortened
from covey.protocol.events import Event, Payload, created, updated
from covey.protocol.runs import Run
from covey.protocol.sse import frame


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
        shown = [encode_present(Present(runs=len(runs), asks=len(asks)))]
        for workspace_id, path, event in (*runs, *asks):
            if short := shortened(event):
                shown.append(encode_activity(workspace_id, path, short))
        self.present = b"".join(map(frame, shown))
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


def open_facts(runs: Iterable[Run], asks: Iterable[Payload]) -> list[Event]:
    """What is open in a workspace, as events."""
    return [*map(updated, runs), *map(created, asks)]
