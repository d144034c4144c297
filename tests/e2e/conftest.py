"""A server process, a fake model and a client for each end-to-end test; the oracle judges what is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fake_model import FakeModel
from tests.support.server import Server, Workspace, provider_config, running


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as fake:
        yield fake


@pytest.fixture
def server(tmp_path: Path, model: FakeModel) -> Iterator[Server]:
    with running(tmp_path, provider_config(model.url)) as started:
        yield started


@pytest.fixture
def workspace(server: Server) -> Iterator[Workspace]:
    opened = server.workspace()
    yield opened
    opened.close()
