"""The shell is one of this machine, and reads text as it was judged: neither PATH nor the locale changes that."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from covey.config.schema import Config
from covey.engine.agent import Agent
from covey.machine.programs import find_program
from covey.permissions.judge import Rules, Verdict, decide
from covey.tools.base import ToolContext
from covey.tools.bash import BashParams, bash_tool
from covey.tools.locales import in_utf8
from covey.tools.processes import LocalProcesses


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that brings programs of its own along."""
    root = (tmp_path / "project").resolve()
    for directory in (root, root / "bin", root / "sub"):
        directory.mkdir()
        program = directory / "bash"
        program.write_text("#!/bin/sh\necho taken from the project\n")
        program.chmod(0o755)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "bash").symlink_to(root / "bash")
    return root


@pytest.mark.anyio
@pytest.mark.parametrize("entry", [".", "", "bin", "{root}", "{root}/bin", "{root}/../links"])
async def test_no_shell_is_taken_from_the_project(project: Path, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    path = f"{entry.format(root=project)}:{os.environ['PATH']}"
    output = await LocalProcesses(project).run_command(
        "echo of this machine", cwd=project / "sub", env={"PATH": path}, tag="t/1", timeout_s=20, output_limit=1000
    )
    assert output.output == "of this machine\n"
    monkeypatch.chdir(project)
    assert find_program("bash", entry.format(root=project), project) is None


@pytest.mark.anyio
async def test_the_agent_keeps_to_that(project: Path) -> None:
    env = {"PATH": f".:{project}:{os.environ['PATH']}", "LC_ALL": "zh_TW.BIG5"}
    agent = Agent("w", project, Config(), env)
    assert agent.env["LC_ALL"] == "C.UTF-8"
    bash = agent.tools["bash"]
    found = await bash.run(
        BashParams(command="echo of this machine"),
        ToolContext(project, "s", "r", "c", agent.env, "covey-test/r"),
    )
    assert found.content.startswith("of this machine")


@pytest.mark.parametrize(
    ("env", "locale"),
    [
        ({}, None),
        ({"LANG": "C"}, None),
        ({"LANG": "de_DE.UTF-8"}, None),
        ({"LANG": "de_DE.utf8@euro", "LC_ALL": ""}, None),
        ({"LC_ALL": "POSIX", "LANG": "zh_TW.BIG5"}, "POSIX"),
        ({"LANG": "zh_TW.BIG5"}, "C.UTF-8"),
        ({"LANG": "zh_TW"}, "C.UTF-8"),
        ({"LC_CTYPE": "ja_JP.SJIS", "LANG": "en_US.UTF-8"}, "C.UTF-8"),
        ({"LC_ALL": "zh_CN.GBK", "LANG": "en_US.UTF-8"}, "C.UTF-8"),
    ],
)
def test_only_a_locale_in_which_text_means_something_else_is_replaced(env: dict[str, str], locale: str | None) -> None:
    assert in_utf8(env).get("LC_ALL") == (locale if locale else env.get("LC_ALL"))
    assert {name: value for name, value in in_utf8(env).items() if name != "LC_ALL"} == {
        name: value for name, value in env.items() if name != "LC_ALL"
    }


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("git diff", True),
        ("git diff HEAD~1", True),
        ("git show HEAD", True),
        ("git log -p", True),
        ("git log -pn3", True),
        ("git log -U5", True),
        ("git stash list -p", True),
        ("git diff --", True),
        ("git diff .", False),
        ("git diff HEAD -- a.txt", False),
        ("git diff --relative", False),
        ("git show HEAD:./a.txt", False),
        ("git log -p -- .", False),
        ("git log --oneline", False),
        ("git log -n 5 --stat", False),
        ("git status", False),
        ("git ls-files", False),
    ],
)
def test_what_shows_content_of_the_repository_around_the_workspace_is_asked_about(
    tmp_path: Path, command: str, asked: bool
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    root = (tmp_path / "part").resolve()
    root.mkdir()
    for place, verdict in ((root, Verdict.ASK if asked else Verdict.ALLOW), (tmp_path.resolve(), Verdict.ALLOW)):
        here = ToolContext(place, "s", "r", "c", {}, "t")
        intent = bash_tool(LocalProcesses()).intent(BashParams(command=command), here)
        assert decide(intent, Rules(root=str(place)), frozenset(), skip=False) is verdict
