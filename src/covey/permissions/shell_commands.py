"""What a shell command line comes down to: simple commands, each with its words and redirections."""

from __future__ import annotations

import re
from dataclasses import dataclass

from covey.permissions.shell_words import UNKNOWN, Word

_COMPOUND = frozenset({"for", "select", "case", "function"})
"""Such a word without quotes is never the name of a program."""


@dataclass(slots=True)
class Redirect:
    """`target` is a path, a file descriptor, or the text of a here-document, which is filled in when it is read."""

    op: str
    target: Word

    @property
    def writes(self) -> bool:
        """Whether a file may be created or changed."""
        if self.op in (">&", "<&"):
            return not (self.target.known and re.fullmatch(r"[0-9]+-?|-", self.target.text))
        return ">" in self.op and not (self.target.known and self.target.text == "/dev/null")

    @property
    def reads(self) -> bool:
        """Whether a file is read."""
        return self.op == "<" and self.feeds

    @property
    def feeds(self) -> bool:
        """Whether the command gets something to read."""
        return self.op[0] == "<" and not (self.target.known and self.target.text == "/dev/null")


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple command, or only redirections (of a group), or only assignments.

    Or what a compound command expands and sets by itself: then its first word is the keyword.
    """

    words: tuple[Word, ...]
    assigns: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    parent: int = -1
    """The index of the command that runs this one, as `env` and `sh -c` do; -1: the shell itself."""
    fed: bool = False
    """It reads from a pipe, a file or a here-document, so its words need not say what it does."""
    looped: bool = False
    """It may run more than once, or later: inside of a loop or a function."""

    @property
    def is_compound(self) -> bool:
        """A loop, a `case` or a function: no program, so no rule for programs is about it."""
        return bool(self.words) and self.words[0].bare and self.words[0].text in _COMPOUND

    @property
    def name(self) -> str:
        """The program, without its directory; empty if it is not known."""
        first = self.words[0] if self.words else UNKNOWN
        return first.text.rpartition("/")[2] if first.known else ""


@dataclass(frozen=True, slots=True)
class Line:
    commands: tuple[SimpleCommand, ...]
    oddities: frozenset[str] = frozenset()
    """What makes the list less than the whole story: `function`, `background`, `coproc`."""


@dataclass(frozen=True, slots=True)
class Unparsed:
    reason: str
