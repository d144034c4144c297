"""All directories of a git repository are one workspace, unless somebody says otherwise."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from covey.cli.directory import default_directory
from covey.client.cwd import cwd_in, seen_from
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
    assert home.covey("run", "--json", "-C", "hello").stderr == "", "it is for people"
    home.project = root
    assert len(home.sessions()) == 1
    assert "Working on" not in home.covey("run", "-c", "again").stderr
    assert len(home.sessions()) == 1


@pytest.fixture
def below(home: Home) -> Path:
    """The directory below the root of a repository that commands are given in."""
    (home.project / ".git").mkdir()
    (home.project / "README.md").write_text("of the root\n")
    home.project = home.project / "src"
    home.project.mkdir()
    (home.project / "a.py").write_text("below = True\n")
    return home.project


def test_the_model_is_told_where_its_user_is(home: Home, below: Path) -> None:
    told = """(I am in 'src' of the workspace as I write this: "here" and relative paths may mean there.)"""
    assert home.covey("run", "fix the tests here").stdout == f"You said: fix the tests here\n\n{told}\n"
    assert told in home.covey("--plain", stdin="fix it here\n").stdout
    assert told not in home.covey("run", "--cwd", ".", "hello").stdout, "then it is the workspace"
    home.project = below.parent
    assert told not in home.covey("run", "hello").stdout


def test_it_can_also_be_told_by_who_steers_a_run(home: Home, below: Path) -> None:
    run_id = home.covey("run", "--detach", "hang").stdout.strip()
    assert home.covey("runs", "say", run_id, "look at @a.py here").returncode == 0
    said = json.loads(home.covey("runs", "--json").stdout)
    assert [run["options"]["cwd"] for run in said] == ["src", "src"]
    assert home.covey("runs", "cancel", run_id).returncode == 0


def test_mentions_and_attachments_are_files_of_where_they_are_typed(home: Home, below: Path) -> None:
    done = home.covey("run", "-a", "a.py", "see @a.py, @../README.md and @README.md; not @gone.py")
    assert "there is no file gone.py here" in done.stderr and done.stderr.count("there is no file") == 1
    prompt = home.messages(home.sessions()[0]["id"])[0]
    assert prompt["cwd"] == "src"
    assert prompt["parts"][0]["data"]["text"].startswith("see @a.py, "), "it stays as it was written"
    assert [part["data"]["Path"] for part in prompt["parts"][1:]] == [str(below / "a.py"), "src/a.py", "README.md"]


@pytest.mark.parametrize(
    ("current", "expected"), [("src/covey", "src/covey"), (".", ""), ("..", ""), ("../birdhouse-2", "")]
)
def test_where_one_is_in_a_workspace(
    repository: Path, monkeypatch: pytest.MonkeyPatch, current: str, expected: str
) -> None:
    (repository / current).mkdir(exist_ok=True)
    monkeypatch.chdir(repository / current)
    assert cwd_in(str(repository)) == expected
    link = repository.parent / "link"
    link.symlink_to(repository)
    assert cwd_in(str(link)) == expected


def test_a_directory_that_is_gone_or_has_no_name_is_nowhere(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = repository / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert cwd_in(str(repository)) == ""
    unnamed = os.fsencode(repository) + b"/\xff"
    os.mkdir(unnamed)
    monkeypatch.chdir(os.fsdecode(unnamed))
    assert cwd_in(str(repository)) == ""


def test_files_that_are_offered_are_called_as_where_one_is() -> None:
    assert seen_from("", "src/a.py", (0, 4)) == ("src/a.py", (0, 4))
    assert seen_from("src", "src/api/a.py", (0, 4, 8)) == ("api/a.py", (0, 4))
    assert seen_from("src/api", "src/a.py", (4,)) == ("../a.py", (3,))
    assert seen_from("src", "README.md", (0,)) == ("../README.md", (3,))
    assert seen_from("src", "srcs/a.py") == ("../srcs/a.py", ())
