"""All directories of a git repository are one workspace, unless somebody says otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from covey.cli.directory import default_directory
from covey.cli.prompt_input import mentions_from_root
from tests.cli.conftest import Home


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    made = tmp_path / "code" / "birdhouse"
    (made / ".git").mkdir(parents=True)
    (made / "src" / "covey").mkdir(parents=True)
    return made


def test_the_root_of_the_repository_is_worked_on(repository: Path) -> None:
    assert default_directory(repository / "src" / "covey") == repository
    assert default_directory(repository) == repository


def test_a_worktree_and_a_submodule_are_repositories_of_their_own(repository: Path) -> None:
    inner = repository / "vendor"
    (inner / "deep").mkdir(parents=True)
    (inner / ".git").write_text("gitdir: ../.git/modules/vendor\n")
    assert default_directory(inner / "deep") == inner


def test_outside_of_a_repository_it_is_the_directory_itself(repository: Path) -> None:
    assert default_directory(repository.parent) == repository.parent


def test_home_and_what_is_above_it_is_never_taken(repository: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "notes").mkdir()
    assert default_directory(tmp_path / "notes") == tmp_path / "notes"
    assert default_directory(tmp_path) == tmp_path


def test_a_repository_of_somebody_else_is_not_taken(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    assert default_directory(repository / "src") == repository / "src"


def test_sessions_are_found_from_every_directory_of_the_repository(home: Home) -> None:
    (home.project / ".git").mkdir()
    below = home.project / "src"
    below.mkdir()
    root, home.project = home.project, below
    done = home.covey("run", "hello")
    assert done.returncode == 0
    assert f"Working on {root}, the git repository; --cwd . works on this directory alone." in done.stderr
    alone = home.covey("run", "--cwd", ".", "hello")
    assert "Working on" not in alone.stderr
    home.project = root
    assert len(home.sessions()) == 1
    assert "Working on" not in home.covey("run", "-c", "again").stderr
    assert len(home.sessions()) == 1


def test_a_mention_is_seen_from_where_it_was_typed(repository: Path) -> None:
    here = repository / "src"
    (here / "a.py").touch()
    (repository / "README.md").touch()
    for typed, sent in {
        "see @a.py, please": "see @src/a.py, please",
        "@a.py:10-20": "@src/a.py:10-20",
        "(@covey/)": "(@src/covey)",
        "@../README.md": "@README.md",
        "@README.md": "@README.md",
        "ann@a.py": "ann@a.py",
    }.items():
        assert mentions_from_root(typed, here, repository) == sent
        assert mentions_from_root(typed, repository, repository) == typed
