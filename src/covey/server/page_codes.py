"""One-time codes: what a page shows to get a token of its own. They live in memory, for a minute."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

CODE_BYTES = 16
CODE_S = 60
"""Long enough for a browser to start; it may be seen on a command line for a moment."""
MOST_ALIVE = 5
WRONG_TRIES = 10
"""After so many, all codes that are alive die: nobody mistypes a link."""


@dataclass(frozen=True, slots=True)
class _Code:
    text: str
    dies_at: float
    workspace_id: str


class PageCodes:
    """The codes that are alive, the oldest first."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._alive: list[_Code] = []
        self._wrong = 0

    def make(self, workspace_id: str) -> str:
        """A new one; of too many, the oldest dies."""
        code = _Code(secrets.token_urlsafe(CODE_BYTES), self._now() + CODE_S, workspace_id)
        self._alive = [*self._living(), code][-MOST_ALIVE:]
        self._wrong = 0 if len(self._alive) == 1 else self._wrong
        return code.text

    def redeem(self, text: str) -> str | None:
        """The workspace that the code was made for; None: there is no such code, or not any more."""
        self._alive = self._living()
        # All are compared, in constant time: how long it takes says nothing about any of them.
        found = [code for code in self._alive if hmac.compare_digest(code.text.encode(), text.encode())]
        if found:
            self._alive.remove(found[0])
            return found[0].workspace_id
        self._wrong += 1
        if self._wrong >= WRONG_TRIES:
            self._alive, self._wrong = [], 0
        return None

    def _living(self) -> list[_Code]:
        now = self._now()
        return [code for code in self._alive if code.dies_at > now]
