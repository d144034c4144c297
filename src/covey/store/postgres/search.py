"""Search in PostgreSQL: an index of words finds messages that may fit, and their texts decide, as in every store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from covey.protocol.messages import Message, Session
from covey.store.base import unknown_message
from covey.store.postgres.writes import tokens
from covey.store.search_text import Hit, Hits, Phrase, phrases, searched_text, snippet

PAGE = 100
SCANNED = 5_000
"""Rows looked at for one query. More only if in so many of the newest the words stand apart."""

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
        match = " & ".join(_lexeme(word) for phrase in wanted for word in _words(phrase))
        titles = () if before else self._titles(workspace_id, match, wanted, limit)
        return Hits(titles, self._said(workspace_id, match, wanted, limit, end), True)

    def _position_in(self, workspace_id: str, message_id: str) -> int:
        query = "SELECT position FROM messages WHERE workspace_id = $1 AND id = $2"
        for row in self._fetch(query, workspace_id, message_id):
            return int(row[0])
        raise unknown_message(message_id, "this workspace")

    def _titles(self, workspace_id: str, match: str, wanted: Sequence[Phrase], limit: int) -> tuple[Hit, ...]:
        query = (
            "SELECT value FROM sessions WHERE workspace_id = $1 AND words @@ $2::tsquery"
            " ORDER BY updated_at DESC, id DESC LIMIT $3"
        )
        sessions = [_session(row[0]) for row in self._fetch(query, workspace_id, match, SCANNED)]
        fitting = [session for session in sessions if _has_all(session.title, wanted)][:limit]
        return tuple(Hit(s.id, "", "", *snippet(s.title, wanted, tokens), s.updated_at) for s in fitting)

    def _said(self, workspace_id: str, match: str, wanted: Sequence[Phrase], limit: int, end: int) -> tuple[Hit, ...]:
        found: list[Hit] = []
        for message in self._candidates(workspace_id, match, end):
            text = searched_text(message)
            if _has_all(text, wanted):
                shown = snippet(text, wanted, tokens)
                found.append(Hit(message.session_id, message.id, message.role, *shown, message.created_at))
            if len(found) == limit:
                break
        return tuple(found)

    def _candidates(self, workspace_id: str, match: str, end: int) -> Iterator[Message]:
        query = (
            "SELECT m.position, m.value FROM messages m JOIN sessions s ON s.workspace_id = m.workspace_id"
            " AND s.id = m.session_id WHERE m.workspace_id = $1 AND m.words @@ $2::tsquery AND m.position < $3"
            " ORDER BY m.position DESC LIMIT $4"
        )
        for _ in range(SCANNED // PAGE):
            rows = self._fetch(query, workspace_id, match, end, PAGE)
            for position, value in rows:
                end = position
                yield _message(value)
            if len(rows) < PAGE:
                return


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
