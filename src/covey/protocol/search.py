"""What a search finds in sessions and messages, as it crosses the wire."""

from __future__ import annotations

from covey.protocol.messages import Role, Wire


class SearchHit(Wire, frozen=True):
    """A message with all words of a query in it, or the title of a session (then without `message_id` and `role`)."""

    session_id: str
    title: str
    """Of the session."""
    snippet: str
    """The part of the text around the first word that was found, on one line."""
    marks: tuple[tuple[int, int], ...]
    """Where in the snippet the words stand: start and end, in code points."""
    at: int
    """When the message was made, or the session last changed: unix seconds."""
    message_id: str | None = None
    role: Role | None = None
    archived: bool = False
    """The session was put aside."""
    workspace_id: str | None = None
    path: str | None = None
    """The directory of the workspace: both only where all of them were searched."""


class SearchResult(Wire, frozen=True, omit_defaults=False):
    """The newest first. `before=<message_id of the last one>` gives the messages that follow."""

    titles: tuple[SearchHit, ...]
    messages: tuple[SearchHit, ...]
    is_complete: bool
    """False: what an older version has written is still being taken up, and may be missing."""
