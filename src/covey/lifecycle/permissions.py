"""Allow, ask or deny: from rules and past answers, never from what the model says about itself.

A rule is `tool` or `tool:pattern`. The pattern is matched against the command of `bash` and the path of the other
tools. Shell text is hostile: an allow rule only ever covers one simple command, while a deny rule covers a command
wherever it stands in a longer one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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


_SHELL_SYNTAX = re.compile(r"[;&|<>`$()\n\r{}\\]")
_SHELL_SPLIT = re.compile(r"[;&|<>`()\n\r{}]|\$\(")


def _allows(rule: str, wish: Wish) -> bool:
    tool, colon, pattern = rule.partition(":")
    if tool != wish.tool:
        return False
    if not colon:
        return True
    if wish.tool == "bash" and _SHELL_SYNTAX.search(wish.subject):
        return False
    return fnmatchcase(wish.subject, pattern)


def _denies(rule: str, wish: Wish) -> bool:
    tool, colon, pattern = rule.partition(":")
    if tool != wish.tool:
        return False
    if not colon:
        return True
    subjects: Sequence[str] = (wish.subject,)
    if wish.tool == "bash":
        subjects = (wish.subject, *(piece.strip() for piece in _SHELL_SPLIT.split(wish.subject)))
    return any(fnmatchcase(subject, pattern) for subject in subjects)
