"""Who is connected to the store: a process that was killed closes its connections at once, long before its lease ends.

A hint, and pure. Nobody is missed who was never seen, as a pooler may hide connections; and whoever has lost the store
itself has seen nobody, since everybody else may have lost it too.
"""

from __future__ import annotations

from collections.abc import Set


class Attendance:
    """What one node has seen of the others."""

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._seen: set[str] = set()
        self._gone_since: dict[str, float] = {}
        self._connection = 0

    def saw(self, present: Set[str], connection: int, now: float) -> list[str]:
        """Who has been gone for longer than the grace. `connection`: a number that changes when the own one broke."""
        if connection != self._connection:
            self.forget()
            self._connection = connection
        self._seen |= present
        self._gone_since = {
            node_id: self._gone_since.get(node_id, now) for node_id in self._seen if node_id not in present
        }
        gone = [node_id for node_id, since in self._gone_since.items() if now - since >= self._grace_s]
        self._seen.difference_update(gone)
        return gone

    def forget(self) -> None:
        self._seen.clear()
        self._gone_since.clear()
