"""Allow, ask or deny: from rules and past answers, never from what the model says about itself.

A rule is `tool` or `tool:pattern`. The pattern is matched against the command of `bash` and the path of the other
tools. Shell text is hostile: an allow rule only ever covers one simple command, while a deny rule covers a command
wherever it stands in a longer one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase


class Verdict(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Rules:
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wish:
    """What a tool call is about to do. `harmless`: the tool itself knows that nobody needs to be asked."""

    tool: str
    action: str
    subject: str
    """The command, or the path."""
    harmless: bool = False

    @property
    def grant(self) -> tuple[str, str, str]:
        """What an answer for the session covers: the same tool doing the same thing to the same subject."""
        return (self.tool, self.action, self.subject)


def decide(wish: Wish, rules: Rules, granted: frozenset[tuple[str, str, str]], *, skip: bool) -> Verdict:
    """A deny rule is never overruled; then whatever allows; then somebody must be asked."""
    if any(_denies(rule, wish) for rule in rules.deny):
        return Verdict.DENY
    if skip or wish.harmless or wish.grant in granted:
        return Verdict.ALLOW
    if any(_allows(rule, wish) for rule in rules.allow):
        return Verdict.ALLOW
    return Verdict.ASK


_NOT_SIMPLE = re.compile(r"[;&|<>`$()\n\r{}\\]|^\s*\w+\+?=")
"""More than one simple command, or one whose environment is changed, which can make any program do anything."""
_BETWEEN_COMMANDS = re.compile(r"[;&|<>`()\n\r{}]|\s-exec(?:dir)?\s")
_BEFORE_COMMAND = re.compile(
    r"(?:(?:\w+\+?=\S*|!|if|then|elif|else|while|until|do|time|sudo|doas|env|command|builtin|exec|eval|nohup|nice"
    r"|xargs|(?:\S*/)?(?:ba|da|z|k)?sh)\s(?:-\S+\s(?:\d+\s)?)*)*(?:[^\s=]*/)?"
)
"""Words that stand before a command and leave it what it is, and the directory in which it is."""
_QUOTES = str.maketrans("", "", "'\"\\")


def _allows(rule: str, wish: Wish) -> bool:
    tool, colon, pattern = rule.partition(":")
    if tool != wish.tool:
        return False
    if not colon:
        return True
    if wish.tool == "bash" and _NOT_SIMPLE.search(wish.subject):
        return False
    return fnmatchcase(wish.subject, pattern)


def _denies(rule: str, wish: Wish) -> bool:
    tool, colon, pattern = rule.partition(":")
    if tool != wish.tool:
        return False
    subjects = _commands(wish.subject) if tool == "bash" else (wish.subject,)
    return not colon or any(fnmatchcase(subject, pattern) for subject in subjects)


def _commands(text: str) -> Iterator[str]:
    """Every command that stands in shell text, as it is and spelled plainly. Not a sandbox: a shell has more ways."""
    yield text
    for piece in _BETWEEN_COMMANDS.split(text):
        plain = " ".join(piece.translate(_QUOTES).split())
        yield plain
        command = plain[_BEFORE_COMMAND.match(plain).end() :]  # type: ignore[union-attr] # it also matches nothing
        yield command
        yield f"{command} "  # what it works on may come from elsewhere, as with xargs
