"""Fixtures that every test may use, and how examples are made up."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

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


LEFT_S = 20.0
"""Of the time that a test has: for what it used to be closed in."""


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """An asynchronous test that hangs ends by itself, before it is stopped from outside.

    Then it would go on in its loop, where whatever closes its fixtures waits for its turn: its worker would hang.
    """
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            marker, config = item.get_closest_marker("timeout"), item.config
            seconds = marker.args[0] if marker else config.getoption("timeout") or config.getini("timeout")
            item.obj = _ended_after(item.obj, float(seconds) - LEFT_S)


def _ended_after(test: Callable[..., Awaitable[None]], seconds: float) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def ended(*args: Any, **kwargs: Any) -> None:
        async with asyncio.timeout(seconds):
            await test(*args, **kwargs)

    return ended


def pytest_sessionfinish() -> None:
    """Whoever was the last to use the PostgreSQL that the tests share ends it."""
    if used := sys.modules.get("tests.support.postgres"):
        used.leave()
