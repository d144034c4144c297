"""Shell commands against rules: what a deny rule hits, and what keeps a line from being allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from covey.permissions import safe_paths
from covey.permissions.links import LINK, Links, Use, unseen
from covey.permissions.risky_options import names_risks
from covey.permissions.rules import Rules, exact, path_allowed, path_hit, patterns
from covey.permissions.safe_commands import complaint
from covey.permissions.safe_paths import Place, Repository
from covey.permissions.shell import Line, SimpleCommand, Unparsed, parse
from covey.permissions.shell_values import with_values
from covey.permissions.shell_words import Word, WordKind
from covey.permissions.shell_writes import written_by

_HARMLESS_VALUES = {
    re.compile(r"LANG|LC_[A-Z]+"): re.compile(r"C|POSIX|(?:C|[a-z]{2,3}_[A-Z]{2})\.(?:UTF-8|utf-?8)"),
    re.compile(r"LANGUAGE|TZ|NO_COLOR|CLICOLOR|FORCE_COLOR|COLUMNS|LINES"): re.compile(r"[A-Za-z0-9_.@:+-]*"),
}
"""Variables that change how something is shown. Every other one may change what a program does.

In a locale other than UTF-8 a shell may take a backslash for the second half of a character.
"""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a line is not simply allowed: a tag, and the command it is about."""

    tag: str
    about: str = ""


# ── deny and ask ──


def hit(rules: Iterable[str], text: str, line: Line | Unparsed, place: Rules) -> str | None:
    """The deny or ask rule that fits the line, or any command in it, however that is run."""
    rules = tuple(rules)
    if not rules:
        return None
    lines = [line] if isinstance(line, Unparsed) else [line, *map(parse, with_values(line))]
    if wanted := list(patterns(rules, "bash")):
        guessed = _guessed(text) if isinstance(line, Unparsed) else ()
        candidates = {text, *guessed, *(spelled for each in lines for spelled in _spellings(each))}
        for pattern in wanted:
            if not pattern or any(fnmatchcase(candidate, pattern) for candidate in candidates):
                return f"bash:{pattern}" if pattern else "bash"
    for path in dict.fromkeys(path for each in lines for path in _written(each, place.root)):
        for tool in ("write", "edit"):
            # A rule without a pattern is about the tool, not about files.
            named = [rule for rule in rules if rule.startswith(f"{tool}:")]
            if found := path_hit(named, tool, path, place.root):
                return found
    return None


def _spellings(line: Line | Unparsed) -> Iterator[str]:
    for command in () if isinstance(line, Unparsed) else line.commands:
        if command.words and not command.words[0].known:
            yield from _guessed(command.words[0].text)
        if command.is_compound:
            # The values of a loop are run where its variable is, and a shell may evaluate them again.
            yield from (guess for word in command.words for guess in _guessed(word.text))
        plain = " ".join(" ".join(word.text for word in command.words).split())
        for spelled in (plain, spell(command.words), plain[plain.find(command.name) :] if command.name else plain):
            yield spelled
            yield f"{spelled} "  # what it works on may come from elsewhere, as with xargs


def spell(words: Iterable[Word]) -> str:
    """A command spelled plainly: one blank between words, quotes only around those that need them."""
    return " ".join(_quoted(word.text) for word in words)


def _quoted(text: str) -> str:
    if text and not re.search(r"[\s'\"]", text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def _written(line: Line | Unparsed, root: str) -> Iterator[str]:
    """The files that a line writes, seen from the root and from every directory that it changes to."""
    if isinstance(line, Unparsed):
        return
    moves = (command.words[1].text for command in line.commands if command.name == "cd" and len(command.words) > 1)
    places = [Place(root), *(moved for text in moves if (moved := safe_paths.place(root, text)))]
    for command in line.commands:
        targets = [redirect.target.text for redirect in command.redirects if redirect.writes]
        for text in filter(None, (*targets, *written_by(command))):
            yield from (path for place in places for path in place.absolute(text) or [text])


_BETWEEN_COMMANDS = re.compile(r"[;&|<>`()\n\r{}]|\s-exec(?:dir)?\s")
_BEFORE_COMMAND = re.compile(
    r"(?:(?:\w+\+?=\S*|!|if|then|elif|else|while|until|do|time|sudo|doas|env|command|builtin|exec|eval|nohup|nice"
    r"|xargs|(?:\S*/)?(?:ba|da|z|k)?sh)\s(?:-\S+\s(?:\d+\s)?)*)*(?:[^\s=]*/)?"
)
"""Words that stand before a command and leave it what it is, and the directory in which it is."""
_QUOTES = str.maketrans("", "", "'\"\\")


def _guessed(text: str) -> Iterator[str]:
    """Commands in a text that could not be parsed, by looking at it. Better than nothing."""
    for piece in _BETWEEN_COMMANDS.split(text):
        plain = " ".join(piece.translate(_QUOTES).split())
        yield plain
        command = plain[_BEFORE_COMMAND.match(plain).end() :]  # type: ignore[union-attr] # it also matches nothing
        yield command
        yield f"{command} "


# ── allow ──


def doubt(
    text: str,
    line: Line | Unparsed,
    rules: Rules,
    cwd: str,
    repository: Repository = Repository.OWN,
    links: Links = unseen,
) -> Doubt | None:
    """The first thing that is neither harmless nor allowed by a rule; None: all of the line is."""
    if "" in patterns(rules.allow, "bash"):
        return None
    if isinstance(line, Unparsed):
        return Doubt("unparsed", line.reason)
    if any(exact(pattern) == text.strip() for pattern in patterns(rules.allow, "bash")):
        return None
    if line.oddities:
        return Doubt(min(line.oddities))
    place = safe_paths.place(rules.root, cwd)
    if place is None:
        return Doubt("outside", cwd)
    return _Judge(line, rules, replace(place, repository=repository, links=links)).first_doubt()


def _only_shows(name: str, value: str) -> bool:
    return any(names.fullmatch(name) and values.fullmatch(value) for names, values in _HARMLESS_VALUES.items())


class _Judge:
    """Goes through the commands of one line, in order, since `cd` changes what paths mean."""

    def __init__(self, line: Line, rules: Rules, place: Place) -> None:
        self._line = line
        self._rules = rules
        self._place = place
        self._patterns = [pattern for pattern in patterns(rules.allow, "bash") if pattern]
        self._ruled: list[bool] = []

    def first_doubt(self) -> Doubt | None:
        for command in self._line.commands:
            parent = command.parent >= 0 and self._ruled[command.parent]
            self._ruled.append(parent or self._has_rule(command))
            tag = self._surroundings(command)
            if not tag and command.words:
                # Bare: `./cd` is a program.
                tag = self._moves(command) if command.words[0].text == "cd" else self._runs(command)
            if tag:
                return Doubt(tag, spell(command.words))
        return None

    def _has_rule(self, command: SimpleCommand) -> bool:
        """A rule covers a command that is complete in its words: what it reads may be a program."""
        if not command.words or command.fed or command.is_compound or not command.words[0].known:
            return False
        if any(word.kind not in (WordKind.LITERAL, WordKind.GLOB) for word in command.words):
            return False
        spelled = spell(command.words)
        return any(fnmatchcase(spelled, pattern) and names_risks(pattern, command.words) for pattern in self._patterns)

    def _surroundings(self, command: SimpleCommand) -> str:
        for name, value in command.assigns:
            if not value.known or not _only_shows(name, value.text):
                return "environment"
        for redirect in command.redirects:
            if redirect.writes and not self._may_write(redirect.target):
                return "writes"
            if redirect.reads and (problem := self._place.problem(redirect.target)):
                return problem
            if redirect.op.startswith("<<") and redirect.target.kind is WordKind.UNKNOWN:
                return "unknown"
        return ""

    def _may_write(self, target: Word) -> bool:
        if not target.known:
            return False
        paths = self._place.absolute(target.text)
        if not paths or self._place.problem(target) == LINK:
            return False
        return all(path_allowed(self._rules, "write", path, changes=True) for path in paths)

    def _moves(self, command: SimpleCommand) -> str:
        operands = [word for word in command.words[1:] if word.text != "--"]
        if command.looped or len(operands) != 1 or operands[0].text.startswith("-"):
            return "directory"
        moved = self._place.moved(operands[0])
        if moved is None:
            return self._place.problem(operands[0], Use.DIRECTORY) or "directory"
        self._place = moved
        return ""

    def _runs(self, command: SimpleCommand) -> str:
        return "" if self._ruled[-1] else complaint(command.words, self._place)
