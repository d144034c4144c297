"""Lines in files that match a pattern: with ripgrep where it is, else with Python, and the same answer from both.

Either way a pattern is matched against one line at a time, a file with a NUL in it is no text, and bytes that are no
UTF-8 match nothing but themselves. ripgrep gets the files by name: it never walks, as it would follow hostile ignore
files. Patterns that its regular expressions cannot say (look-around, back references) are left to Python's.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from covey.machine.regular import read_regular

FILE_LIMIT = 16 * 1024 * 1024
"""Bytes of a file that is searched: larger ones are data, and are held in memory as a whole."""
LINE_CHARACTERS = 501
"""Told of a line: one more than is shown, so that it is known whether it goes on."""
LINE_BYTES = 4 * LINE_CHARACTERS + 44
"""How much ripgrep prints of a line: more than these characters can take."""

_ARGUMENTS_BYTES = 100_000
"""Names for one ripgrep: well below what any system allows as arguments."""
_FIRST_BATCH = 200
"""Files of the first batch: the newest, where most searches end. ripgrep then gets as many as fit."""

Line = tuple[int, bool, str]
"""Its number, whether it matches (else it is context), and its text."""
Hits = tuple[int, list[Line]]
"""The index of a file in the list that was searched, and its lines."""


class BadRegex(ValueError):
    """Neither understands the pattern; the text says why."""


@dataclass(frozen=True, slots=True)
class LineQuery:
    pattern: str
    literal: bool
    context: int
    per_file: int
    """Matching lines wanted of one file."""


Engine = Callable[[str, Sequence[str]], Iterator[Hits]]
"""Searches files by their names below a directory, in their order."""


def make_engine(query: LineQuery, rg: str | None) -> Engine:
    """Raises BadRegex."""
    if rg is not None and _rg_understands(rg, query):
        return lambda base, names: _with_rg(rg, query, base, names)
    try:
        regex = re.compile(re.escape(query.pattern) if query.literal else query.pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadRegex(str(error) or type(error).__name__) from None
    return lambda base, names: _with_python(regex, query, base, names)


# ── Python ──


def _with_python(regex: re.Pattern[str], query: LineQuery, base: str, names: Sequence[str]) -> Iterator[Hits]:
    for index, name in enumerate(names):
        text = _text(os.path.join(base, name))
        if text is None or (query.literal and query.pattern not in text):
            continue
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        lines = [line.removesuffix("\r") for line in lines]
        matching = []
        for number, line in enumerate(lines):
            if regex.search(line):
                matching.append(number)
                if len(matching) == query.per_file:
                    break
        if matching:
            yield index, _with_context(lines, matching, query.context)


def _with_context(lines: list[str], matching: list[int], context: int) -> list[Line]:
    wanted: dict[int, bool] = {}
    for number in matching:
        for near in range(max(0, number - context), min(len(lines), number + context + 1)):
            wanted.setdefault(near, False)
        wanted[number] = True
    return [(number + 1, wanted[number], lines[number]) for number in sorted(wanted)]


def _text(path: str) -> str | None:
    """What a file holds, if it is a regular file with text in it."""
    content = read_regular(path, FILE_LIMIT, look_first=False)
    return None if content is None or b"\0" in content.data else content.data.decode("utf-8", "replace")


# ── ripgrep ──


def _rg_understands(rg: str, query: LineQuery) -> bool:
    """Tried on nothing: 1 is "no match", 2 is a pattern that it cannot read."""
    command = [*_rg_command(rg, query), "-"]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode == 1  # noqa: S603
    except OSError:
        return False


def _rg_command(rg: str, query: LineQuery) -> list[str]:
    return [
        rg,
        "--no-config",  # it could name a program to run
        "--no-messages",
        "--color=never",
        "--no-heading",
        "--with-filename",
        "--line-number",
        "--null",
        "--no-context-separator",
        "--encoding=none",
        "--no-mmap",  # a file that shrinks meanwhile would end it
        "--crlf",
        "--case-sensitive",
        f"--max-columns={LINE_BYTES}",
        "--max-columns-preview",
        f"--max-count={query.per_file}",
        f"--context={query.context}",
        *(["--fixed-strings"] if query.literal else []),
        f"--regexp={query.pattern}",
        "--",
    ]


def _with_rg(rg: str, query: LineQuery, base: str, names: Sequence[str]) -> Iterator[Hits]:
    for start, end in _batches(names):
        # The "./" because a name may begin with a hyphen, or be one.
        batch = {b"./" + os.fsencode(name): start + index for index, name in enumerate(names[start:end])}
        command = [*(os.fsencode(word) for word in _rg_command(rg, query)), *batch]
        completed = subprocess.run(command, cwd=base, stdin=subprocess.DEVNULL, capture_output=True)  # noqa: S603
        yield from sorted(_parsed(completed.stdout, batch).items())


def _batches(names: Sequence[str]) -> Iterator[tuple[int, int]]:
    start = size = 0
    for index, name in enumerate(names):
        cost = len(os.fsencode(name)) + 16  # what an argument takes beside its text
        if index > start and (size + cost > _ARGUMENTS_BYTES or index == _FIRST_BATCH):
            yield start, index
            start, size = index, 0
        size += cost
    if start < len(names):
        yield start, len(names)


def _parsed(output: bytes, batch: dict[bytes, int]) -> dict[int, list[Line]]:
    """Lines such as `name NUL 12:text`, or `name NUL 12-text` for context."""
    found: dict[int, list[Line]] = {}
    binary = set()
    for line in output.split(b"\n"):
        name, nul, rest = line.partition(b"\0")
        if not nul:
            binary.add(line.partition(b": binary file matches (")[0])
        elif (match := re.match(rb"(\d+)([:-])", rest)) and name in batch:
            text = rest[match.end() :].decode("utf-8", "replace").removesuffix("\r")
            found.setdefault(batch[name], []).append((int(match[1]), match[2] == b":", text))
    return {index: lines for index, lines in found.items() if not any(batch.get(name) == index for name in binary)}
