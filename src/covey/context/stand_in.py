"""Git for a repository that somebody else wrote, without running anything that is in it.

A repository's configuration can name programs: a file monitor, filters, hooks, helpers, and further files that name
more. Filters have names of the writer's choice, so they cannot be switched off one by one. Therefore git never sees
that configuration: it works in an empty repository of ours, made for the moment, which borrows the index and the
objects of the real one. Where HEAD points is read here. Everything blocks, until a deadline.
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
from typing import NamedTuple

from covey.context.inside import inside, resolved_inside
from covey.machine.programs import find_program
from covey.machine.regular import read_regular

MAX_REFS_BYTES = 16 * 1024 * 1024
"""Of packed-refs, where all branches and tags of a large project may stand."""
MAX_RULES_BYTES = 256 * 1024
"""Of the files beside the configuration that say what is excluded, and what attributes files have."""
MAX_DEPTH = 64
"""Directories looked at above the one that is worked on."""

_SMALL = 4096
"""Bytes of HEAD and its like."""
_SETTINGS_BYTES = 256 * 1024
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = re.compile(r"refs/(?!.*(?:\.\.|/\.|//))[^\x00-\x20\x7f~^:?*\[\\]+")
_COPIED = re.compile(r"core\.(?:filemode|ignorecase|symlinks|autocrlf|eol|precomposeunicode)")
_COPIED_VALUE = re.compile(r"true|false|input|lf|crlf|native")
"""What of a repository's configuration is taken over: how its files lie on this disk, in words that can do nothing."""

CAREFUL = ("-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""What git is called with, beside its environment."""


@dataclass(frozen=True, slots=True)
class GitRepository:
    work_tree: Path
    git_dir: Path
    common_dir: Path
    """Where branches and objects are: the same as `git_dir`, except in a linked work tree."""


class Unreadable(Exception):
    """Not a repository that can be used."""


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


# ── reading a repository without git ──


def open_repository(work_tree: Path) -> GitRepository:
    """Where a repository has its parts. One that says it lies in somebody else's directory is not believed."""
    dot_git = work_tree / ".git"
    git_dir = dot_git.resolve()
    if git_dir.is_file():
        target = _word(git_dir.parent, git_dir.name)
        if not target.startswith("gitdir: "):
            raise Unreadable
        git_dir = (work_tree / target.removeprefix("gitdir: ")).resolve()
    common_dir = git_dir
    if common := _word(git_dir, "commondir", optional=True):
        common_dir = (git_dir / common).resolve()
        if git_dir.parent != common_dir / "worktrees":
            raise Unreadable
    repository = GitRepository(work_tree, git_dir, common_dir)
    if not _belongs(repository):
        raise Unreadable
    return repository


def _belongs(repository: GitRepository) -> bool:
    work_tree, git_dir = repository.work_tree, repository.git_dir
    if inside(repository.common_dir, work_tree):
        return True
    if any(git_dir.is_relative_to(above / ".git" / "modules") for above in work_tree.parents):
        return True  # a submodule
    linked_from = _word(git_dir, "gitdir", optional=True)
    return bool(linked_from) and (git_dir / linked_from).parent.resolve() == work_tree


def head(repository: GitRepository) -> tuple[str, str]:
    """The branch ('' for none) and the commit ('' before the first one)."""
    head = _word(repository.git_dir, "HEAD")
    if _COMMIT.fullmatch(head):
        return "", head
    ref = head.removeprefix("ref: ")
    if not _REF.fullmatch(ref) or (repository.common_dir / "reftable").exists():
        raise Unreadable
    return ref.removeprefix("refs/heads/"), _commit_of(repository, ref)


def _commit_of(repository: GitRepository, ref: str) -> str:
    if loose := _word(repository.common_dir, ref, optional=True):
        if not _COMMIT.fullmatch(loose):
            raise Unreadable
        return loose
    packed = read_regular(repository.common_dir / "packed-refs", MAX_REFS_BYTES)
    found = re.search(rb"^([0-9a-f]{40,64}) %b$" % re.escape(ref.encode()), packed[0], re.MULTILINE) if packed else None
    return found[1].decode() if found else ""


def _word(directory: Path, name: str, *, optional: bool = False) -> str:
    """What a small file says, which must really be in `directory`."""
    path = resolved_inside(directory / name, directory)
    found = read_regular(path, _SMALL) if path else None
    if found is None and not optional:
        raise Unreadable
    try:
        return found[0].decode().rstrip("\n") if found else ""
    except UnicodeDecodeError:
        raise Unreadable from None


# ── asking git ──


def find_git(environ: Mapping[str, str], root: Path) -> str | None:
    return find_program("git", environ.get("PATH", os.defpath), root)


@contextmanager
def stand_in(repository: GitRepository, commit: str, index: Path | None = None) -> Iterator[dict[str, str]]:
    """An empty repository of ours that shows the content of this one. Gives the environment in which git sees it.

    `index`: a copy of its index that is used in its place.
    """
    index = index or resolved_inside(repository.git_dir / "index", repository.git_dir)
    objects = resolved_inside(repository.common_dir / "objects", repository.common_dir)
    shallow = resolved_inside(repository.common_dir / "shallow", repository.common_dir)
    if index is None or objects is None or shallow is None:
        raise Unreadable
    with _empty(commit) as own:
        for name in ("exclude", "attributes"):
            rules = resolved_inside(repository.common_dir / "info" / name, repository.common_dir)
            if found := read_regular(rules, MAX_RULES_BYTES) if rules else None:
                (own / "info" / name).write_bytes(found.data)
        env = _environment(own, repository.work_tree, index, objects)
        yield env | ({"GIT_SHALLOW_FILE": str(shallow)} if shallow.is_file() else {})


@contextmanager
def stand_in_without(directory: Path) -> Iterator[dict[str, str]]:
    """The same for a directory that is in no repository: to git, all of its files are new."""
    with _empty("") as own:
        (own / "objects").mkdir()
        yield _environment(own, directory, own / "index", own / "objects")


@contextmanager
def _empty(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="covey-git-") as name:
        own = Path(name)
        (own / "refs").mkdir()
        (own / "HEAD").write_text(f"{commit or 'ref: refs/heads/none'}\n")
        (own / "info").mkdir()
        new_format = "[extensions]\nobjectformat = sha256\n" if len(commit) == 64 else ""
        version = 1 if new_format else 0
        (own / "config").write_text(f"[core]\nbare = false\nrepositoryformatversion = {version}\n{new_format}")
        yield own


def _environment(own: Path, work_tree: Path, index: Path, objects: Path) -> dict[str, str]:
    return {
        "GIT_DIR": str(own),
        "GIT_WORK_TREE": str(work_tree),
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
        "HOME": str(own),
        "PATH": os.defpath,
        "LC_ALL": "C.UTF-8",
    }


def copied_settings(git: str, repository: GitRepository, env: Mapping[str, str], deadline: float) -> list[str]:
    """As options. Reading one file with `git config --file` follows no includes and starts nothing."""
    path = resolved_inside(repository.common_dir / "config", repository.common_dir)
    if path is None or not path.is_file():
        return []
    command = [git, "config", "--file", str(path), "--no-includes", "--get-regexp", "^core\\."]
    flags: list[str] = []
    written = output(command, env, repository.work_tree, deadline, _SETTINGS_BYTES)
    for line in written.data.decode("utf-8", "replace").split("\n") if written else []:
        name, _, value = line.partition(" ")
        if _COPIED.fullmatch(name) and _COPIED_VALUE.fullmatch(value.lower()):
            flags += ["-c", f"{name}={value.lower()}"]
    return flags


class GitOutput(NamedTuple):
    data: bytes
    is_whole: bool
    """False: there was more than the bound allows."""


def output(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, deadline: float, limit: int, *, given: bytes = b""
) -> GitOutput | None:
    """What a command wrote, up to a bound; None when it failed or took too long. It has ended, either way."""
    with tempfile.TemporaryFile() as source:
        source.write(given)
        source.seek(0)
        process = subprocess.Popen(  # noqa: S603 - git of this machine, with arguments of ours
            command,
            cwd=cwd,
            env=env,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    with process:
        try:
            assert process.stdout
            written = _read(process.stdout.fileno(), deadline, limit)
            if written is None:
                return None
            if written.is_whole and process.wait(max(0.0, deadline - time.monotonic()) + 0.01):
                return None
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return written


def _read(descriptor: int, deadline: float, limit: int) -> GitOutput | None:
    """None when the time is over first."""
    chunks: list[bytes] = []
    size = 0
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while size < limit:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return None
            chunk = os.read(descriptor, min(limit, 1024 * 1024))
            if not chunk:
                return GitOutput(b"".join(chunks), is_whole=True)
            chunks.append(chunk)
            size += len(chunk)
    return GitOutput(b"".join(chunks), is_whole=False)
