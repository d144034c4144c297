"""The state of a repository: branch, changes and latest commits. Everything blocks, for at most `GIT_SECONDS`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from covey.context.stand_in import (
    CAREFUL,
    Unreadable,
    copied_settings,
    find_git,
    find_root,
    head,
    open_repository,
    output,
    stand_in,
)

GIT_SECONDS = 2.0
"""For everything together. A repository in which this is not enough is described without its changes."""
MAX_CHANGES = 30
"""Lines of the short status: more is noise, and the model can ask for it."""
MAX_COMMITS = 3
MAX_LINE_CHARS = 200
MAX_OUTPUT_BYTES = 256 * 1024
"""Of one git command: more than the lines that are shown can have, with the longest paths there are."""

_LOG = ("log", f"-{MAX_COMMITS}", "--no-show-signature", "--no-decorate", "--no-color", "--format=%h %s")
_STATUS = (*CAREFUL, "status", "--short", "--untracked-files=normal", "--no-renames", "--ignore-submodules=all")
"""Submodules have a configuration of their own, and git would follow it there."""


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


def read_state(directory: Path, environ: Mapping[str, str]) -> GitState | None:
    """What git would say in this directory; None: it is in no repository, or in one that cannot be described."""
    deadline = time.monotonic() + GIT_SECONDS
    root = find_root(directory)
    if root is None:
        return None
    try:
        repository = open_repository(root)
        ref, commit = head(repository)
        branch = ref[:MAX_LINE_CHARS]
        git = find_git(environ, root)
        if git is None:
            return GitState(branch, commit[:10], None, False, ())
        with stand_in(repository, commit) as env:
            commits = _lines([git, *_LOG], env, directory, deadline) if commit else None
            flags = copied_settings(git, repository, env, deadline)
            changes = _lines([git, *flags, *_STATUS], env, directory, deadline)
    except (Unreadable, OSError):
        return None
    shown = None if changes is None else tuple(changes[:MAX_CHANGES])
    return GitState(branch, commit[:10], shown, len(changes or ()) > MAX_CHANGES, tuple(commits or ()))


def _lines(command: Sequence[str], env: Mapping[str, str], cwd: Path, deadline: float) -> list[str] | None:
    """The lines that a command wrote, up to a bound; None when it failed or took too long."""
    written = output(command, env, cwd, deadline, MAX_OUTPUT_BYTES)
    if written is None:
        return None
    lines = written.data.decode("utf-8", "replace").split("\n")[:-1]  # what is not a whole line was cut off
    return ["".join(c if c.isprintable() else "?" for c in line[:MAX_LINE_CHARS]) for line in lines]
