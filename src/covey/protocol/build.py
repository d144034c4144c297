"""Which Covey this is. Client and server compare it, so that an old server is noticed after an upgrade."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

from covey import __version__


class Build(NamedTuple):
    version: str
    commit: str
    """'' when this is not a git checkout."""
    build_id: str
    """Differs whenever a source file of the package differs."""


@cache
def current_build() -> Build:
    """The build that this process runs. A server asks once when it starts: later its files may be newer than itself."""
    package = Path(__file__).resolve().parent.parent
    return Build(__version__, commit_of(package.parent.parent), build_id_of(package))


def build_id_of(package: Path) -> str:
    """A short hash over name, size and time of each file: reading what is in them would cost start-up time."""
    from hashlib import blake2s

    digest = blake2s(digest_size=6)
    folders = [str(package)]
    while folders:
        with os.scandir(folders.pop()) as found:
            for entry in sorted(found, key=lambda entry: entry.name):
                if entry.is_dir():
                    if entry.name != "__pycache__":
                        folders.append(entry.path)
                else:
                    stat = entry.stat()
                    digest.update(f"{entry.name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def commit_of(checkout: Path) -> str:
    """The commit that is checked out there, or ''."""
    git = checkout / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        if head.startswith("ref: "):
            head = (git / head.removeprefix("ref: ")).read_text().strip()
    except OSError:
        return ""
    return head[:12] if head.isalnum() else ""
