"""Whether a path stays in a directory, whatever links are on the way."""

from __future__ import annotations

from pathlib import Path


def resolved_inside(path: Path, directory: Path) -> Path | None:
    """`path` without links, if that is in `directory` (which has none); None if it leads elsewhere, or nowhere."""
    try:
        real = path.resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links; a name with a NUL character
        return None
    return real if real.is_relative_to(directory) else None


def inside(path: Path, directory: Path) -> bool:
    return resolved_inside(path, directory) is not None
