"""The examples and what docs/API.md shows, run as they stand, with a model that replays a script."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import covey
from tests.library.conftest import QUESTIONS, write_config

ROOT = Path(__file__).parents[2]
PYTEST = "python -m pytest -q --version"
SCRIPT: dict[str, Any] = {
    "replies": [
        {"when": "Which files", "steps": [[{"text": "There is one."}]]},
        {"when": "what are they for", "steps": [[{"text": "It is for you."}]]},
        {
            "when": "file with notes",
            "steps": [
                [{"tool": "write", "input": {"file_path": "notes.md", "content": "notes\n"}}],
                [{"text": "That is all."}],
            ],
        },
        {"when": "long story", "steps": [[{"text": "Once upon a time "}, {"hang": True}]]},
        {
            "when": "Run the tests",
            "steps": [
                [{"tool": "bash", "input": {"command": PYTEST}}, {"tool": "bash", "input": {"command": "touch x"}}],
                [{"text": "All is well.\nPASS"}],
            ],
        },
        {
            "when": "new shop",
            "steps": [[{"tool": "question", "input": QUESTIONS}], [{"text": "The store is SQLite."}]],
        },
        {"steps": [[{"text": "It is a project."}]]},
    ]
}


@pytest.fixture
def project(project: Path, home: Path) -> Path:
    """A directory whose user has this model."""
    write_config(home / "config" / "covey", SCRIPT)
    return project


def run_example(name: str, project: Path, *args: str) -> str:
    done = try_example(name, project, *args)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def try_example(name: str, project: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *args],
        cwd=project, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip


def test_one_answer_in_a_script(project: Path) -> None:
    try:
        assert run_example("one_answer.py", project, "What", "is", "this?") == "It is a project.\n"
    finally:
        stop = subprocess.run([sys.executable, "-m", "covey", "stop"], capture_output=True, text=True, check=False)
    assert "has ended" in stop.stdout


def test_a_notebook_has_prompt_stream_permission_second_face_and_cancel_in_one_process(project: Path) -> None:
    assert run_example("notebook.py", project).splitlines() == [
        "answer: There is one.",
        "It is for you.",
        "asked: Write notes.md",
        "permission: That is all.",
        "cancel: cancelled by supervisor",
    ]
    assert (project / "notes.md").read_text() == "notes\n"


def test_a_check_in_ci_has_the_rules_that_it_brings_and_no_others(project: Path) -> None:
    assert run_example("ci_check.py", project) == "All is well.\nPASS\n"
    assert not (project / "x").exists()
    assert try_example("ci_check.py", project).stderr == "denied: bash {'command': 'touch x'}\n"


def test_without_a_model_an_example_says_so_and_a_check_exits_as_it_promises(project: Path, home: Path) -> None:
    (home / "config" / "covey" / "config.toml").unlink()
    try:
        for name, code in (("ci_check.py", 2), ("notebook.py", 1), ("one_answer.py", 1)):
            done = try_example(name, project)
            assert (done.returncode, done.stdout) == (code, ""), done.stderr
            assert "model" in done.stderr and "Traceback" not in done.stderr
    finally:
        subprocess.run([sys.executable, "-m", "covey", "stop"], capture_output=True, check=False)


SNIPPETS = re.findall(r"<!-- run -->\n```python\n(.*?)```", (ROOT / "docs" / "API.md").read_text(), re.DOTALL)


SAID = ["It is a project.", "completed", "That is all.", "The store is SQLite."]


@pytest.mark.parametrize(("snippet", "said"), [*zip(SNIPPETS, SAID, strict=True)])
def test_what_the_document_shows_works(
    snippet: str, said: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    names: dict[str, Any] = {"covey": covey}
    exec(f"async def shown():\n{textwrap.indent(snippet, '    ')}", names)
    asyncio.run(names["shown"]())
    assert said in capsys.readouterr().out


def test_the_document_names_what_there_is() -> None:
    text = (ROOT / "docs" / "API.md").read_text()
    assert set(re.findall(r"\bcovey\.([A-Za-z_]+)", text)) <= {*covey.__all__}
    others = {"host", "data_dir", "temporary", "config_file", "name", "path", "network", "kind", "delta", "end"}
    assert set(re.findall(r"\b(\w+)=", text)) - others <= set(covey.PromptOptions.__annotations__)
