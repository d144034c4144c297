"""Clients that have read everything and wait, by the session that they are about: an event finds those it is for."""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, Protocol, TypeVar


class _About(Protocol):
    session_id: str
    """The one session that it is about; '' for all of them."""


T = TypeVar("T", bound=_About)


class Resting(Generic[T]):
    """A set of clients. A client in it costs nothing, however much is published for others."""

    def __init__(self) -> None:
        self._by_session: dict[str, set[T]] = {}

    def add(self, client: T) -> None:
        self._by_session.setdefault(client.session_id, set()).add(client)

    def __contains__(self, client: T) -> bool:
        return client in self._by_session.get(client.session_id, ())

    def discard(self, client: T) -> None:
        if client in self:
            mine = self._by_session[client.session_id]
            mine.remove(client)
            if not mine:
                del self._by_session[client.session_id]

    def due(self, session_ids: Collection[str]) -> list[T]:
        """For whom events of these sessions are. One of no session is for everybody."""
        due = list(self._by_session) if "" in session_ids else ["", *session_ids]
        return [client for session_id in due for client in self._by_session.get(session_id, ())]
