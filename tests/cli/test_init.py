"""`covey init`: the agent writes AGENTS.md, through a real server."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest

from covey.cli import exits, init
from covey.cli.init import instruction
from covey.cli.main import build_parser
from tests.cli.conftest import Home

WRITES: list[list[dict[str, Any]]] = [
    [{"tool": "write", "input": {"file_path": "AGENTS.md", "content": "# Birds\n"}}],
    [{"text": "Written."}],
]
UPDATES: list[list[dict[str, Any]]] = [
    [{"tool": "view", "input": {"file_path": "AGENTS.md"}}],
    [{"tool": "edit", "input": {"file_path": "AGENTS.md", "old_string": "Birds", "new_string": "Fish"}}],
    [{"text": "Changed."}],
]


@pytest.fixture
def author(own_home: Home) -> Home:
    """A home whose model writes the file when it is asked to."""
    script = {"replies": [{"when": "There is an AGENTS.md", "steps": UPDATES}, {"when": "AGENTS.md", "steps": WRITES}]}
    (own_home.config.parents[2] / "script.json").write_text(json.dumps(script))
    return own_home


def test_the_agent_writes_the_file_once_and_updates_it_when_asked_to(author: Home) -> None:
    file = author.project / "AGENTS.md"
    done = author.covey("init", "--yolo", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Written." in done.stdout
    assert file.read_text() == "# Birds\n"
    refused = author.covey("init", "--yolo")
    assert refused.returncode == exits.USAGE
    assert "there is an AGENTS.md here already; --force" in refused.stderr
    assert len(author.sessions()) == 1
    assert author.covey("init", "--yolo", "--force", "-q").returncode == 0
    assert file.read_text() == "# Fish\n"


def test_what_the_agent_is_asked_stands_in_its_session(author: Home) -> None:
    author.covey("init", "--yolo", "-q", stdin="Mind the birds.\n")
    (session,) = author.sessions()
    prompt = author.messages(session["id"])[0]["parts"][0]["data"]["text"]
    assert prompt == f"Mind the birds.\n\n{instruction(update=False)}"


def test_without_leave_to_write_it_says_that_there_is_no_file(author: Home) -> None:
    done = author.covey("init", "-q")  # nobody is there to be asked
    assert done.returncode == exits.FAILED
    assert "there is no AGENTS.md: was it not allowed to write? See --yolo." in done.stderr
    assert not (author.project / "AGENTS.md").exists()


def test_where_it_was_allowed_to_write_the_answer_is_pointed_to(capsys: pytest.CaptureFixture[str]) -> None:
    args = build_parser().parse_args(["init", "--yolo", "--cwd", "/nowhere"])
    with mock.patch("covey.cli.init.run.main", return_value=exits.OK):
        assert init.main(args) == exits.FAILED
    said = capsys.readouterr().err
    assert "there is no AGENTS.md: its answer may say why." in said and "--yolo" not in said


def test_without_a_model_it_says_so(own_home: Home) -> None:
    own_home.config.write_text('[providers.empty]\ntype = "scripted"\n')
    done = own_home.covey("init", "--yolo")
    assert done.returncode == exits.FAILED
    assert "no usable model" in done.stderr
    assert own_home.sessions() == []


def test_without_a_server_it_says_so(home: Home) -> None:
    done = home.covey("init", "--host", "tcp://127.0.0.1:1")
    assert done.returncode == exits.UNREACHABLE
    assert "No Covey server answers" in done.stderr


def test_another_directory_can_be_given(author: Home) -> None:
    other = author.project / "other"
    other.mkdir()
    assert author.covey("init", "--yolo", "-q", "--cwd", "other").returncode == 0
    assert (other / "AGENTS.md").exists()
    assert author.covey("init", "--yolo", "-q", "--cwd", "other").returncode == exits.USAGE
