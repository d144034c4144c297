"""The files below a directory, without those that ignore files leave out. Breadth first: what is near comes first.

Nothing is opened but directories and ignore files. Links are listed, never followed, so there are no loops and no way
out. Directories come and go meanwhile: what is gone is left out, what cannot be read is counted. It runs in a process
of its own (`search_process`), which can be ended.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from covey.tools.ignores import Ignores

ALWAYS_IGNORED = frozenset({".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__"})
"""Never what is looked for, also where nobody wrote an ignore file. Named as the place to start, they are walked."""
PSEUDO = ("/proc", "/sys", "/dev")
"""No files on a disk: endless, or with effects when read."""

_ABOVE_LIMIT = 100
"""How many directories above the start are asked for ignore files."""


@dataclass(frozen=True, slots=True)
class Found:
    """One entry of a directory."""

    parts: tuple[str, ...]
    """From where the walk began."""
    mode: int
    size: int
    mtime_ns: int

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_regular(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)


class Walk:
    """One walk. `opened` tells which directories were looked into, once it is over."""

    def __init__(
        self,
        base: str,
        top: str,
        *,
        until: float = float("inf"),
        depth: int | None = None,
        hidden: Callable[[str], bool] = lambda path: False,
    ) -> None:
        """`top` is the workspace: if nothing is a repository, its ignore files still count for all below it.

        `hidden` says of a path that nobody may look there.
        """
        self._base = base
        self._hidden = hidden
        self._until = until
        self._depth = depth
        self._above, ignores = _above(base, top)
        self._waiting: deque[tuple[tuple[str, ...], Ignores]] = deque([((), ignores)])
        self.opened: set[tuple[str, ...]] = set()
        self.unreadable = 0
        self.out_of_time = False

    def __iter__(self) -> Iterator[Found]:
        while self._waiting:
            parts, ignores = self._waiting.popleft()
            for found, inner in self._open(parts, ignores):
                if time.monotonic() > self._until:
                    self.out_of_time = True
                    return
                if self._hidden(os.path.join(self._base, *found.parts)):
                    continue
                if found.is_directory and (self._depth is None or len(found.parts) < self._depth):
                    self._waiting.append((found.parts, inner))
                yield found

    def _open(self, parts: tuple[str, ...], ignores: Ignores) -> list[tuple[Found, Ignores]]:
        """What is in one directory, by name, and the rules that hold inside of it."""
        path = os.path.join(self._base, *parts)
        if path.startswith(PSEUDO) and any(path == pseudo or path.startswith(f"{pseudo}/") for pseudo in PSEUDO):
            return []
        try:
            # A link that has taken the directory's place since is not followed.
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            self._note(error)
            return []
        found: list[Found] = []
        try:
            with os.scandir(descriptor) as entries:
                found.extend(entry for each in entries if (entry := self._found(each, parts)))
        except OSError as error:
            self._note(error)
        finally:
            os.close(descriptor)
        self.opened.add(parts)
        names = {entry.parts[-1] for entry in found}
        inner = ignores.entering(path, names, len(self._above) + len(parts))
        if self._above and not parts:
            inner = inner.for_start(self._above)
        kept = [entry for entry in found if not self._is_left_out(entry, inner)]
        return [(entry, inner) for entry in sorted(kept, key=lambda entry: entry.parts[-1])]

    def _found(self, entry: os.DirEntry[str], parts: tuple[str, ...]) -> Found | None:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            self._note(error)
            return None
        return Found((*parts, entry.name), status.st_mode, status.st_size, status.st_mtime_ns)

    def _is_left_out(self, entry: Found, ignores: Ignores) -> bool:
        name = entry.parts[-1]
        return name in ALWAYS_IGNORED or ignores.ignores((*self._above, *entry.parts), is_directory=entry.is_directory)

    def _note(self, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):  # it is gone, or something else by now
            self.unreadable += 1


def _above(base: str, top: str) -> tuple[tuple[str, ...], Ignores]:
    """The parts from where ignore files begin to count to the base, and the rules of the directories in between."""
    directories = [base]
    while len(directories) < _ABOVE_LIMIT and (parent := os.path.dirname(directories[-1])) != directories[-1]:
        directories.append(parent)
    repository = next((each for each in directories if os.path.lexists(os.path.join(each, ".git"))), None)
    start = repository or (top if top in directories else base)
    between = directories[1 : directories.index(start) + 1]
    ignores = Ignores()
    for depth, directory in enumerate(reversed(between)):
        names = {name for name in (".git", ".gitignore", ".ignore") if os.path.lexists(os.path.join(directory, name))}
        ignores = ignores.entering(directory, names, depth)
    return tuple(os.path.basename(each) for each in reversed(directories[: len(between)])), ignores
