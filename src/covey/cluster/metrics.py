"""What GET /metrics says of a node beside what every server says: its lease, what it owns, and the store."""

from __future__ import annotations

from collections.abc import Iterable

from covey.cluster.node import Node
from covey.store.postgres.store import PostgresStore


def lines(node: Node, store: PostgresStore, owned: int) -> Iterable[str]:
    figures = store.figures
    yield from _metric("cluster_node", "gauge", {f'{{node="{node.name}"}}': 1})
    yield from _metric("cluster_lease_left_seconds", "gauge", {"": round(node.lease_left_s(), 3)})
    yield from _metric("cluster_workspaces_owned", "gauge", {"": owned})
    yield from _metric("cluster_draining", "gauge", {"": int(node.draining)})
    commits = figures.commits
    yield from _metric("store_commit_seconds", "summary", {"_sum": round(figures.seconds, 6), "_count": commits})
    yield from _metric("store_commit_changes", "summary", {"_sum": figures.changes, "_count": commits})
    yield from _metric("store_commits_in_doubt_total", "counter", {"": figures.in_doubt})
    yield from _metric("store_commits_in_doubt_made_total", "counter", {"": figures.made})
    yield from _metric("store_commits_fenced_total", "counter", {"": figures.fenced})


def _metric(name: str, kind: str, values: dict[str, float]) -> Iterable[str]:
    """`values` by what is added to the name."""
    yield f"# TYPE covey_{name} {kind}\n"
    yield from (f"covey_{name}{added} {value}\n" for added, value in values.items())
