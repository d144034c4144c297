"""What a command may have written to places that are its own in the sandbox, such as /tmp: to people it is not there.

By the words of the command line alone: what a program writes without being told where is not seen. Only words of a
result depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath

from covey.permissions.safe_commands import complaint
from covey.permissions.safe_paths import OUTSIDE, Place
from covey.permissions.shell import SimpleCommand, Unparsed, parse
from covey.permissions.shell_words import Word
from covey.sandbox.policy import Paths, Policy, is_within

SHOWN = 3
"""Paths that are named: they are examples of the same thing."""

LONGEST = 200
"""Characters. A longer word is hardly a path, and is not worth saying again."""


def private_paths(command: str, policy: Policy | None, private: Paths) -> Paths:
    """The paths in `private` directories that the line may write to. What the policy shows there is not private."""
    line = parse(command) if policy and private else Unparsed("not confined")
    if policy is None or isinstance(line, Unparsed):
        return ()
    shared = [tree for tree in (*policy.readable, *policy.runnable, *policy.writable) if tree not in private]
    paths = dict.fromkeys(_path(word) for each in line.commands for word in _targets(each))
    found = [path for path in paths if _is_in(path, private) and not _is_in(path, shared)]
    return tuple(path for path in found if len(path) <= LONGEST)[:SHOWN]


def _targets(command: SimpleCommand) -> Iterator[Word]:
    """Words that may name what is written: none of a command that only looks, wherever that is."""
    yield from (redirect.target for redirect in command.redirects if redirect.writes)
    yield from (value for _, value in command.assigns)
    if command.words and complaint(command.words, Place()) not in ("", OUTSIDE):
        yield from command.words[1:]


def _path(word: Word) -> str:
    """Also of an option or an operand with a name, as `of=/tmp/x`."""
    text = word.text
    return normpath(text if text.startswith("/") else text.partition("=")[2])


def _is_in(path: str, trees: Paths | list[str]) -> bool:
    return any(is_within(path, tree) for tree in trees)
