"""A few blows, as `make chaos` deals them for as long as one likes: nothing is lost, doubled or out of order."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.chaos.run import Plan, run
from tests.support.effort import bound

LEASE_S = 3.0


@pytest.mark.larger
@pytest.mark.timeout(900)
def test_n3_n4_n5_n6_n10_a_cluster_that_is_struck_again_and_again_loses_nothing(tmp_path: Path) -> None:
    plan = Plan(seconds=bound(300.0, 600.0), seed=15, lease_s=LEASE_S, workspaces=6, faults=bound(4, 40))
    result = asyncio.run(run(plan, tmp_path))
    assert result.is_good, "\n".join(result.lines())
    assert len(result.faults) >= plan.faults and result.verdict.accepted > 20
