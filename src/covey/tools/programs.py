"""Programs of this machine, never of the project: a PATH may hold `.`, or a directory of the project."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def find_program(name: str, path: str | None, root: Path | None) -> str | None:
    """The first program of this name that PATH has outside of the project's root."""
    for entry in (os.defpath if path is None else path).split(os.pathsep):
        if os.path.isabs(entry) and not _is_inside(entry, root):
            found = shutil.which(name, path=entry)
            if found and not _is_inside(found, root):
                return found
    return None


def _is_inside(path: str, root: Path | None) -> bool:
    return root is not None and Path(path).resolve().is_relative_to(root)
