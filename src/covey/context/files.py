"""Files that projects and people keep for agents, such as AGENTS.md: which ones there are, and what they say.

Nothing in them is executed: they are text for the model. A project that is not trusted may speak to the model too, but
a link in it must not make it speak with the words of a file elsewhere. Everything here blocks; call it in a thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from covey.config.load import config_dir
from covey.context.inside import inside, resolved_inside
from covey.context.stand_in import MAX_DEPTH, find_root
from covey.machine.regular import read_regular

MAX_FILE_BYTES = 32 * 1024
"""Of one file. What is longer is a book, which the model can view where it needs it."""
MAX_TOTAL_BYTES = 64 * 1024
"""Of all of them: about 16,000 tokens, which every step pays for. The files nearest to the work come first."""
MAX_FILES = 30

OWN_FILE = "AGENTS.md"
"""In the directory of the user's configuration: instructions for every project."""

_ONLY_A_REFERENCE = re.compile(r"@(?:\./)?(\S+)")


@dataclass(frozen=True, slots=True)
class ContextFile:
    name: str
    """As the model may call it: from the root of the workspace, or in full."""
    text: str
    is_own: bool = False
    """The user's own words, not a project's."""
    cut_bytes: int = 0
    """How much of its end is missing."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a file may be, before it is known whether it is there."""

    path: Path
    bound: Path | None
    """A link must not lead out of this directory; None: it may lead anywhere."""


def read_context_files(
    root: Path, names: Sequence[str], environ: Mapping[str, str], *, trusted: bool
) -> tuple[ContextFile, ...]:
    """The user's own file, then those of the directories from the outermost down to `root`, each text once."""
    root = root.resolve()
    own = config_dir(environ) / OWN_FILE
    directories = _directories(root, environ)
    found = dict(_found([_Place(own, None)]))
    for directory in directories:
        places = [_Place(directory / name, None if trusted else directory) for name in _variants(names)]
        found.update(_without_references(_found(places), names))
    return _bounded(_once(found), root, own)


def _directories(root: Path, environ: Mapping[str, str]) -> list[Path]:
    """From the outermost whose words count: the top of the repository, else the user's home if `root` is in it."""
    home = Path(environ.get("HOME") or Path.home())
    top = find_root(root) or (home.resolve() if inside(root, home.resolve()) else root)
    between = [directory for directory in (root, *root.parents)[:MAX_DEPTH] if directory.is_relative_to(top)]
    return between[::-1]


def _variants(names: Sequence[str]) -> Iterator[str]:
    """Each name, and after it that of what only this machine has. A name that leads out of its directory is none."""
    for name in names:
        if not name or Path(name).is_absolute() or ".." in Path(name).parts:
            continue
        yield name
        if name.endswith(".md"):
            yield name.removesuffix(".md") + ".local.md"


def _found(places: Sequence[_Place]) -> Iterator[tuple[Path, tuple[bytes, int]]]:
    """Path, beginning and size of each file that is there and is text."""
    for place in places:
        if not os.path.lexists(place.path):  # as most are not; finding out where it leads would take much longer
            continue
        real = resolved_inside(place.path, (place.bound or Path(place.path.anchor)).resolve())
        read = read_regular(real, MAX_FILE_BYTES) if real else None
        if read and read[0].strip() and b"\0" not in read[0]:
            yield place.path, read


def _without_references(
    found: Iterator[tuple[Path, tuple[bytes, int]]], names: Sequence[str]
) -> dict[Path, tuple[bytes, int]]:
    """Some files only say `@AGENTS.md`, for other agents; that file speaks for itself."""
    kept = {}
    for path, (content, size) in found:
        match = _ONLY_A_REFERENCE.fullmatch(content.decode("utf-8", "replace").strip())
        if not (match and match[1] in names and (path.parent / match[1]).is_file()):
            kept[path] = (content, size)
    return kept


def _once(found: Mapping[Path, tuple[bytes, int]]) -> dict[Path, tuple[bytes, int]]:
    """Without those whose content was there before: CLAUDE.md is often a link to AGENTS.md, or a copy of it."""
    seen: set[tuple[bytes, int]] = set()
    kept = {}
    for path, (content, size) in found.items():
        key = (content.strip(), size if size > len(content) else 0)
        if key not in seen:
            seen.add(key)
            kept[path] = (content, size)
    return kept


def _bounded(found: Mapping[Path, tuple[bytes, int]], root: Path, own: Path) -> tuple[ContextFile, ...]:
    """Cut to what all of them may have: room is given from the nearest outwards, the order stays as it was."""
    left = MAX_TOTAL_BYTES
    files: list[ContextFile] = []
    for path, (content, size) in list(found.items())[: -MAX_FILES - 1 : -1]:
        shown = content[: min(left, MAX_FILE_BYTES)]
        left -= len(shown)
        text = shown.decode("utf-8-sig", "replace" if size == len(shown) else "ignore").strip()
        files.append(ContextFile(_name(path, root, own), text, path == own, max(0, size - len(shown))))
    return tuple(files[::-1])


def _name(path: Path, root: Path, own: Path) -> str:
    inside_root = path != own and path.is_relative_to(root)
    return str(path.relative_to(root) if inside_root else path).encode("utf-8", "replace").decode()
