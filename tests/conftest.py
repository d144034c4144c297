"""Fixtures that every test may use, and how examples are made up."""

from __future__ import annotations

import sys

import pytest
from hypothesis import HealthCheck, settings

# The same examples each time, however long a busy machine takes for one of them: what fails here fails everywhere.
# `pytest --hypothesis-profile=default` makes up others.
settings.register_profile(
    "steady", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def pytest_sessionfinish() -> None:
    """Whoever was the last to use the PostgreSQL that the tests share ends it."""
    if used := sys.modules.get("tests.support.postgres"):
        used.leave()
