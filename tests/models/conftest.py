"""Fixtures for the tests of model clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.fake_model import FakeModel


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as model:
        yield model
