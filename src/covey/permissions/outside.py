"""What a command reads outside of the workspace, where that is all that speaks against it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from covey.permissions.judge import Intent
from covey.permissions.lines import doubt
from covey.permissions.links import LINK, Use
from covey.permissions.rules import Rules
from covey.permissions.safe_paths import OUTSIDE, Place, place
from covey.permissions.shell import Line, Unparsed, parse
from covey.permissions.shell_commands import Redirect, SimpleCommand
from covey.permissions.shell_words import Word, WordKind, literal

_IN_HOME = re.compile(r"~(?:/[\w.+@/-]*)?", re.ASCII)
"""To a shell that is a variable, and to people a place."""
_PATTERN = re.compile(r"[*?\[]")
_HERE = literal(".")


def read_outside(intent: Intent, root: str) -> tuple[str, ...]:
    """The paths, absolute or with `~`, that a command line must see to do no more than look; () if it does more.

    A link that leads out is named by its own path, and a pattern by the directory before it.
    """
    line = parse(intent.subject) if intent.tool == "bash" else Unparsed("no command")
    if isinstance(line, Unparsed):
        return ()
    start = place(root, intent.cwd)
    seen = replace(start or Place(root), repository=intent.repository, links=intent.links)
    base = intent.cwd or root
    words = [word for command in line.commands for word in _named(command) if _leads_out(word, seen)]
    inside = Line(tuple(_without(command, words) for command in line.commands), line.oddities)
    cwd = intent.cwd if start else ""
    if doubt(intent.subject, inside, Rules(root=root), cwd, intent.repository, intent.links) is not None:
        return ()
    return tuple(dict.fromkeys(([] if start else [intent.cwd]) + [_path(word, base) for word in words]))


def _named(command: SimpleCommand) -> Iterator[Word]:
    yield from command.words[1:]
    yield from (redirect.target for redirect in command.redirects if redirect.reads)


def _leads_out(word: Word, seen: Place) -> bool:
    if word.kind is WordKind.UNKNOWN:
        return bool(_IN_HOME.fullmatch(word.text))
    return seen.problem(word, Use.CONTENT) in (OUTSIDE, LINK)


def _without(command: SimpleCommand, words: list[Word]) -> SimpleCommand:
    """The same command, as if it read the workspace's own directory instead."""

    def inside(redirect: Redirect) -> Redirect:
        return replace(redirect, target=_HERE) if redirect.reads and redirect.target in words else redirect

    first, rest = command.words[:1], command.words[1:]
    kept = tuple(_HERE if word in words else word for word in rest)
    return replace(command, words=(*first, *kept), redirects=tuple(map(inside, command.redirects)))


def _path(word: Word, base: str) -> str:
    text = word.text
    if word.kind is WordKind.GLOB and (found := _PATTERN.search(text)):
        text = text[: found.start()].rpartition("/")[0] or "/"
    is_whole = text.startswith("/") or word.kind is WordKind.UNKNOWN
    return text if is_whole else f"{base.rstrip('/')}/{text}"
