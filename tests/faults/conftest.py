"""One server and one fake model for all the tests of a file: the faults are in between."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fake_model import FakeModel
from tests.support.server import Server, provider_config, running


@pytest.fixture(scope="module")
def model() -> Iterator[FakeModel]:
    with FakeModel() as fake:
        yield fake


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("faults"), provider_config(model.url)) as started:
        yield started
