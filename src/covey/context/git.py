"""The state of a repository, read without running anything that is in it.

A repository's configuration can name programs: a file monitor, filters, hooks, helpers, and further files that name
more. Filters have names of the writer's choice, so they cannot be switched off one by one. Therefore git never sees
that configuration: it works in an empty repository of ours, made for the moment, which borrows the index and the
objects of the real one. Where HEAD points is read here. Everything blocks, for at most `GIT_SECONDS`.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from covey.context.inside import inside, resolved_inside
from covey.machine.programs import find_program
from covey.machine.regular import read_regular

GIT_SECONDS = 2.0
"""For everything together. A repository in which this is not enough is described without its changes."""
MAX_CHANGES = 30
"""Lines of the short status: more is noise, and the model can ask for it."""
MAX_COMMITS = 3
MAX_LINE_CHARS = 200
MAX_OUTPUT_BYTES = 256 * 1024
"""Of one git command: more than the lines that are shown can have, with the longest paths there are."""
MAX_REFS_BYTES = 16 * 1024 * 1024
"""Of packed-refs, where all branches and tags of a large project may stand."""
MAX_DEPTH = 64
"""Directories looked at above the one that is worked on."""

_SMALL = 4096
"""Bytes of HEAD and its like."""
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = re.compile(r"refs/(?!.*(?:\.\.|/\.|//))[^\x00-\x20\x7f~^:?*\[\\]+")
_COPIED = re.compile(r"core\.(?:filemode|ignorecase|symlinks|autocrlf|eol|precomposeunicode)")
_COPIED_VALUE = re.compile(r"true|false|input|lf|crlf|native")
"""What of a repository's configuration is taken over: how its files lie on this disk, in words that can do nothing."""


@dataclass(frozen=True, slots=True)
class GitState:
    branch: str
    """Empty: no branch is checked out."""
    commit: str
    """What HEAD is; empty before the first commit."""
    changes: tuple[str, ...] | None
    """Lines of `git status --short`, at most `MAX_CHANGES`; None: could not be found out in time."""
    more_changes: bool
    commits: tuple[str, ...]
    """The latest, newest first: short id and subject."""


@dataclass(frozen=True, slots=True)
class _Repository:
    work_tree: Path
    git_dir: Path
    common_dir: Path
    """Where branches and objects are: the same as `git_dir`, except in a linked work tree."""


class _Unreadable(Exception):
    """Not a repository that can be described."""


def find_root(directory: Path) -> Path | None:
    """The nearest directory, from this one upwards, that has a `.git` and belongs to whoever owns this one, or to us.

    Else anybody could put a `.git` into /tmp and speak to everybody who works below it.
    """
    directory = directory.resolve()
    try:
        owners = {directory.stat().st_uid, os.geteuid()}
        for above in (directory, *directory.parents)[:MAX_DEPTH]:
            if os.path.lexists(above / ".git"):
                return above if above.stat().st_uid in owners else None
    except OSError:
        return None
    return None


def read_state(directory: Path, environ: Mapping[str, str]) -> GitState | None:
    """What git would say in this directory; None: it is in no repository, or in one that cannot be described."""
    deadline = time.monotonic() + GIT_SECONDS
    root = find_root(directory)
    if root is None:
        return None
    try:
        repository = _open(root)
        branch, commit = _head(repository)
        git = find_program("git", environ.get("PATH", os.defpath), root)
        if git is None:
            return GitState(branch, commit[:10], None, False, ())
        with _stand_in(repository, commit) as env:
            commits = _output([git, *_LOG], env, directory, deadline) if commit else None
            flags = _copied_settings(git, repository, env, deadline)
            changes = _output([git, *flags, *_STATUS], env, directory, deadline)
    except (_Unreadable, OSError):
        return None
    shown = None if changes is None else tuple(changes[:MAX_CHANGES])
    return GitState(branch, commit[:10], shown, len(changes or ()) > MAX_CHANGES, tuple(commits or ()))


# ── reading a repository without git ──


def _open(work_tree: Path) -> _Repository:
    """Where a repository has its parts. One that says it lies in somebody else's directory is not believed."""
    dot_git = work_tree / ".git"
    git_dir = dot_git.resolve()
    if git_dir.is_file():
        target = _word(git_dir.parent, git_dir.name)
        if not target.startswith("gitdir: "):
            raise _Unreadable
        git_dir = (work_tree / target.removeprefix("gitdir: ")).resolve()
    common_dir = git_dir
    if common := _word(git_dir, "commondir", optional=True):
        common_dir = (git_dir / common).resolve()
        if git_dir.parent != common_dir / "worktrees":
            raise _Unreadable
    repository = _Repository(work_tree, git_dir, common_dir)
    if not _belongs(repository):
        raise _Unreadable
    return repository


def _belongs(repository: _Repository) -> bool:
    work_tree, git_dir = repository.work_tree, repository.git_dir
    if inside(repository.common_dir, work_tree):
        return True
    if any(git_dir.is_relative_to(above / ".git" / "modules") for above in work_tree.parents):
        return True  # a submodule
    linked_from = _word(git_dir, "gitdir", optional=True)
    return bool(linked_from) and (git_dir / linked_from).parent.resolve() == work_tree


def _head(repository: _Repository) -> tuple[str, str]:
    """The branch ('' for none) and the commit ('' before the first one)."""
    head = _word(repository.git_dir, "HEAD")
    if _COMMIT.fullmatch(head):
        return "", head
    ref = head.removeprefix("ref: ")
    if not _REF.fullmatch(ref) or (repository.common_dir / "reftable").exists():
        raise _Unreadable
    return ref.removeprefix("refs/heads/")[:MAX_LINE_CHARS], _commit_of(repository, ref)


def _commit_of(repository: _Repository, ref: str) -> str:
    if loose := _word(repository.common_dir, ref, optional=True):
        if not _COMMIT.fullmatch(loose):
            raise _Unreadable
        return loose
    packed = read_regular(repository.common_dir / "packed-refs", MAX_REFS_BYTES)
    found = re.search(rb"^([0-9a-f]{40,64}) %b$" % re.escape(ref.encode()), packed[0], re.MULTILINE) if packed else None
    return found[1].decode() if found else ""


def _word(directory: Path, name: str, *, optional: bool = False) -> str:
    """What a small file says, which must really be in `directory`."""
    path = resolved_inside(directory / name, directory)
    found = read_regular(path, _SMALL) if path else None
    if found is None and not optional:
        raise _Unreadable
    try:
        return found[0].decode().rstrip("\n") if found else ""
    except UnicodeDecodeError:
        raise _Unreadable from None


# ── asking git ──

_LOG = ("log", f"-{MAX_COMMITS}", "--no-show-signature", "--no-decorate", "--no-color", "--format=%h %s")
_STATUS = (
    "-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
    "status", "--short", "--untracked-files=normal", "--no-renames", "--ignore-submodules=all",
)  # fmt: skip
"""Submodules have a configuration of their own, and git would follow it there."""


@contextmanager
def _stand_in(repository: _Repository, commit: str) -> Iterator[dict[str, str]]:
    """An empty repository of ours that shows the content of this one. Gives the environment in which git sees it."""
    index = resolved_inside(repository.git_dir / "index", repository.git_dir)
    objects = resolved_inside(repository.common_dir / "objects", repository.common_dir)
    shallow = resolved_inside(repository.common_dir / "shallow", repository.common_dir)
    if index is None or objects is None or shallow is None:
        raise _Unreadable
    with tempfile.TemporaryDirectory(prefix="covey-git-") as name:
        own = Path(name)
        (own / "refs").mkdir()
        (own / "HEAD").write_text(f"{commit or 'ref: refs/heads/none'}\n")
        (own / "info").mkdir()
        excluded = resolved_inside(repository.common_dir / "info" / "exclude", repository.common_dir)
        if patterns := read_regular(excluded, MAX_OUTPUT_BYTES) if excluded else None:
            (own / "info" / "exclude").write_bytes(patterns[0])
        new_format = "[extensions]\nobjectformat = sha256\n" if len(commit) == 64 else ""
        version = 1 if new_format else 0
        (own / "config").write_text(f"[core]\nbare = false\nrepositoryformatversion = {version}\n{new_format}")
        env = {
            "GIT_DIR": name,
            "GIT_WORK_TREE": str(repository.work_tree),
            "GIT_INDEX_FILE": str(index),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_PAGER": "cat",
            "HOME": name,
            "PATH": os.defpath,
            "LC_ALL": "C.UTF-8",
        }
        yield env | ({"GIT_SHALLOW_FILE": str(shallow)} if shallow.is_file() else {})


def _copied_settings(git: str, repository: _Repository, env: Mapping[str, str], deadline: float) -> list[str]:
    """As options. Reading one file with `git config --file` follows no includes and starts nothing."""
    path = resolved_inside(repository.common_dir / "config", repository.common_dir)
    if path is None or not path.is_file():
        return []
    command = [git, "config", "--file", str(path), "--no-includes", "--get-regexp", "^core\\."]
    flags: list[str] = []
    for line in _output(command, env, repository.work_tree, deadline) or []:
        name, _, value = line.partition(" ")
        if _COPIED.fullmatch(name) and _COPIED_VALUE.fullmatch(value.lower()):
            flags += ["-c", f"{name}={value.lower()}"]
    return flags


def _output(command: Sequence[str], env: Mapping[str, str], cwd: Path, deadline: float) -> list[str] | None:
    """The lines that a command wrote, up to a bound; None when it failed or took too long. It has ended, either way."""
    process = subprocess.Popen(  # noqa: S603 - git of this machine, with arguments of ours
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with process:
        try:
            assert process.stdout
            data, whole = _read(process.stdout.fileno(), deadline)
            if data is None or (whole and process.wait(max(0.0, deadline - time.monotonic()) + 0.01)):
                return None
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    lines = data.decode("utf-8", "replace").split("\n")[:-1]  # what is not a whole line was cut off
    return ["".join(c if c.isprintable() else "?" for c in line[:MAX_LINE_CHARS]) for line in lines]


def _read(descriptor: int, deadline: float) -> tuple[bytes | None, bool]:
    """Up to `MAX_OUTPUT_BYTES`, and whether that was all; None when the time is over first."""
    data = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while len(data) < MAX_OUTPUT_BYTES:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return None, False
            chunk = os.read(descriptor, MAX_OUTPUT_BYTES)
            if not chunk:
                return data, True
            data += chunk
    return data, False
