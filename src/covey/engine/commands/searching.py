"""Finds messages and titles of sessions by words, in one workspace, open or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from msgspec import structs

from covey.protocol.errors import BadRequest
from covey.protocol.messages import Role, Session
from covey.protocol.search import SearchHit, SearchResult
from covey.store.base import Store
from covey.store.everywhere import PlacedHit, PlacedHits
from covey.store.search_text import QUERY_CHARS, Hit


def check_query(query: str) -> None:
    """Raise BadRequest for what can find nothing: it would look as if there were nothing."""
    if not any(character.isalnum() for character in query):
        raise BadRequest("q needs at least one word: letters or digits", "empty_query")
    if len(query) > QUERY_CHARS:
        raise BadRequest(f"q may have at most {QUERY_CHARS} characters", "query_too_long")


def search(workspace_id: str, store: Store, query: str, limit: int, before: str = "") -> SearchResult:
    """Called where the store is read: one way there for all of it."""
    found = store.search(workspace_id, query, limit, before)
    rows = {hit.session_id: store.session(workspace_id, hit.session_id) for hit in (*found.titles, *found.messages)}
    sessions = {session_id: row.session for session_id, row in rows.items() if row}

    def shown(hits: tuple[Hit, ...]) -> tuple[SearchHit, ...]:
        return tuple(_shown(hit, sessions[hit.session_id]) for hit in hits if hit.session_id in sessions)

    return SearchResult(titles=shown(found.titles), messages=shown(found.messages), is_complete=found.is_complete)


def placed(found: PlacedHits) -> SearchResult:
    """What was found in all workspaces of a cluster."""

    def shown(hits: Sequence[PlacedHit]) -> tuple[SearchHit, ...]:
        return tuple(
            structs.replace(_shown(each.hit, each.session), workspace_id=each.workspace_id, path=each.path)
            for each in hits
        )

    return SearchResult(titles=shown(found.titles), messages=shown(found.messages), is_complete=True)


def _shown(hit: Hit, session: Session) -> SearchHit:
    return SearchHit(
        session_id=hit.session_id,
        title=session.title,
        snippet=hit.snippet,
        marks=hit.places,
        at=hit.at,
        message_id=hit.message_id or None,
        role=cast("Role | None", hit.role or None),
        archived=session.archived_at is not None,
    )
