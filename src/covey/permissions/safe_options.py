"""Options and operands of a command that only looks: which are known to be harmless, and which are paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from covey.permissions.links import LINK, Use
from covey.permissions.safe_paths import OUTSIDE, Place
from covey.permissions.shell_words import Word, WordKind

Words = Sequence[Word]

NOT_LISTED = "not-listed"
OPTION = "option"
ARGUMENT = "argument"
VARIABLE = "unknown"


@dataclass(frozen=True, slots=True)
class Spec:
    """The arguments of a command that only looks."""

    short: str | None = None
    """Options of one letter; None: all options are harmless."""
    valued: str = ""
    """Those with a value, which is no path."""
    glued: bool = True
    """Whether a value may stand in the same word as its letter. If not, what follows the letter are options."""
    clusters: bool = True
    """Whether letters may share a word with one that takes the next word."""
    long: str = ""
    """Options in words that never take the next word: they have no value, or only after `=`."""
    long_valued: str = ""
    """Those with a value, which may be the next word."""
    skip: int = 0
    """How many operands at the beginning are no paths."""
    most: int | None = None
    """How many operands there may be."""
    paths: bool = True
    """Whether operands are paths."""
    skips_unless: str = ""
    """Options that make the first operands paths, too."""


def by_spec(words: Words, spec: Spec, place: Place) -> str:
    if spec.short is None:
        return _any_options(words, place) if spec.paths else unknown(words) or outside(words, place)
    operands: list[Word] = []
    values: list[Word] = []
    """Values that are operands to some versions of some programs."""
    skip, at = spec.skip, 0
    unless = spec.skips_unless.split()
    while at < len(words):
        word = words[at]
        at += 1
        if word.kind not in (WordKind.LITERAL, WordKind.GLOB):
            return VARIABLE
        if word.known and word.text == "--":
            operands += words[at:]
            break
        if word.kind is WordKind.GLOB and word.head[:1] in ("", "-") and not _LONG_WITH_VALUE.match(word.head):
            return ARGUMENT  # the name of a file may be an option
        if word.text[:1] != "-" or word.text == "-":
            operands.append(word)
            continue
        takes = option(word.text, spec)
        if takes < 0 or (takes and not spec.clusters and re.match("-[^-].", word.text)):
            return OPTION
        if _has_any(word.text, unless):
            skip = 0
        if takes and at < len(words):
            if not words[at].known:
                return VARIABLE  # it may become several words
            if word.text.startswith("--") and words[at].text.startswith("-"):
                return OPTION  # one program may take it as an option, another as a value
            if word.text.startswith("--") or operands:
                values.append(words[at])
        at += takes
    if spec.most is not None and (len(operands) > spec.most or not all(word.known for word in operands)):
        return ARGUMENT
    # What may become several words stands for paths as well, even in the place of one that is no path.
    paths = operands[skip:] + [word for word in operands[:skip] if not word.known]
    return problem(paths + values, place) if spec.paths else outside(operands, place)


_DIGITS = re.compile("[0-9]+")
_LONG_WITH_VALUE = re.compile(r"--[\w-]+=")


def _has_any(text: str, names: Sequence[str]) -> bool:
    """Whether a word is one of these options, or a cluster with one of them in it."""
    if text.startswith("--"):
        return text.partition("=")[0] in names
    return any(name[1] in text[1:] for name in names if len(name) == 2)


def option(text: str, spec: Spec) -> int:
    """How many further words an option takes as its value; -1: it is not known."""
    if text.startswith("--"):
        name, equals, _ = text[2:].partition("=")
        if name in spec.long_valued.split():
            return 0 if equals else 1
        return 0 if name in spec.long.split() else -1
    for at, letter in enumerate(text[1:], 2):
        if letter in spec.valued:
            if at == len(text):
                return 1
            return 0 if spec.glued or _DIGITS.fullmatch(text[at:]) else -1
        if letter not in (spec.short or "") and not _DIGITS.fullmatch(letter):
            return -1
    return 0


def problem(words: Words, place: Place) -> str:
    """What is wrong with paths."""
    return next((found for word in words if (found := place.problem(word))), "")


def _any_options(words: Words, place: Place) -> str:
    """Every option is harmless, but any word may be a path, also after an option."""
    for word in words:
        if found := place.problem(word):
            return found
        if word.text.startswith("-"):
            values = [word.text.partition("=")[2]]
            if not word.text.startswith("--"):  # each ending may be the value of the letter before it
                values += [word.text[at:] for at in range(2, min(len(word.text), _LONGEST_CLUSTER))]
            if found := problem([Word(value, word.kind) for value in values if value], place):
                return found
            if len(word.text) > _LONGEST_CLUSTER and "/" in word.text:
                return ARGUMENT
    return ""


_LONGEST_CLUSTER = 20
"""Characters of a word in which letters are looked for that may be options with a value."""


def outside(words: Words, place: Place) -> str:
    """A pattern reveals the names of files elsewhere, whatever is done with them."""
    found = (place.problem(word, Use.NAME) for word in words if word.kind is WordKind.GLOB)
    return next((problem for problem in found if problem in (OUTSIDE, LINK)), "")


def unknown(words: Words) -> str:
    return VARIABLE if any(word.kind > WordKind.OUTPUT for word in words) else ""
