"""A server process, a fake model and a client for each end-to-end test; the oracle judges what is left behind.

A module that only talks to its workspace borrows a server (`pytestmark = pytest.mark.borrows_server`): one after the
other its tests use the same process and the same fake model, each with a directory of its own. Another configuration is
a fixture `server_config` of the module's own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fake_model import FakeModel
from tests.support.server import Server, Workspace, provider_config, running, until


class Lender:
    """Lends one server after the other: the same one again, unless a test has stopped it or wants another."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = itertools.count()
        self._server: Server | None = None
        self._config = ""
        self.model = FakeModel()

    def lend(self, config: str) -> Server:
        number = next(self._numbers)
        if config != self._config:
            self.close()
            self._config = config
        if self._server is None:
            directory = self._directory / str(number)
            directory.mkdir()
            self._server = Server(directory, config)
            self._server.start()
        self._server.project = self._server.directory / f"project-{number}"
        self._server.project.mkdir()
        return self._server

    def take_back(self) -> None:
        """Nothing of a test goes on in the next one."""
        server, self._server = self._server, None
        if server is None or server.process is None or server.may_log_errors:
            _finish(server)
            return
        open_runs = [
            run for state in ("queued", "active") for run in server.request("GET", f"/v1/runs?state={state}").ok()
        ]
        for run in open_runs:
            path = f"/v1/workspaces/{run['workspace_id']}/runs/{run['run_id']}/cancel"
            server.request("POST", path).ok()
        until(lambda: server.all_open_runs() == 0)
        self.model.reset()
        self._server = server

    def close(self) -> None:
        server, self._server = self._server, None
        _finish(server)


def _finish(server: Server | None) -> None:
    if server:
        try:
            server.finish()
        finally:
            server.close()


def _borrows(request: pytest.FixtureRequest) -> bool:
    return request.node.get_closest_marker("borrows_server") is not None


@pytest.fixture(scope="session")
def lender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lender]:
    lender = Lender(tmp_path_factory.mktemp("lender"))
    with lender.model:
        yield lender
        lender.close()


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Iterator[FakeModel]:
    if _borrows(request):
        yield request.getfixturevalue("lender").model
    else:
        with FakeModel() as fake:
            yield fake


@pytest.fixture
def server_config(model: FakeModel) -> str:
    return provider_config(model.url)


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path, server_config: str) -> Iterator[Server]:
    if _borrows(request):
        lender: Lender = request.getfixturevalue("lender")
        yield lender.lend(server_config)
        lender.take_back()
    else:
        with running(tmp_path, server_config) as started:
            yield started


@pytest.fixture
def workspace(server: Server) -> Iterator[Workspace]:
    opened = server.workspace()
    yield opened
    opened.close()
