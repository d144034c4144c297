"""Three nodes on one PostgreSQL for each process of the tests; what they leave behind is judged by the oracle.

`server` is all of them at once: each request goes to another node (`tests/support/cluster.py`). One test after the
other uses the same ones, each with a directory of its own; who kills a node gets it back for the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster
from tests.support.fake_model import FakeModel
from tests.support.server import Workspace, provider_config, until


class ClusterLender:
    """Lends the same cluster to one test after the other."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = itertools.count()
        self._cluster: Cluster | None = None
        self.model = FakeModel()

    def lend(self) -> Cluster:
        if self._cluster is None:
            self._cluster = Cluster(self._directory, provider_config(self.model.url))
        self._cluster.start()
        self._cluster.project = self._directory / f"project-{next(self._numbers)}"
        self._cluster.project.mkdir()
        return self._cluster

    def take_back(self) -> None:
        """Nothing of a test goes on in the next one."""
        cluster = self._cluster
        assert cluster is not None
        cluster.start()
        until(lambda: _cancelled(cluster) == 0)
        cluster.retire_clients()
        self.model.reset()

    def close(self) -> None:
        if self._cluster:
            try:
                self._cluster.finish()
            finally:
                self._cluster.close()


def _cancelled(cluster: Cluster) -> int:
    """Cancel what is open; gives how much that was."""
    found = [
        run
        for state in ("accepted", "queued", "active")
        for run in cluster.request("GET", f"/v1/runs?state={state}").ok()
    ]
    for run in found:
        cluster.request("POST", f"/v1/workspaces/{run['workspace_id']}/runs/{run['run_id']}/cancel")
    return len(found) + cluster.all_open_runs()


@pytest.fixture(scope="session")
def cluster_lender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterLender]:
    lender = ClusterLender(tmp_path_factory.mktemp("cluster"))
    with lender.model:
        yield lender
        lender.close()


@pytest.fixture
def model(cluster_lender: ClusterLender) -> Iterator[FakeModel]:
    yield cluster_lender.model
    cluster_lender.model.reset()


@pytest.fixture
def server(cluster_lender: ClusterLender) -> Iterator[Cluster]:
    yield cluster_lender.lend()
    cluster_lender.take_back()


@pytest.fixture
def workspace(server: Cluster) -> Iterator[Workspace]:
    opened = server.workspace()
    yield opened
    opened.close()
