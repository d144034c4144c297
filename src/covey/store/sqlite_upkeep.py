"""What the SQLite store does when nobody waits: each time a small piece, in a transaction of its own."""

from __future__ import annotations

import apsw

from covey.store import sqlite_search
from covey.store.sqlite_conversations import Conversations

TRIM_BATCH = 5_000
"""Events forgotten in one transaction."""
FREE_PAGES_KEPT = 2_048
"""Pages without content that stay in the file, to be used again: 8 MiB. Further ones are given back to the disk."""
VACUUM_PAGES = 256
"""Of those, how many in one transaction."""
INCREMENTAL = 2
"""How SQLite numbers the mode in which a file can be shortened piece by piece."""


class Upkeep:
    """Old events, what dropped sessions have left, the index for search, and the length of the file."""

    def __init__(self, connection: apsw.Connection, conversations: Conversations, *, is_searched: bool) -> None:
        self._connection = connection
        self._conversations = conversations
        self._is_filling = is_searched
        self.is_due = True
        """There may be something to do."""
        self._untrimmed: dict[str, int] = {}
        """By workspace: up to which event the log is still to be trimmed."""

    def piece(self) -> bool:
        """Do one piece, in the caller's transaction; False: there is nothing to do."""
        self.is_due = self._trim() or self._conversations.collect() or self._fill() or self._give_back()
        return self.is_due

    def trim(self, workspace_id: str, upto: int) -> None:
        """Forget events up to this one: a batch now, the rest piece by piece."""
        self._untrimmed[workspace_id] = upto
        self.is_due = True
        self._trim()

    def _trim(self) -> bool:
        for workspace_id, upto in self._untrimmed.items():
            execute = self._connection.cursor().execute
            first = execute("SELECT min(seq) FROM events WHERE workspace_id = ?", (workspace_id,)).get or 0
            end = min(upto, first + TRIM_BATCH - 1)
            execute("DELETE FROM events WHERE workspace_id = ? AND seq <= ?", (workspace_id, end))
            if end == upto:
                del self._untrimmed[workspace_id]
            return True
        return False

    def _fill(self) -> bool:
        self._is_filling = self._is_filling and sqlite_search.fill(self._connection)
        return self._is_filling

    def _give_back(self) -> bool:
        """Shorten the file by pages that nothing needs. One that an older Covey has made cannot be shortened so."""
        free = self._connection.pragma("freelist_count") - FREE_PAGES_KEPT
        if free <= 0 or self._connection.pragma("auto_vacuum") != INCREMENTAL:
            return False
        self._connection.execute(f"PRAGMA incremental_vacuum({min(free, VACUUM_PAGES)})").fetchall()
        return True
