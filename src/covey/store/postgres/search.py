"""Search in PostgreSQL: an index of words finds messages that may fit, and their texts decide, as in every store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from covey.protocol.messages import Message, Session
from covey.store.base import unknown_message
from covey.store.everywhere import PlacedHit, PlacedHits
from covey.store.postgres.writes import tokens
from covey.store.search_text import Hit, Hits, Phrase, phrases, searched_text, snippet

PAGE = 100
SCANNED = 5_000
"""Rows looked at for one query. More only if in so many of the newest the words stand apart."""

NOTHING = PlacedHits([], [])
_session = msgspec.json.Decoder(Session).decode
_message = msgspec.json.Decoder(Message).decode


class ReadsWords(ABC):
    @abstractmethod
    def _fetch(self, query: str, *values: Any) -> Sequence[Any]: ...

    def search(self, workspace_id: str, query: str, limit: int, before: str = "") -> Hits:
        end = self._position_in(workspace_id, before) if before else 2**62
        wanted = phrases(query, tokens)
        if not wanted:
            return Hits((), (), True)
        titles = [] if before else self._titles(workspace_id, wanted, limit)
        messages = self._said(workspace_id, wanted, limit, end)
        return Hits(tuple(found.hit for found in titles), tuple(found.hit for found in messages), True)

    def search_everywhere(self, query: str, limit: int) -> PlacedHits:
        wanted = phrases(query, tokens)
        return PlacedHits(self._titles("", wanted, limit), self._said("", wanted, limit)) if wanted else NOTHING

    def _position_in(self, workspace_id: str, message_id: str) -> int:
        query = "SELECT position FROM messages WHERE workspace_id = $1 AND id = $2"
        for row in self._fetch(query, workspace_id, message_id):
            return int(row[0])
        raise unknown_message(message_id, "this workspace")

    def _titles(self, workspace_id: str, wanted: Sequence[Phrase], limit: int) -> list[PlacedHit]:
        """In one workspace, or in all ('')."""
        query = (
            "SELECT s.workspace_id, w.path, s.value FROM sessions s LEFT JOIN workspaces w ON w.id = s.workspace_id"  # noqa: S608
            f" WHERE s.words @@ $1::tsquery AND {_within(workspace_id, 's', 3)}"
            " ORDER BY s.updated_at DESC, s.id DESC LIMIT $2"
        )
        rows = self._fetch(query, _match(wanted), SCANNED, *filter(None, (workspace_id,)))
        found = ((place, path, _session(value)) for place, path, value in rows)
        fitting = [(place, path, s) for place, path, s in found if _has_all(s.title, wanted)][:limit]
        return [
            PlacedHit(place, path, s, Hit(s.id, "", "", *snippet(s.title, wanted, tokens), s.updated_at))
            for place, path, s in fitting
        ]

    def _said(self, workspace_id: str, wanted: Sequence[Phrase], limit: int, end: int = 2**62) -> list[PlacedHit]:
        found: list[PlacedHit] = []
        for place, path, session, message in self._candidates(workspace_id, _match(wanted), end):
            text = searched_text(message)
            if _has_all(text, wanted):
                shown = snippet(text, wanted, tokens)
                hit = Hit(message.session_id, message.id, message.role, *shown, message.created_at)
                found.append(PlacedHit(place, path, _session(session), hit))
            if len(found) == limit:
                break
        return found

    def _candidates(self, workspace_id: str, match: str, end: int) -> Iterator[tuple[str, str, bytes, Message]]:
        query = (
            "SELECT m.position, m.workspace_id, w.path, s.value, m.value FROM messages m JOIN sessions s"  # noqa: S608 ours
            " ON s.workspace_id = m.workspace_id AND s.id = m.session_id"
            " LEFT JOIN workspaces w ON w.id = m.workspace_id"
            f" WHERE m.words @@ $1::tsquery AND m.position < $2 AND {_within(workspace_id, 'm', 4)}"
            " ORDER BY m.position DESC LIMIT $3"
        )
        for _ in range(SCANNED // PAGE):
            rows = self._fetch(query, match, end, PAGE, *filter(None, (workspace_id,)))
            for position, place, path, session, value in rows:
                end = position
                yield place, path, session, _message(value)
            if len(rows) < PAGE:
                return


def _within(workspace_id: str, table: str, number: int) -> str:
    """In one workspace, or in all ('')."""
    return f"{table}.workspace_id = ${number}" if workspace_id else "true"


def _match(wanted: Sequence[Phrase]) -> str:
    return " & ".join(_lexeme(word) for phrase in wanted for word in _words(phrase))


def _words(phrase: Phrase) -> list[str]:
    *whole, last = phrase.words
    return [*whole, f"{last}:*" if phrase.is_prefix else last]


def _lexeme(word: str) -> str:
    """A word has letters and digits alone, so it needs no more than quotes."""
    name, sign, prefix = word.partition(":")
    return f"'{name}'{sign}{prefix}"


def _has_all(text: str, wanted: Sequence[Phrase]) -> bool:
    found = tokens(text)
    return all(any(phrase.matches(found, place) for place in range(len(found))) for phrase in wanted)
