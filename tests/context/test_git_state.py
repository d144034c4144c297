"""What is shown of a repository, and that nothing which is in it ever runs."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from covey.context import git
from covey.context.git import MAX_CHANGES, GitState, read_state
from covey.context.stand_in import find_root

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine git may take longer than Covey waits for it: then nothing of it would be shown."""
    monkeypatch.setattr(git, "GIT_SECONDS", 60.0)


class Repository:
    """A repository of its own, made with the real git."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def git(self, *args: str) -> str:
        env = ENV | {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": "Ann",
            "GIT_AUTHOR_EMAIL": "ann@example.com",
            "GIT_COMMITTER_NAME": "Ann",
            "GIT_COMMITTER_EMAIL": "ann@example.com",
        }
        done = subprocess.run(["git", *args], cwd=self.path, env=env, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commit(self, name: str, text: str, subject: str) -> None:
        (self.path / name).write_text(text)
        self.git("add", name)
        self.git("commit", "-qm", subject)

    def state(self, directory: Path | None = None) -> GitState:
        found = read_state(directory or self.path, ENV)
        assert found is not None
        return found


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "project")
    made.git("init", "-qb", "main")
    made.commit("a.txt", "one\n", "The first")
    return made


# What is shown


def test_branch_changes_and_latest_commits(repository: Repository) -> None:
    for number in range(2, 6):
        repository.commit("b.txt", f"{number}\n", f"Number {number}")
    (repository.path / "a.txt").write_text("other\n")
    (repository.path / "ünew ?.txt").write_text("")
    (repository.path / "c.txt").write_text("")
    repository.git("add", "c.txt")
    repository.git("checkout", "-qb", "feature/x-1")
    state = repository.state()
    assert state.branch == "feature/x-1"
    assert repository.git("rev-parse", "HEAD").startswith(state.commit) and len(state.commit) == 10
    assert state.changes == (" M a.txt", "A  c.txt", '?? "ünew ?.txt"')
    assert not state.more_changes
    assert [line.split(" ", 1)[1] for line in state.commits] == ["Number 5", "Number 4", "Number 3"]


def test_a_clean_repository_has_no_changes(repository: Repository) -> None:
    assert repository.state().changes == ()


def test_paths_are_seen_from_the_directory(repository: Repository) -> None:
    (repository.path / "inner").mkdir()
    (repository.path / "inner" / "new").write_text("")
    (repository.path / "a.txt").write_text("changed\n")
    assert repository.state(repository.path / "inner").changes == (" M ../a.txt", "?? ./")


def test_before_the_first_commit(tmp_path: Path) -> None:
    empty = Repository(tmp_path / "p")
    empty.git("init", "-qb", "trunk")
    assert empty.state() == GitState("trunk", "", (), False, ())
    (empty.path / "x").write_text("")
    assert empty.state().changes == ("?? x",)


def test_without_a_branch(repository: Repository) -> None:
    repository.git("checkout", "-q", "--detach")
    state = repository.state()
    assert state.branch == ""
    assert state.commit and state.changes == ()


def test_packed_refs_and_packed_objects(repository: Repository) -> None:
    repository.git("tag", "v1")
    repository.git("pack-refs", "--all")
    repository.git("gc", "-q")
    assert not (repository.path / ".git/refs/heads/main").exists()
    state = repository.state()
    assert state.changes == () and state.commits


def test_a_linked_work_tree(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "-qb", "side", str(tmp_path / "side"))
    (tmp_path / "side" / "new").write_text("")
    state = repository.state(tmp_path / "side")
    assert (state.branch, state.changes) == ("side", ("?? new",))


def test_a_submodule(repository: Repository, tmp_path: Path) -> None:
    outer = Repository(tmp_path / "outer")
    outer.git("init", "-qb", "main")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repository.path), "sub")
    state = outer.state(outer.path / "sub")
    assert (state.branch, state.changes) == ("main", ())


def test_a_shallow_clone(repository: Repository, tmp_path: Path) -> None:
    repository.commit("b.txt", "", "The second")
    shallow = Repository(tmp_path / "shallow")
    shallow.git("clone", "-q", "--depth", "1", f"file://{repository.path}", ".")
    state = shallow.state()
    assert len(state.commits) == 1 and state.changes == ()


def test_a_repository_with_longer_ids(tmp_path: Path) -> None:
    made = Repository(tmp_path / "p")
    made.git("init", "-qb", "main", "--object-format=sha256")
    made.commit("a", "1", "With 256 bits")
    state = made.state()
    assert state.changes == () and state.commits[0].endswith("With 256 bits")


def test_how_files_lie_on_the_disk_is_taken_over(repository: Repository) -> None:
    repository.git("config", "core.fileMode", "false")
    (repository.path / "a.txt").chmod(0o755)
    assert repository.state().changes == ()
    repository.git("config", "core.fileMode", "true")
    assert repository.state().changes == (" M a.txt",)


def test_what_is_excluded_is_no_change(repository: Repository) -> None:
    (repository.path / ".git" / "info" / "exclude").write_text("*.log\n")
    (repository.path / ".gitignore").write_text("*.tmp\n.gitignore\n")
    for name in ("a.log", "a.tmp", "a.new"):
        (repository.path / name).write_text("")
    assert repository.state().changes == ("?? a.new",)


def test_there_is_a_bound_for_changes_and_for_lines(repository: Repository) -> None:
    for number in range(MAX_CHANGES + 1):
        (repository.path / f"{number:03}").write_text("")
    repository.commit("b.txt", "", "x" * 1000 + "\x1b[31m")
    state = repository.state()
    assert state.changes is not None and len(state.changes) == MAX_CHANGES
    assert state.more_changes
    assert all(len(line) <= git.MAX_LINE_CHARS and line.isprintable() for line in state.commits)


def test_nothing_is_written(repository: Repository) -> None:
    """Not even the index, which git likes to refresh when it looks."""
    os.utime(repository.path / "a.txt", (1, 1))
    index = repository.path / ".git" / "index"
    before = (index.read_bytes(), sorted(os.listdir(repository.path / ".git")))
    assert repository.state().changes == ()
    assert (index.read_bytes(), sorted(os.listdir(repository.path / ".git"))) == before


def test_no_repository_and_no_git(tmp_path: Path, repository: Repository) -> None:
    assert read_state(tmp_path, ENV) is None
    without = read_state(repository.path, {"PATH": str(tmp_path)})
    assert without is not None
    assert (without.branch, without.changes, without.commits) == ("main", None, ())


# Whose repository it is


def test_a_repository_of_a_stranger_is_not_looked_at(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one in /tmp, above a directory of mine."""
    inner = repository.path / "mine"
    inner.mkdir()
    top = repository.path.resolve()
    assert find_root(inner) == top
    real = Path.stat

    def stat(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        status = real(path, follow_symlinks=follow_symlinks)
        if path == top:
            return os.stat_result((*status[:4], status.st_uid + 1, *status[5:10]))
        return status

    monkeypatch.setattr(Path, "stat", stat)
    assert find_root(inner) is None


@pytest.mark.parametrize(
    "claim",
    [
        lambda mine, other: (mine / ".git").write_text(f"gitdir: {other / '.git'}\n"),
        lambda mine, other: (mine / ".git").symlink_to(other / ".git"),
        lambda mine, other: _pretend(mine, "commondir", f"{other / '.git'}\n"),
        lambda mine, other: _pretend(mine, "HEAD", other / ".git" / "HEAD"),
        lambda mine, other: _pretend(mine, "refs", other / ".git" / "refs"),
        lambda mine, other: _pretend(mine, "objects", other / ".git" / "objects"),
        lambda mine, other: _pretend(mine, "index", other / ".git" / "index"),
    ],
    ids=["file", "link", "commondir", "HEAD", "refs", "objects", "index"],
)
def test_a_directory_cannot_speak_with_the_history_of_another(
    repository: Repository, tmp_path: Path, claim: Callable[[Path, Path], object]
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    claim(mine, repository.path)
    state = read_state(mine, ENV)
    assert state is None or not (state.commit or state.commits or state.changes)


def _pretend(mine: Path, name: str, content: str | Path) -> None:
    Repository(mine).git("init", "-qb", "main")
    path = mine / ".git" / name
    if path.is_dir():
        path.rename(path.with_name(f"old-{name}"))
    path.unlink(missing_ok=True)
    if isinstance(content, Path):
        path.symlink_to(content)
    else:
        path.write_text(content)


@pytest.mark.parametrize(
    "head", ["", "ref: ../../secret", "ref: refs/heads/../../x", "ref: refs/heads/a b", "what?", "\xff", "0" * 41]
)
def test_a_head_that_makes_no_sense(repository: Repository, head: str) -> None:
    (repository.path / ".git" / "HEAD").write_text(head, "latin-1")
    assert read_state(repository.path, ENV) is None


def test_what_would_wait_for_ever_is_not_waited_for(repository: Repository) -> None:
    (repository.path / ".git" / "HEAD").unlink()
    os.mkfifo(repository.path / ".git" / "HEAD")
    assert read_state(repository.path, ENV) is None


# Nothing runs


def hostile(repository: Repository, marker: Path) -> None:
    """Everything that a repository can say to have a program started, on paths that status and log take."""
    path = repository.path
    run = path / "run.sh"
    run.write_text(f"#!/bin/sh\necho $0 $@ >> {marker}\ncat\n")
    run.chmod(0o755)
    hooks = path / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "fsmonitor-watchman", "query-watchman", "reference-transaction"):
        (hooks / name).symlink_to(run)
        (path / ".git" / "hooks" / name).symlink_to(run)
    (path / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    (path / ".git" / "info" / "attributes").write_text("* filter=evil diff=evil\n")
    (path / "more.config").write_text(f'[filter "evil"]\n\tprocess = {run}\n\trequired = true\n')
    lines = {
        "core": ["fsmonitor", "pager", "editor", "sshCommand", "askPass", "gitProxy", "alternateRefsCommand"],
        'filter "evil"': ["clean", "smudge"],
        'diff "evil"': ["command", "textconv"],
        "diff": ["external"],
        "gpg": ["program"],
        'gpg "ssh"': ["program", "defaultKeyCommand"],
        "credential": ["helper"],
        'remote "origin"': ["uploadpack"],
        "trailer": ["command"],
    }
    config = "".join(
        f"[{section}]\n" + "".join(f"\t{key} = {run}\n" for key in keys) for section, keys in lines.items()
    )
    config += f"[core]\n\thooksPath = {hooks}\n\tuntrackedCache = true\n[include]\n\tpath = {path}/more.config\n"
    config += "[log]\n\tshowSignature = true\n[status]\n\tsubmoduleSummary = true\n[submodule]\n\trecurse = true\n"
    config += f"[alias]\n\tstatus = !{run}\n\tlog = !{run}\n[pager]\n\tstatus = {run}\n\tlog = {run}\n"
    config += f'[remote "origin"]\n\turl = ext::{run}\n\tpromisor = true\n\tpartialclonefilter = blob:none\n'
    with (path / ".git" / "config").open("a") as file:
        file.write(config)


def plain_git(repository: Repository, *args: str) -> None:
    subprocess.run(["git", *args], cwd=repository.path, env=ENV, capture_output=True, timeout=100, check=False)


def test_a_hostile_repository_runs_nothing(repository: Repository, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    hostile(repository, marker)
    (repository.path / "a.txt").write_text("two\n")  # the same size: only its content can tell
    state = repository.state()
    assert not marker.exists(), marker.read_text()
    assert state.branch == "main" and state.commits[0].endswith("The first")
    assert state.changes is not None and " M a.txt" in state.changes
    plain_git(repository, "status")  # without our care it does run: the trap is a real one
    assert "run.sh" in marker.read_text()


def test_filters_alone_do_not_run_either(repository: Repository, tmp_path: Path) -> None:
    """They are what no option of git switches off, as their names are free."""
    marker = tmp_path / "ran"
    repository.git("config", "filter.evil.clean", f"touch {marker}; cat")
    (repository.path / ".gitattributes").write_text("* filter=evil\n")
    (repository.path / "a.txt").write_text("two\n")
    changes = repository.state().changes
    assert changes is not None and " M a.txt" in changes
    assert not marker.exists()
    plain_git(repository, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "status")
    assert marker.exists()


def test_a_submodule_runs_nothing(repository: Repository, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    inner = Repository(repository.path / "sub")
    inner.git("init", "-qb", "main")
    inner.commit("x", "1", "Inside")
    repository.git("add", "sub")
    repository.git("commit", "-qm", "A submodule")
    inner.git("config", "core.fsmonitor", f"touch {marker}; true")
    assert repository.state().changes == ()
    assert not marker.exists()
    plain_git(repository, "status")
    assert marker.exists()


def test_a_missing_object_is_not_fetched(repository: Repository, tmp_path: Path) -> None:
    """A partial clone fetches when it looks, and how is for its configuration to say."""
    marker = tmp_path / "ran"
    repository.git("config", "core.repositoryFormatVersion", "1")
    repository.git("config", "remote.origin.url", f"ext::touch {marker}")
    repository.git("config", "remote.origin.promisor", "true")
    repository.git("config", "protocol.ext.allow", "always")
    repository.git("config", "extensions.partialClone", "origin")
    (tree,) = repository.git("rev-parse", "HEAD^{tree}").split()
    (repository.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    state = read_state(repository.path, ENV)
    assert state is None or state.changes is None
    assert not marker.exists()
    plain_git(repository, "status")
    assert marker.exists()


@pytest.mark.parametrize("entry", ["", ".", "bin", "{root}/bin", "{root}"])
def test_a_git_in_the_project_is_not_taken_for_git(repository: Repository, tmp_path: Path, entry: str) -> None:
    marker = tmp_path / "ran"
    (repository.path / "bin").mkdir()
    for place in (repository.path, repository.path / "bin"):
        (place / "git").write_text(f"#!/bin/sh\ntouch {marker}\n")
        (place / "git").chmod(0o755)
    path = os.pathsep.join([entry.format(root=repository.path), os.environ["PATH"]])
    state = read_state(repository.path, {"PATH": path})
    assert state is not None and state.commits
    assert not marker.exists()


def test_a_git_that_hangs_is_ended(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = tmp_path / "pids"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text(f"#!/bin/sh\necho $$ >> {pids}\nexec sleep 1000\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setattr(git, "GIT_SECONDS", 0.3)
    began = time.monotonic()
    state = read_state(repository.path, {"PATH": str(tmp_path / "bin")})
    assert time.monotonic() - began < 60
    assert state is not None and (state.branch, state.changes, state.commits) == ("main", None, ())
    for pid in pids.read_text().split() if pids.exists() else []:
        assert not os.path.exists(f"/proc/{pid}")


def test_a_git_that_writes_without_end_is_ended(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexec yes line\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    state = read_state(repository.path, {"PATH": str(tmp_path / "bin")})
    assert state is not None and state.changes == ("line",) * MAX_CHANGES and state.more_changes
