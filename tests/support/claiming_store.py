"""The store on PostgreSQL for tests that know nothing of nodes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from covey.store.base import Change, RunExists
from covey.store.postgres.nodes import NodeRow, NodeTable
from covey.store.postgres.store import PostgresStore


class ClaimingStore(PostgresStore):
    """One whose server claims what it writes about, as one does that opens workspaces."""

    def __init__(self, url: str, owner: str = "one") -> None:
        super().__init__(url, owner)
        self.nodes = NodeTable(url, 9.0)
        self.nodes.join(NodeRow(owner, owner, owner, "http://127.0.0.1:1"))
        self.fences: dict[str, int] = {}

    def claim(self, workspace_id: str) -> int:
        fence = self.nodes.claim(workspace_id)
        assert fence
        self.fences[workspace_id] = fence
        return fence

    def commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
        for change in changes:
            if change.workspace_id not in self.fences:
                self.claim(change.workspace_id)
        return super().commit([structs.replace(change, fence=self.fences[change.workspace_id]) for change in changes])

    def close(self) -> None:
        self.nodes.close()
        super().close()
