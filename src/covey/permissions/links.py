"""What a judge has to know about links, and what for. The judge itself reads no disk: `tools/links.py` answers."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

LINK = "link"


class Use(StrEnum):
    """What a command does with a path."""

    NAME = "name"
    """It shows the name: only the directories on the way are followed."""
    CONTENT = "content"
    """It reads what the path leads to."""
    TREE = "tree"
    """It reads all that lies below, and follows the links there."""
    DIRECTORY = "directory"
    """It becomes the current directory. After a link, `..` means one thing to `cd` and another to everybody else."""


class Links(Protocol):
    """Answers for paths that stay in the workspace as they are written."""

    def __call__(self, base: str, path: str, use: Use, *, pattern: bool) -> str:
        """Why somebody should be asked about `path`, seen from the directory `base`: a reason, or nothing."""
        ...


def unseen(base: str, path: str, use: Use, *, pattern: bool) -> str:
    """Where no disk is at hand: paths count as they are written."""
    return ""
