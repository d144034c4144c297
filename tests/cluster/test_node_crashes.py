"""A node is killed at each of its commits in turn, or its connection cut there, under load: nothing promised is lost.

The load is that of one server (`tests/e2e/test_crash_at_every_commit.py`). What a commit is, the proxy in front of
PostgreSQL knows: the node is killed before the statement arrives, or when it was carried out and nobody was told.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.test_crash_at_every_commit import ALLOW, Load, answer, processes_left
from tests.support.cluster import Cluster
from tests.support.commit_proxy import Action, CommitProxy
from tests.support.effort import IS_HEAVY, bound
from tests.support.fake_model import FakeModel
from tests.support.postgres import postgres
from tests.support.server import provider_config

STRIDE = bound(15, 1)
"""From one commit that is struck to the next."""


def strike(directory: Path, action: Action, number: int) -> bool:
    """One life with a fault, one without, then the verdict. True if the fault never came about."""
    directory.mkdir()
    load = Load()
    with FakeModel(answer) as model, CommitProxy(postgres().port) as proxy:
        server = Cluster(directory, provider_config(model.url, ALLOW), names=("a",))
        server.may_log_errors = True
        server.url = postgres().tcp_url(urlsplit(server.url).path.lstrip("/"), proxy.port)
        (node,) = server.nodes
        try:
            server.start()
            proxy.decide = lambda n, at=number + proxy.commits: action if n == at else "pass"  # type: ignore[misc]
            proxy.on_strike = lambda: os.kill(node.pid, signal.SIGKILL)
            load.run(server)
            was_struck = bool(proxy.struck)
            if node.process and node.process.poll() is None and action not in ("before", "after"):
                load.check(server, model)  # its connection was cut, and nobody has noticed
                node.stop()
            elif node.process:
                node.process.kill()
                node.wait()
            server.start()
            load.check(server, model)
            server.finish()
            assert not processes_left()
        finally:
            server.close()
    return not was_struck


@pytest.mark.larger
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("action", "first"),
    [
        ("before", 3),
        ("swallow", 9),
        pytest.param("after", 7, marks=pytest.mark.heavy),
        pytest.param("hold", 11, marks=pytest.mark.heavy),
    ],
)
def test_n3_n6_killed_or_cut_off_at_every_commit(tmp_path: Path, action: Action, first: int) -> None:
    number = 1 if IS_HEAVY else first
    while not strike(tmp_path / str(number), action, number):
        number += STRIDE
    assert number > 12, f"the load has only {number} commits"  # it waits for at least so many, one after the other
