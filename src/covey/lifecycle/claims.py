"""Who keeps a workspace open, and until when. Deadlines are values here, not timers: the shell sleeps, this decides.

A client holds a workspace by creating it (for a while), by its open event streams, and for a moment after its last
stream dropped without a goodbye (R17). So does a job that a session left running, for a bounded time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

CREATE_GRACE_S = 30.0
"""From create to the first stream: long enough for a slow terminal to come up."""
DETACH_GRACE_S = 10.0
"""After the last stream dropped: long enough for a laptop to change networks."""
JOB_HOLD_S = 12 * 3600.0
"""From the start of a job: a night's work. What runs longer without anybody looking was forgotten."""


def held_by_jobs_until(started: Iterable[float]) -> float | None:
    """Until when jobs that run since these moments keep their workspace open; None: there are none."""
    return max((moment + JOB_HOLD_S for moment in started), default=None)


@dataclass(frozen=True, slots=True)
class Claim:
    client_id: str
    streams: int = 0
    held_until: float = 0.0
    """Only of interest without streams."""
    leaving: bool = False
    """It said goodbye while a stream was open: no grace when that stream ends."""
    session_id: str = ""
    """The session this client looks at now; '' without streams."""


@dataclass(frozen=True, slots=True)
class Claims:
    """All claims on one workspace."""

    by_client: tuple[Claim, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.by_client)

    def get(self, client_id: str) -> Claim | None:
        return next((claim for claim in self.by_client if claim.client_id == client_id), None)

    def create(self, client_id: str, now: float) -> Claims:
        """The client made or joined the workspace; it has some time to attach."""
        claim = self.get(client_id) or Claim(client_id)
        return self._put(replace(claim, held_until=now + CREATE_GRACE_S, leaving=False))

    def attach(self, client_id: str) -> Claims:
        claim = self.get(client_id) or Claim(client_id)
        return self._put(replace(claim, streams=claim.streams + 1, held_until=0.0, leaving=False))

    def detach(self, client_id: str, now: float) -> Claims:
        """A stream of this client ended."""
        claim = self.get(client_id)
        if claim is None or claim.streams == 0:
            return self
        claim = replace(claim, streams=claim.streams - 1)
        if claim.streams:
            return self._put(claim)
        if claim.leaving:
            return self.drop(client_id)
        held_until = max(claim.held_until, now + DETACH_GRACE_S)  # it may have created it again meanwhile
        return self._put(replace(claim, held_until=held_until, session_id=""))

    def release(self, client_id: str) -> Claims:
        """The client says goodbye to this workspace; its open streams keep it until they end."""
        claim = self.get(client_id)
        if claim is None:
            return self
        return self._put(replace(claim, leaving=True)) if claim.streams else self.drop(client_id)

    def drop(self, client_id: str) -> Claims:
        """The claim is gone at once, streams or not."""
        return Claims(tuple(claim for claim in self.by_client if claim.client_id != client_id))

    def look_at(self, client_id: str, session_id: str) -> Claims | None:
        """The client looks at this session now; None if it has no open stream."""
        claim = self.get(client_id)
        if claim is None or claim.streams == 0:
            return None
        return self._put(replace(claim, session_id=session_id))

    def watching(self, session_id: str) -> int:
        """How many attached clients look at this session."""
        return sum(claim.session_id == session_id for claim in self.by_client)

    def expire(self, now: float) -> Claims:
        return Claims(tuple(c for c in self.by_client if c.streams or c.held_until > now))

    def next_deadline(self) -> float | None:
        """When `expire` next has something to do."""
        return min((c.held_until for c in self.by_client if not c.streams), default=None)

    def _put(self, changed: Claim) -> Claims:
        others = tuple(claim for claim in self.by_client if claim.client_id != changed.client_id)
        return Claims((*others, changed))
