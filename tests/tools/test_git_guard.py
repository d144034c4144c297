"""Git in a directory that came with a clone: what its files name is not run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from covey.permissions.judge import Judgement, Rules, Verdict, judge
from covey.permissions.safe_paths import Repository
from covey.tools.base import ToolContext
from covey.tools.bash import BashParams, bash_tool
from covey.tools.git_guard import guarded, repository_of
from covey.tools.processes import LocalProcesses

GUARD = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.bareRepository", "GIT_CONFIG_VALUE_0": "explicit"}


@pytest.mark.parametrize(
    ("env", "added"),
    [
        ({}, GUARD),
        ({"GIT_CONFIG_COUNT": "nonsense"}, GUARD),
        (
            {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "me"},
            {"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_1": "safe.bareRepository", "GIT_CONFIG_VALUE_1": "explicit"},
        ),
    ],
)
def test_the_guard_is_added_to_what_the_user_has_set(env: Mapping[str, str], added: Mapping[str, str]) -> None:
    assert guarded({"A": "b", **env}) == {"A": "b", **env, **added}


def bare_repository(directory: Path) -> Path:
    """As a clone can contain it: every file of it is an ordinary file."""
    for folder in ("objects", "refs"):
        (directory / folder).mkdir(parents=True)
        (directory / folder / "keep").touch()
    (directory / "HEAD").write_text("ref: refs/heads/main\n")
    (directory / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch ran\n"
    )
    return directory


def judged_git_status(context: ToolContext, root: Path) -> Judgement:
    intent = bash_tool(LocalProcesses()).intent(BashParams(command="git status"), replace(context, root=root))
    found = judge(intent, Rules(root=str(root)), frozenset(), skip=False)
    return Judgement(found.verdict, found.tag)


@pytest.mark.parametrize("inside", ["", "src/deep"])
def test_git_in_a_bare_repository_is_asked_about(tmp_path: Path, context: ToolContext, inside: str) -> None:
    root = bare_repository(tmp_path / "clone") / inside
    root.mkdir(parents=True, exist_ok=True)
    assert repository_of(root) is Repository.FOREIGN
    assert judged_git_status(context, root) == Judgement(Verdict.ASK, "repository")


@pytest.mark.parametrize("part", ["objects", "refs", "commondir"])
def test_a_part_of_a_bare_repository_is_enough(tmp_path: Path, part: str) -> None:
    (tmp_path / "HEAD").touch()
    assert repository_of(tmp_path) is Repository.OWN
    (tmp_path / part).mkdir()
    assert repository_of(tmp_path) is Repository.FOREIGN


def test_git_in_a_repository_of_its_own_is_not_asked_about(tmp_path: Path, context: ToolContext) -> None:
    (bare_repository(tmp_path) / "work" / ".git").mkdir(parents=True)
    root = tmp_path / "work"
    assert repository_of(root) is Repository.OWN
    assert judged_git_status(context, root) == Judgement(Verdict.ALLOW, "harmless")


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
@pytest.mark.parametrize("is_guarded", [False, True])
def test_a_guarded_git_runs_nothing_that_a_bare_repository_names(tmp_path: Path, is_guarded: bool) -> None:
    root = bare_repository(tmp_path / "clone")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(
        ["git", "status"], cwd=root, env=guarded(env) if is_guarded else env, check=False, capture_output=True
    )
    assert (root / "ran").exists() is not is_guarded, "without the guard it must run, or this test shows nothing"
