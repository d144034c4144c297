"""The clients of a workspace: which of them keep it open, and which session each of them looks at (R17)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from covey.feed.feed import Feed
from covey.lifecycle.claims import Claims
from covey.protocol.errors import Conflict
from covey.protocol.events import Event, Presence
from covey.protocol.messages import Session
from covey.protocol.who import Who


class Clients:
    """The claims on one workspace. When they end is decided by `lifecycle.claims`; who looks at the clock asks here."""

    def __init__(self, feed: Feed, session: Callable[[str], Awaitable[Session]]) -> None:
        self._feed = feed
        self._session = session
        """Finds a session, or raises NotFound."""
        self._claims = Claims()
        self._names: dict[str, Who] = {}
        """Those that hold the workspace, as they said they are."""

    @property
    def have_claims(self) -> bool:
        """Whether anybody keeps the workspace open."""
        return bool(self._claims)

    def is_here(self, client_id: str) -> bool:
        """Whether the client holds the workspace: by a stream, or for a moment after its last one."""
        return self._claims.get(client_id) is not None

    def create(self, who: Who, now: float) -> None:
        """The client made or joined the workspace."""
        self._names[who.client_id] = who
        self._claims = self._claims.create(who.client_id, now)

    def attach(self, who: Who) -> None:
        """The client opened an event stream."""
        self._names[who.client_id] = who
        self._claims = self._claims.attach(who.client_id)
        self._announce(who.client_id)

    def detach(self, client_id: str, now: float) -> None:
        """An event stream of the client ended."""
        self._claims = self._claims.detach(client_id, now)
        self._announce(client_id)

    async def look_at(self, client_id: str, session_id: str) -> None:
        """The client looks at this session now ('' for none)."""
        if session_id:
            await self._session(session_id)
        claims = self._claims.look_at(client_id, session_id)
        if claims is None:
            raise Conflict("open the event stream first: only attached clients have a current session", "not_attached")
        self._claims = claims
        self._announce(client_id)

    def release(self, client_id: str) -> None:
        """The client says goodbye to this workspace; its open streams keep it until they end."""
        self._claims = self._claims.release(client_id)

    def drop(self, client_id: str) -> None:
        """The client says goodbye for good."""
        self._claims = self._claims.drop(client_id)

    def present(self, *, but: str = "") -> list[Presence]:
        """Who else is attached now, and what each of them looks at."""
        attached = [claim.client_id for claim in self._claims.by_client if claim.streams]
        return [self._presence(client_id) for client_id in attached if client_id != but]

    def watching(self, session_id: str) -> int:
        """How many attached clients look at this session."""
        return self._claims.watching(session_id)

    def expire(self, now: float) -> None:
        self._claims = self._claims.expire(now)
        self._names = {client_id: who for client_id, who in self._names.items() if self.is_here(client_id)}

    def next_deadline(self) -> float | None:
        """When `expire` next has something to do."""
        return self._claims.next_deadline()

    def _presence(self, client_id: str) -> Presence:
        """As the claims have it: who has two streams is there as long as one of them is."""
        who, claim = self._names.get(client_id) or Who(), self._claims.get(client_id)
        return Presence(
            client_id=client_id,
            session_id=claim.session_id if claim else "",
            attached=claim is not None and claim.streams > 0,
            name=who.name or None,
            kind=who.kind,
        )

    def _announce(self, client_id: str) -> None:
        """To everybody, whichever session they follow: those whom it leaves must know as well."""
        self._feed.announce(Event("updated", self._presence(client_id), ""))
