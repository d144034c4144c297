"""What the variables of a line stand for, as far as the line itself says it: for deny rules, which look for commands.

`R=rm; $R x` runs `rm x`. Best effort: nothing is allowed because of what is found here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from covey.permissions.shell_commands import Line, SimpleCommand

_EXPANSION = re.compile(
    r"\$(?P<name>[A-Za-z_]\w*|[0-9@*])"
    r"|\$\{(?P<braced>[A-Za-z_]\w*|[0-9@*])(?::?[-=](?P<default>[^{}$`]*))?\}"
    r"|\$\([ \t]*(?:echo|printf)[ \t]+(?P<echoed>[^()$`]*)\)|`[ \t]*(?:echo|printf)[ \t]+(?P<quoted>[^$`]*)`"
)
_SETS = re.compile(r"(?:-\w+ )*([A-Za-z_]\w*)=(.*)", re.DOTALL)
_SETTERS = frozenset({"export", "declare", "typeset", "local", "readonly"})
MAX_VALUES = 8
"""Of one variable. A loop over more of them is not followed further."""


def with_values(line: Line) -> Iterator[str]:
    """Each command in which something is not known, as text, with the values that the line gives to its variables."""
    values = _values(line)
    for command in line.commands:
        if any(_EXPANSION.search(word.text) for word in command.words if not word.known):
            variants = (_filled_in(command, values, number) for number in range(MAX_VALUES))
            yield from dict.fromkeys(variants)


def _values(line: Line) -> dict[str, list[str]]:
    """By name: the values that are written in the line. Without any, a shell has its own for IFS, and no arguments."""
    values: dict[str, list[str]] = {"IFS": [" "]}
    for command in line.commands:
        for name, value in (*((name, value.text) for name, value in command.assigns if value.known), *_set(command)):
            known = values.setdefault(name, [])
            if len(known) < MAX_VALUES:
                known.append(value)
    return values


def _set(command: SimpleCommand) -> Iterator[tuple[str, str]]:
    texts = [word.text for word in command.words]
    if command.is_compound and texts[2:3] == ["in"]:
        yield from ((texts[1], word.text) for word in command.words[3:] if word.known)
    elif texts and texts[0] in _SETTERS:
        yield from ((found[1], found[2]) for text in texts[1:] if (found := _SETS.fullmatch(text)))


def _filled_in(command: SimpleCommand, values: dict[str, list[str]], number: int) -> str:
    def value(found: re.Match[str]) -> str:
        echoed = found["echoed"] or found["quoted"]
        if echoed is not None:
            return echoed.translate(_NO_QUOTES)
        name = found["name"] or found["braced"]
        if known := values.get(name):
            return known[min(number, len(known) - 1)]
        if found["default"] is not None:
            return found["default"]
        return "" if not name[0].isalpha() and name[0] != "_" else found[0]

    return " ".join(
        word.text
        if word.known and re.fullmatch(r"[\w./:=@%+,-]+", word.text)
        else "'" + word.text.replace("'", "'\\''") + "'"
        if word.known
        else _EXPANSION.sub(value, word.text)
        for word in command.words
    )


_NO_QUOTES = str.maketrans("", "", "'\"\\")
