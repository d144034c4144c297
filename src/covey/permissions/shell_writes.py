"""Files that well-known programs write, by their words: for deny and ask rules about paths. Best effort."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from covey.permissions.shell_commands import SimpleCommand

_COPIES = frozenset({"cp", "mv", "install", "ln", "rsync", "scp"})
_OPERANDS = frozenset({"tee", "touch", "truncate"})
_OPTIONS = {
    "sort": re.compile(r"-\w*o(.*)|--output(?:=(.*))?", re.DOTALL),
    "curl": re.compile(r"-\w*o(.*)|--output(?:=(.*))?", re.DOTALL),
    "wget": re.compile(r"-\w*O(.*)|--output-document(?:=(.*))?", re.DOTALL),
    "git": re.compile(r"()--output(?:=(.*))?", re.DOTALL),
    "dd": re.compile(r"of=(.+)|(^$)", re.DOTALL),
}
_TARGET = re.compile(r"-t(.*)|--target-directory(?:=(.*))?", re.DOTALL)
_IN_PLACE = re.compile(r"-[A-Za-z]*i.*|--in-place.*", re.DOTALL)


def written_by(command: SimpleCommand) -> Iterator[str]:
    """The paths that a command writes, as they are written in it."""
    name, texts = command.name, [word.text for word in command.words[1:]]
    operands = [text for text in texts if text[:1] != "-"]
    if name in _OPERANDS or (name in ("sed", "perl") and any(map(_IN_PLACE.fullmatch, texts))):
        yield from operands
    elif name in _COPIES:
        yield from _copied(texts, operands)
        if name == "mv":
            yield from operands
    elif option := _OPTIONS.get(name):
        yield from _values(option, texts)


def _copied(texts: Sequence[str], operands: Sequence[str]) -> Iterator[str]:
    given = list(_values(_TARGET, texts))
    for target in (*operands[-1:], *given):
        yield target
        if given or len(operands) > 2 or target.endswith("/") or target.rpartition("/")[2] in (".", ".."):
            # It is a directory, in which each file keeps its name.
            yield from (f"{target.rstrip('/')}/{source.rstrip('/').rpartition('/')[2]}" for source in operands)


def _values(option: re.Pattern[str], texts: Sequence[str]) -> Iterator[str]:
    for at, text in enumerate(texts):
        if found := option.fullmatch(text):
            yield from filter(None, (found[1] or found[2] or "".join(texts[at + 1 : at + 2]),))
