"""Covey as a program uses it, by both ways in: a real server process, and a server in the process of the test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

import covey
from tests.support import oracle
from tests.support.server import Server, running

QUESTION = {"questions": [{"type": "yes_no", "question": "Shall I?"}]}
STORES = [{"label": "SQLite"}, {"label": "PostgreSQL"}]
TESTS = [{"label": "unit"}, {"label": "all"}, {"label": "load"}]
QUESTIONS = {
    "questions": [
        {"type": "single_choice", "question": "Which store?", "choices": STORES},
        {"type": "multi_choice", "question": "Which tests?", "choices": TESTS},
        {"type": "yes_no", "question": "With types?"},
        {"type": "free_text", "question": "Its name?"},
    ]
}
SCRIPT = {
    "replies": [
        {
            "when": "make (\\w+)",
            "steps": [
                [{"text": "I make a file. "}, {"tool": "bash", "input": {"command": "touch made"}}],
                [{"text": "Done."}],
            ],
        },
        {"when": "ask me much", "steps": [[{"tool": "question", "input": QUESTIONS}], [{"text": "Done."}]]},
        {"when": "ask me", "steps": [[{"tool": "question", "input": QUESTION}], [{"text": "Done."}]]},
        {"when": "hang", "steps": [[{"text": "one two "}, {"hang": True}]]},
        {"when": "fail", "steps": [[{"error": "the model broke"}]]},
        {"when": "long", "steps": [[{"reasoning": "hm"}, {"text": "wörd 😀 ", "repeat": 500}]]},
        {"steps": [[{"text": "You said: ${prompt}"}, {"usage": [10, 5]}]]},
    ]
}
CONFIG = """
[models]
large = "scripted/default"
[providers.scripted]
type = "scripted"
script = "{script}"
models = [{{ id = "default" }}]
"""


def write_config(directory: Path, script: dict[str, Any] = SCRIPT) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "script.json").write_text(json.dumps(script))
    config = directory / "config.toml"
    config.write_text(CONFIG.format(script=directory / "script.json"))
    return config


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own files are none of a test's business."""
    home = tmp_path / "home"
    home.mkdir()
    for name, place in (("HOME", ""), ("XDG_CONFIG_HOME", "config"), ("XDG_DATA_HOME", "share")):
        monkeypatch.setenv(name, str(home / place))
    return home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    return place


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("served")
    with running(directory, write_config(directory / "config").read_text()) as started:
        yield started


Enter = Callable[[str], AbstractAsyncContextManager[covey.WorkspaceClient]]


@pytest.fixture(params=["connect", "open"])
def enter(request: pytest.FixtureRequest, project: Path, tmp_path: Path) -> Iterator[Enter]:
    """Ways in to the workspace of the project, under a name."""
    if request.param == "connect":
        served: Server = request.getfixturevalue("server")
        where = {"host": f"tcp://127.0.0.1:{served.port}", "token_file": served.data_dir / "token"}
        yield lambda name: covey.connect(project, name=name, **where)  # type: ignore[arg-type]
        return
    data_dir, config = tmp_path / "data", write_config(tmp_path / "config")
    yield lambda name: covey.open(project, data_dir=data_dir, config_file=config, name=name)
    oracle.check(data_dir, all_ended=True)


@pytest.fixture
async def client(enter: Enter) -> AsyncIterator[covey.WorkspaceClient]:
    async with enter("a test") as entered:
        yield entered
