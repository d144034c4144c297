"""Where people keep skills, commands and agents: in a project, and in their homes. Everything here blocks.

Other programs have such folders too, with files of the same shape: what people have already is found where it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from covey.config.load import config_dir
from covey.context.inside import resolved_inside
from covey.context.stand_in import MAX_DEPTH, find_root

TextKind = Literal["skill", "command", "agent"]

FOLDERS: dict[TextKind, tuple[str, ...]] = {
    "skill": ("skills", "skill"),
    "command": ("commands", "command"),
    "agent": ("agents", "agent"),
}
"""What a folder of each kind is called; the second is opencode's other word for it."""
IN_PROJECT = (".covey", ".agents", ".claude", ".opencode", ".crush")
IN_HOME = (".covey", ".agents", ".config/agents", ".claude", ".config/opencode", ".opencode", ".config/crush", ".crush")
"""In this order: of two texts with one name, the first counts."""
MAX_ENTRIES = 500
"""Of one folder. A folder with more is no collection that somebody reads."""
MAX_COMMAND_DEPTH = 3
"""Folders in a folder of commands, which become parts of their names."""


@dataclass(frozen=True, slots=True)
class FoundText:
    """A file that may be a text, before it is read."""

    kind: TextKind
    name: str
    """From its place: of a skill its folder's, of others the file's, with the folders above it."""
    path: Path
    """Where it was found, links and all: what people are told."""
    real: Path | None
    """Without links; None: a link leads where nobody may follow."""
    is_own: bool


def find_texts(root: Path, environ: Mapping[str, str]) -> Iterator[FoundText]:
    """All that may be a text: the user's own first, then the project's, the nearest directory first."""
    root = root.resolve()
    home = Path(environ.get("HOME") or Path.home())
    seen: set[Path] = set()
    for base in (config_dir(environ), *(home / name for name in IN_HOME)):
        yield from _in_base(base, None, seen)
    for directory in _directories(root):
        for name in IN_PROJECT:
            yield from _in_base(directory / name, directory, seen)


def _directories(root: Path) -> list[Path]:
    """From `root` up to the top of its repository; outside of one, `root` alone."""
    top = find_root(root) or root
    return [directory for directory in (root, *root.parents)[:MAX_DEPTH] if directory.is_relative_to(top)]


def _in_base(base: Path, project: Path | None, seen: set[Path]) -> Iterator[FoundText]:
    """The texts of one place. `project`: the directory that they are part of; None: they are the user's own."""
    for kind, folders in FOLDERS.items():
        for folder in (base / name for name in folders):
            if not os.path.lexists(folder):  # as most are not
                continue
            real = folder.resolve() if project is None else resolved_inside(folder, project)
            if real is None or real in seen:  # the home of a repository that is the home itself was there before
                continue
            seen.add(real)
            yield from _skills(folder, project) if kind == "skill" else _files(kind, folder, project)


def _skills(folder: Path, project: Path | None) -> Iterator[FoundText]:
    """A skill is a folder with a SKILL.md, or such a folder one deeper, where people sort them."""
    for entry in _entries(folder):
        file = entry / "SKILL.md"
        if os.path.lexists(file):
            yield FoundText("skill", entry.name, file, _real(file, entry, project), project is None)
        elif entry.is_dir() and not entry.is_symlink():
            for inner in _entries(entry):
                file = inner / "SKILL.md"
                if os.path.lexists(file):
                    yield FoundText("skill", inner.name, file, _real(file, inner, project), project is None)


def _real(file: Path, folder: Path, project: Path | None) -> Path | None:
    """Where a skill's file really is: within its folder, which is within the project, unless it is the user's own."""
    if project is None:
        return file.resolve()
    real = resolved_inside(folder, project)
    return resolved_inside(file, real) if real else None


def _files(kind: TextKind, folder: Path, project: Path | None, above: str = "", depth: int = 0) -> Iterator[FoundText]:
    for entry in _entries(folder):
        if entry.suffix == ".md":
            real = entry.resolve() if project is None else resolved_inside(entry, project)
            yield FoundText(kind, above + entry.stem, entry, real, project is None)
        elif entry.is_dir() and not entry.is_symlink() and depth < MAX_COMMAND_DEPTH:
            # An agent is known by its name alone, in whichever folder it is; of commands the folders are a part of it.
            inner = f"{above}{entry.name}:" if kind == "command" else ""
            yield from _files(kind, entry, project, inner, depth + 1)


def _entries(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as found:
            names = sorted(entry.name for entry in islice(found, MAX_ENTRIES) if not entry.name.startswith("."))
    except OSError:
        return []
    return [folder / name for name in names]
