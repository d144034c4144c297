"""Patterns for names and paths, as in a shell and in .gitignore. Matching takes bounded time, whatever the pattern.

`*` and `?` stand for characters of one name, `[a-z]` for one of a set, `**` for any number of directories. A file whose
name begins with a dot is a file like any other. Only the standard library is used: the search process has no other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

ALTERNATIVES_LIMIT = 100
"""Patterns that `{a,b}` may stand for: braces multiply, and each of them is tried on each path."""

_SPECIAL = re.compile(r"[*?\[\]{}\\]")


class BadPattern(ValueError):
    """The pattern means nothing; the text says why."""


def is_plain(name: str) -> bool:
    """Whether a pattern stands for nothing but itself."""
    return not _SPECIAL.search(name)


class PathPattern:
    """One pattern without braces, matched against the parts of a path.

    The parts between two `**` match at the first place where they can: what follows is then no harder to match than
    at any later place. So nothing is tried twice, unlike in one large regular expression.
    """

    def __init__(self, pattern: str) -> None:
        parts = [part for part in pattern.split("/") if part not in ("", ".")]
        if not parts:
            raise BadPattern("the pattern is empty")
        groups: list[list[re.Pattern[str]]] = [[]]
        for part in parts:
            if part == "**":
                groups.append([])
            else:
                groups[-1].append(re.compile(name_regex(part)))
        self._first, *self._middle = groups
        self._last = self._middle.pop() if self._middle else None
        # `a/**` is what is inside of a, not a itself.
        self._open_end = 1 if self._last == [] else 0

    def matches(self, parts: Sequence[str]) -> bool:
        if self._last is None:
            return len(parts) == len(self._first) and _at(self._first, parts, 0)
        end = len(parts) - len(self._last) - self._open_end
        position = len(self._first)
        if position > end or not _at(self._first, parts, 0) or not _at(self._last, parts, len(parts) - len(self._last)):
            return False
        for group in self._middle:
            while position + len(group) <= end and not _at(group, parts, position):
                position += 1
            position += len(group)
            if position > end:
                return False
        return True


def _at(group: list[re.Pattern[str]], parts: Sequence[str], start: int) -> bool:
    return all(regex.fullmatch(parts[start + index]) for index, regex in enumerate(group))


def name_regex(pattern: str) -> str:
    """A regular expression for one name, to be matched in full.

    What stands between two stars is taken where it first occurs, and that is never reconsidered: `(?>...)`.
    """
    chunks = _chunks(pattern)
    if len(chunks) == 1:
        return f"(?s:{chunks[0]})"
    first, *middle, last = chunks
    return f"(?s:{first}{''.join(f'(?>.*?{chunk})' for chunk in middle if chunk)}.*{last})"


def _chunks(pattern: str) -> list[str]:
    """The regular expressions of what stands between the stars."""
    chunks = [""]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "*":
            chunks.append("")
        elif character == "?":
            chunks[-1] += "."
        elif character == "[":
            text, position = _set(pattern, position)
            chunks[-1] += text
        else:
            if character == "\\":
                if position == len(pattern):
                    raise BadPattern(f"{pattern!r} ends with a backslash")
                character = pattern[position]
                position += 1
            chunks[-1] += re.escape(character)
    return chunks


def _set(pattern: str, start: int) -> tuple[str, int]:
    """The regular expression for the set that begins at `start`, after its bracket, and where it ends."""
    position = start
    negated = pattern[position : position + 1] in ("!", "^")
    position += negated
    first, text = position, ""
    while position < len(pattern) and (pattern[position] != "]" or position == first):
        character = pattern[position]
        if character == "\\" and position + 1 < len(pattern):
            position += 1
            character = re.escape(pattern[position])
        elif character != "-":
            character = re.escape(character)
        text += "\\-" if character == "-" and position == first else character
        position += 1
    if position == len(pattern):
        raise BadPattern(f"{pattern!r} has a [ without its ]; to mean the character itself write \\[")
    # A hyphen before the end stands for itself.
    text = f"[{'^' * negated}{text[:-1] + chr(92) + '-' if text.endswith('-') else text}]"
    try:
        re.compile(text)
    except re.error as error:
        raise BadPattern(f"{pattern!r}: {error}") from None
    return text, position + 1


def expand(pattern: str) -> list[str]:
    """The patterns that one with braces stands for: `*.{ts,tsx}` for two. A brace without its partner is itself."""
    found = [pattern]
    position = 0
    while position < len(found):
        braces = _braces(found[position])
        if braces is None:
            position += 1
            continue
        before, choices, after = braces
        found[position : position + 1] = [before + choice + after for choice in choices]
        if len(found) > ALTERNATIVES_LIMIT:
            raise BadPattern(f"the braces stand for more than {ALTERNATIVES_LIMIT} patterns")
    return found


def _braces(pattern: str) -> tuple[str, list[str], str] | None:
    """What stands before, in and after the first pair of braces with a comma."""
    start = 0
    while (start := pattern.find("{", start)) >= 0:
        if not _is_escaped(pattern, start):
            depth, begin, choices = 0, start + 1, []
            for position in range(start, len(pattern)):
                character = "" if _is_escaped(pattern, position) else pattern[position]
                depth += (character == "{") - (character == "}")
                if depth == 0 or (character == "," and depth == 1):
                    choices.append(pattern[begin:position])
                    begin = position + 1
                if depth == 0:
                    if len(choices) > 1:
                        return pattern[:start], choices, pattern[begin:]
                    break
        start += 1
    return None


def _is_escaped(pattern: str, position: int) -> bool:
    before = pattern[:position]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1
