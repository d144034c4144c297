"""In which order sessions are listed, in one workspace and in all of them: the last changed first, then by id."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from covey.protocol.messages import Session
from covey.store.base import unknown_session
from covey.store.everywhere import PlacedSession

if TYPE_CHECKING:
    from covey.store.base import Place, SessionRow, Store

NEWEST: Place = (2**62, "")
"""Before all sessions that there are."""
PAGE = 20
"""Sessions read at once of each workspace, to find the newest of all."""


def place_of(session: Session) -> Place:
    return session.updated_at, session.id


def place_in(store: Store, workspace_id: str, session_id: str) -> Place:
    """Of one that is stored; '': before all of them. Raises NotFound."""
    if not session_id:
        return NEWEST
    row = store.session(workspace_id, session_id)
    if row is None:
        raise unknown_session(session_id)
    return place_of(row.session)


def page_in(
    workspace_id: str, store: Store, before: str, limit: int, *, children: bool, archived: bool
) -> list[SessionRow]:
    """The sessions of a workspace after one of them, in this order. Raises NotFound."""
    place = place_in(store, workspace_id, before)
    return store.sessions_page(workspace_id, place, limit, children=children, archived=archived)


def newest_of_all(
    store: Store, paths: Mapping[str, str], before: Place, limit: int, *, children: bool, archived: bool
) -> list[PlacedSession]:
    """Of all these workspaces, by id with their paths: a page of each at a time, and no more than is needed.

    Where one server gives out all ids, a place is the same in all of them.
    """

    def of(workspace_id: str) -> Iterator[PlacedSession]:
        place = before
        while page := store.sessions_page(workspace_id, place, PAGE, children=children, archived=archived):
            yield from (PlacedSession(workspace_id, paths[workspace_id], row.session) for row in page)
            place = place_of(page[-1].session)

    merged = heapq.merge(*map(of, paths), key=lambda found: place_of(found.session), reverse=True)
    return list(islice(merged, limit))
