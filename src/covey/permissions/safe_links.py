"""Commands that follow the links in a whole tree, so that its paths say nothing about what they read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from covey.permissions.links import Use
from covey.permissions.safe_paths import Place
from covey.permissions.shell_words import Word, literal
from covey.permissions.shell_wrappers import end_of_exec

_GREP = (re.compile(r"-[^-].*R|-R|--dereference-recursive"),)
_LS = (re.compile(r"-[^-]*R|--rec"), re.compile(r"-[^-]*[LH]|--de"))
_FOLLOWS: dict[str, tuple[re.Pattern[str], ...]] = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), _GREP),
    **dict.fromkeys(("ls", "dir", "vdir"), _LS),
    "tree": (re.compile(r"-[^-]*l"),),
    "du": (re.compile(r"-[^-]*L|--de"),),
    "diff": (),
}
"""Each pattern fits the beginning of an option without which no link in a tree is followed."""
_HERE = literal(".")


def followed(name: str, words: Sequence[Word], place: Place) -> str:
    """What is wrong with the trees that a command goes through."""
    needed = _FOLLOWS.get(name)
    if needed is None or not all(any(option.match(word.text) for word in words) for option in needed):
        return ""
    operands = [word for word in words if word.text[:1] != "-"]
    if len(operands) < (2 if needed is _GREP else 1):  # the first operand of grep may be what is looked for
        operands.append(_HERE)
    return _in_trees(operands, place)


_SHOWS_NAMES = frozenset({"echo", "printf", "basename", "dirname", "test", "["})
_CHOOSES = frozenset({"-o", "-or", "!", "-not", ",", "("})


def found_and_read(words: Sequence[Word], starts: Sequence[Word], place: Place) -> str:
    """What is wrong with an `-exec`: it may read links that were found, unless only plain files are."""
    texts = [word.text for word in words]
    commands = [words[at + 1 : end_of_exec(words, at + 1)] for at, text in enumerate(texts) if text == "-exec"]
    readers = [command for command in commands if command and command[0].text not in _SHOWS_NAMES]
    if not any("{}" in word.text for command in readers for word in command):
        return ""
    only_files = any(texts[at : at + 2] == ["-type", "f"] for at in range(len(texts)))
    if (
        only_files
        and not _CHOOSES.intersection(texts)
        and all(word.text == "{}" or "{}" not in word.text for command in readers for word in command)
    ):
        return ""
    return _in_trees(starts or [_HERE], place)


def _in_trees(words: Sequence[Word], place: Place) -> str:
    return next((found for word in words if (found := place.problem(word, Use.TREE))), "")
