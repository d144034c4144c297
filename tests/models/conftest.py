"""Fixtures for the tests of model clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from covey.models import lessons, retry
from tests.support.fake_model import FakeModel


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Both loops: the server runs on uvloop, which differs in when it says what."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture(autouse=True)
def nothing_learned() -> Iterator[None]:
    yield
    lessons.forget_all()  # the next server may have the same address


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as model:
        yield model


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again at once."""
    monkeypatch.setattr(retry, "BASE_DELAY_S", 0.001)
