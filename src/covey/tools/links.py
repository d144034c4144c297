"""Where the paths of a command line really lead: the links in the workspace, and what patterns become.

The judge of command lines reads paths as they are written. A clone brings links along, so before a line is allowed
unasked its paths are looked up here. It is bounded: what would take too long is asked about. A link that is made after
the line was judged is not seen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from covey.permissions.links import LINK, Use
from covey.permissions.safe_paths import SECRET, is_secret

ENTRIES_LIMIT = 10_000
"""Directory entries and paths that are looked at for one line: at most some 40 ms on the event loop."""

_GLOB = re.compile(r"[*?\[]")
_BRACKETS = re.compile(r"\[.*\]")
"""What stands in them, and what of it was quoted, is not known here: it is taken for anything."""
_SAYS_NOTHING = re.compile(r"(?:\[.*\]|[*?.])*")


class _MayLeadOut(Exception):
    """A directory on the way is outside, or there is more to look at than anybody should wait for."""


class WorkspaceLinks:
    """The links of one workspace, as they are while one command line is judged."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._left = ENTRIES_LIMIT
        self._real_directories: dict[str, str] = {}

    def __call__(self, base: str, path: str, use: Use, *, pattern: bool) -> str:
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if use is Use.DIRECTORY:
            return LINK if any(os.path.islink(place) for place in _on_the_way(base, parts)) else ""
        try:
            found = self._expanded(base, parts) if pattern else [("/".join((base, *parts)), False)]
            return next((problem for place, secret in found if (problem := self._problem(place, use, secret))), "")
        except _MayLeadOut:
            return LINK

    def _problem(self, path: str, use: Use, names_secret: bool) -> str:
        if use is Use.NAME:
            return "" if self._contains(self._real(os.path.dirname(path))) else LINK
        real = self._real(path)
        if not self._contains(real):
            return LINK
        if names_secret or (real != path and any(map(is_secret, real[len(self._root) :].split("/")))):
            return SECRET
        return LINK if use is Use.TREE and self._has_way_out(real) else ""

    def _expanded(self, base: str, parts: list[str]) -> list[tuple[str, bool]]:
        """Every path that a pattern becomes, and whether the pattern has picked out a secret there."""
        places = [(base, False)]
        for part in parts:
            if _GLOB.search(part):
                picks = not _SAYS_NOTHING.fullmatch(part)
                places = [
                    (f"{directory}/{name}", secret or (picks and is_secret(name)))
                    for directory, secret in places
                    for name in self._matching(directory, part)
                ]
            else:
                places = [(f"{directory}/{part}", secret) for directory, secret in places]
        return [(place, secret) for place, secret in places if os.path.lexists(place)]

    def _matching(self, directory: str, part: str) -> list[str]:
        if not self._contains(self._real(directory)):
            raise _MayLeadOut
        wanted = _BRACKETS.sub("*", part)
        names = []
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                self._count()
                if fnmatchcase(entry.name, wanted) and (entry.name[0] != "." or part[0] == "."):
                    names.append(entry.name)
        return names

    def _has_way_out(self, top: str) -> bool:
        """Whether a link leads out of the workspace: one below, or below a directory to which another one leads."""
        waiting, seen = [top], {top}
        while waiting:
            with suppress(OSError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    self._count()
                    real = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
                    if not self._contains(real):
                        return True
                    if real not in seen and entry.is_dir():
                        seen.add(real)
                        waiting.append(real)
        return False

    def _real(self, path: str) -> str:
        """The path without links, as the kernel would go; a directory is looked up once."""
        self._count()
        directory, name = os.path.split(path)
        if directory not in self._real_directories:
            self._real_directories[directory] = os.path.realpath(directory)
        if name == ".." or os.path.islink(path):
            return os.path.realpath(path)
        return os.path.join(self._real_directories[directory], name)

    def _contains(self, path: str) -> bool:
        return f"{path}/".startswith(f"{self._root.rstrip('/')}/")

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _MayLeadOut


def _on_the_way(base: str, parts: list[str]) -> Iterator[str]:
    for end in range(1, len(parts) + 1):
        yield "/".join((base, *parts[:end]))
