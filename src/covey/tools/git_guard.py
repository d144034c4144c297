"""Git in a directory that somebody else made: what keeps it from running programs that the files there name.

A bare repository is nothing but files, so a clone can bring one along, with a configuration of its own. Git steps into
it as soon as it is called in there, and runs what it names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from covey.permissions.safe_paths import Repository

_BARE_PARTS = ("objects", "refs", "commondir")


def guarded(env: Mapping[str, str]) -> dict[str, str]:
    """The environment in which git (2.38 and later) uses a bare repository only if the command itself names it."""
    count = env.get("GIT_CONFIG_COUNT", "")
    number = int(count) if count.isascii() and count.isdigit() else 0
    return {
        **env,
        f"GIT_CONFIG_KEY_{number}": "safe.bareRepository",
        f"GIT_CONFIG_VALUE_{number}": "explicit",
        "GIT_CONFIG_COUNT": str(number + 1),
    }


def repository_of(directory: Path) -> Repository:
    """Which repository git would use in this directory. Older ones also step into a bare one, in spite of the guard."""
    for above in (directory, *directory.parents):
        if os.path.lexists(above / ".git"):
            return Repository.OWN if above == directory else Repository.ABOVE
        if os.path.lexists(above / "HEAD") and any(os.path.lexists(above / part) for part in _BARE_PARTS):
            return Repository.FOREIGN
    return Repository.OWN
