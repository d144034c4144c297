"""Which files a workspace's ignore files leave out, as git and ripgrep read them.

Whoever wrote the workspace wrote these files, so they are hostile: only regular files are read, and only so much of
them. A link to /dev/zero or a FIFO by that name stops other readers of ignore files for good.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from covey.machine.regular import read_regular
from covey.tools.globs import BadPattern, PathPattern, name_regex

SIZE_LIMIT = 256 * 1024
"""Bytes read of one ignore file; real ones have a few hundred."""
RULES_LIMIT = 2_000
"""Rules kept of one ignore file: each of them costs a little for each path."""
LINE_LIMIT = 1_000
"""Characters of a rule. A longer one is left out."""


@dataclass(frozen=True, slots=True)
class Rule:
    keeps: bool
    """The rule began with `!`: what it matches is not left out after all."""
    directories_only: bool
    name: re.Pattern[str] | None
    """For a rule without a slash, which is about names in any directory."""
    path: PathPattern | None

    def matches(self, parts: Sequence[str], *, is_directory: bool) -> bool:
        if self.directories_only and not is_directory:
            return False
        if self.name is not None:
            return self.name.fullmatch(parts[-1]) is not None
        return self.path is not None and self.path.matches(parts)


class IgnoreFile:
    """The rules of one ignore file. Paths are those from the walk's top; `depth` says how deep the file is in it."""

    def __init__(self, text: str, depth: int) -> None:
        lines = [line for line in text.split("\n") if len(line) <= LINE_LIMIT]
        rules = [rule for line in lines if (rule := parse(line)) is not None][-RULES_LIMIT:]
        self.depth = depth
        # The last rule that matches counts.
        self._rules = rules[::-1]
        names = [rule.name.pattern for rule in rules if rule.name is not None]
        self._any_name = re.compile("|".join(names)) if names else None
        self._by_path = [rule for rule in self._rules if rule.path is not None]

    def ignores(self, parts: Sequence[str], *, is_directory: bool) -> bool | None:
        """None: no rule is about this path."""
        # Most files are in no rule about names, and one regular expression tells that.
        by_name = self._any_name is not None and self._any_name.fullmatch(parts[-1]) is not None
        inside = parts[self.depth :]
        for rule in self._rules if by_name else self._by_path:
            if rule.matches(inside, is_directory=is_directory):
                return not rule.keeps
        return None


def parse(line: str) -> Rule | None:
    """The rule of one line; None for a comment, an empty line, or a pattern that means nothing."""
    line = line.removesuffix("\r")
    stripped = line.rstrip(" ")
    # A blank at the end counts only if it is escaped.
    line = stripped + " " if stripped.endswith("\\") and stripped != line else stripped
    keeps = line.startswith("!")
    pattern = line[keeps:]
    if line.startswith("#") or not pattern.strip("/"):
        return None
    directories_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    if not {"", ".", ".."}.isdisjoint(pattern.removeprefix("/").split("/")):
        return None  # no path has such a part
    try:
        if "/" in pattern:
            return Rule(keeps, directories_only, None, PathPattern(pattern))
        return Rule(keeps, directories_only, re.compile(name_regex(pattern)), None)
    except BadPattern:
        return None


@dataclass(frozen=True, slots=True)
class Ignores:
    """All ignore files that are about one directory, the nearest last."""

    git: tuple[IgnoreFile, ...] = ()
    plain: tuple[IgnoreFile, ...] = ()
    """From `.ignore` files, which overrule those of git."""

    def ignores(self, parts: Sequence[str], *, is_directory: bool) -> bool:
        for files in (self.plain, self.git):
            for file in reversed(files):
                verdict = file.ignores(parts, is_directory=is_directory)
                if verdict is not None:
                    return verdict
        return False

    def for_start(self, parts: Sequence[str]) -> Ignores:
        """What holds in the directory where a walk begins: rules that leave it out as a whole do not.

        Whoever names an ignored directory wants to see what is in it. The same goes for a workspace inside of a
        repository that ignores everything, as those for the files of a home directory do.
        """
        left_out = any(
            file.depth < end and file.ignores(parts[:end], is_directory=True)
            for end in range(1, len(parts) + 1)
            for file in self.git + self.plain
        )
        anything = "\0"

        def holds(file: IgnoreFile) -> bool:
            if not file.ignores((*parts, anything), is_directory=False):
                return True
            # Everything is ignored at the top for the sake of exceptions, of which this directory is one.
            return file.depth == 0 and not left_out and bool(file.ignores((anything,), is_directory=False))

        return Ignores(tuple(filter(holds, self.git)), tuple(filter(holds, self.plain)))

    def entering(self, directory: str, names: set[str], depth: int) -> Ignores:
        """What holds inside of a directory that has these names in it."""
        git, plain = self.git, self.plain
        if ".git" in names:
            # A repository inside of another has rules of its own.
            exclude = _read(os.path.join(directory, ".git", "info", "exclude"), depth)
            git = (exclude,) if exclude else ()
        if ".gitignore" in names and (found := _read(os.path.join(directory, ".gitignore"), depth)):
            git = (*git, found)
        if ".ignore" in names and (found := _read(os.path.join(directory, ".ignore"), depth)):
            plain = (*plain, found)
        return self if git is self.git and plain is self.plain else Ignores(git, plain)


def _read(path: str, depth: int) -> IgnoreFile | None:
    content = read_regular(path, SIZE_LIMIT, look_first=False)
    if content is None:
        return None
    return IgnoreFile(content.data.decode("utf-8", "surrogateescape").removeprefix("\ufeff"), depth)
