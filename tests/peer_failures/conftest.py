"""One server, one fake model and one workspace for the whole folder. Each test has sessions of its own."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.fake_model import FakeModel
from tests.support.server import Server, Workspace, running

CONFIG = """
[providers.fake]
type = "openai-compatible"
base_url = "{url}"
idle_timeout_s = 20
models = [{{ id = "fake", price_prompt = 3.0, price_completion = 15.0 }}]
[permissions]
allow = ["bash"]
"""
"""The only provider has the only model, which a project may overrule. Commands need no approval, files do."""

NewRunId = Callable[[], str]


def ask(text: str, *replies: dict[str, Any]) -> str:
    """A prompt that tells the fake model what to reply, call by call."""
    return f"{text} [{json.dumps(replies)}]" if replies else text


def bash(command: str) -> dict[str, Any]:
    """A reply that runs this command."""
    return {"text": "", "tools": [{"name": "bash", "input": {"command": command}}]}


SILENCE: dict[str, Any] = {"text": "half ", "ending": "silence"}
"""A reply that begins, and then says nothing more."""


@pytest.fixture(scope="session")
def model() -> Iterator[FakeModel]:
    with FakeModel() as fake:
        yield fake


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("peers"), CONFIG.format(url=model.url)) as started:
        yield started


@pytest.fixture
def workspace(server: Server) -> Iterator[Workspace]:
    """The one workspace, as a client of its own."""
    opened = server.workspace()
    yield opened
    opened.close()


@pytest.fixture
def colleague(server: Server) -> Iterator[Workspace]:
    """The same workspace, as somebody else holds it."""
    opened = server.workspace()
    yield opened
    opened.close()


_numbers = itertools.count(1)


@pytest.fixture
def new_run_id() -> NewRunId:
    """Run ids that no other test of the folder uses."""
    return lambda: f"peer-{next(_numbers)}"
