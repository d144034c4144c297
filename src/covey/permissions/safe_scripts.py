"""`sed`, `awk` and `jq`, as far as their scripts neither write nor run anything."""

from __future__ import annotations

import re

from covey.permissions.safe_options import ARGUMENT, OPTION, VARIABLE, Spec, Words, by_spec, problem
from covey.permissions.safe_paths import Place
from covey.permissions.shell_words import WordKind

_SED = re.compile(
    r"(?:(?:[0-9]+|\$|/(?:[^/\\\n]|\\[^\n])*/)(?:,(?:[0-9]+|\$|\+[0-9]+|/(?:[^/\\\n]|\\[^\n])*/))?!?)?[pdq=]"
    r"|s/(?:[^/\\\n]|\\[^\n])*/(?:[^/\\\n]|\\[^\n])*/[gpI0-9]*"
)
"""Print, delete, leave, count or replace: nothing that writes or runs."""


def sed(words: Words, place: Place) -> str:
    rest = list(words)
    while rest and rest[0].known and re.fullmatch(r"-[nEru]+|--quiet|--silent|--regexp-extended", rest[0].text):
        rest.pop(0)
    if not rest or not rest[0].known:
        return VARIABLE
    if any(word.text.startswith("-") or (word.kind is WordKind.GLOB and not word.head) for word in rest):
        return OPTION
    if not all(_SED.fullmatch(part.strip()) for part in rest[0].text.split(";") if part.strip()):
        return ARGUMENT
    plain = re.sub(r"\[([:.=])[A-Za-z]+\1\]", "a", rest[0].text)
    if re.search(r"\[[^\]]*\[[:.=]|\[\^?\]?[^\]]*/", plain):
        return ARGUMENT  # a slash in brackets ends nothing
    return problem(rest[1:], place)


_AWK_UNSAFE = re.compile(
    r"[|>@`]|\\\n|0[xX][0-9A-Fa-f]|(?<![A-Za-z_])"
    r"(?:system|getline|ENVIRON|ARGV|ARGC|ARGIND|PROCINFO|SYMTAB|FUNCTAB|close|fflush|function|func)(?![A-Za-z0-9_])"
)
"""No word boundary: to awk `1system` is a number and a name, and to some so is `0xasystem`."""


def awk(words: Words, place: Place) -> str:
    rest = list(words)
    while rest and rest[0].known and rest[0].text.startswith("-F"):
        if rest[0].text == "-F" and (not rest[1:] or not rest.pop(1).known):
            return VARIABLE
        rest.pop(0)
    if not rest or not all(word.known or word.kind is WordKind.GLOB for word in rest):
        return VARIABLE
    if any(word.text.startswith("-") or (word.kind is WordKind.GLOB and not word.head) for word in rest):
        return OPTION
    if not rest[0].known or _AWK_UNSAFE.search(rest[0].text):
        return ARGUMENT
    return problem(rest[1:], place)


def jq(words: Words, place: Place) -> str:
    spec = Spec(short="rcesnSMajC", long="raw-output compact-output exit-status slurp null-input sort-keys tab", skip=1)
    if any(re.search(r"env|ENV|import|include|input_filename|modulemeta|\$__", word.text) for word in words):
        return ARGUMENT
    program = next((word for word in words if word.text[:1] != "-"), None)
    if program is None or not program.known or "--" in [word.text for word in words]:
        return ARGUMENT  # the name of a file may be the program
    return by_spec(words, spec, place)
