"""A patch in the format that GPT models are trained on: text → what it says to do. Pure.

    *** Begin Patch
    *** Update File: src/a.py
    *** Move to: src/b.py
    @@ class A
    @@     def f(self):
     context
    -old
    +new
    *** End of File
    *** Add File: new.py
    +line
    *** Delete File: old.py
    *** End Patch

A line that begins with `@@` may name a line above the change; several of them lead further in. It is read strictly:
what is not understood is refused with what is wrong, since a patch that is half understood changes the wrong thing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from covey.tools.base import ToolFailed

BEGIN, END, END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")
_NUMBERS = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?")
"""What a unified diff has after `@@`. It is passed over: lines are found by what they say."""
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place of a file: lines to find, and what stands there afterwards."""

    anchors: tuple[str, ...]
    """Lines above it, from the outermost; '' among them says nothing."""
    lines: tuple[tuple[str, str], ...]
    """Each with its mark: ' ' stays, '-' goes, '+' comes."""
    at_end: bool = False
    """It is at the end of the file."""

    @property
    def old(self) -> list[str]:
        return [text for mark, text in self.lines if mark != "+"]


@dataclass(frozen=True, slots=True)
class AddFile:
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class DeleteFile:
    path: str


@dataclass(frozen=True, slots=True)
class UpdateFile:
    path: str
    move_to: str
    """'': it stays where it is."""
    hunks: tuple[Hunk, ...]


FileOperation = AddFile | DeleteFile | UpdateFile


def parse_patch(text: str) -> list[FileOperation]:
    """Raises ToolFailed, with the line that is wrong."""
    lines = text.replace("\r\n", "\n").strip("\n").split("\n")
    if lines[0].strip() != BEGIN:
        raise ToolFailed(f'A patch begins with the line "{BEGIN}". This one begins with: {_quoted(lines[0])}')
    if lines[-1].strip() != END or len(lines) < 2:
        raise ToolFailed(f'A patch ends with the line "{END}". This one ends with: {_quoted(lines[-1])}')
    reader = _Reader(lines[1:-1])
    operations: list[FileOperation] = []
    while not reader.is_done:
        operations.append(_operation(reader))
    if not operations:
        raise ToolFailed("The patch is empty: it changes no file.")
    return operations


class _Reader:
    """The lines of a patch, and how far it was read."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._next = 0

    @property
    def is_done(self) -> bool:
        return self._next == len(self._lines)

    def peek(self) -> str:
        return "" if self.is_done else self._lines[self._next]

    def take(self) -> str:
        self._next += 1
        return self._lines[self._next - 1]

    @property
    def is_in_file(self) -> bool:
        """Whether the next line still belongs to the file under way. Empty lines before the next file do not."""
        following = self._next
        while following < len(self._lines) and not self._lines[following]:
            following += 1
        if following < len(self._lines) and not _FILE.fullmatch(self._lines[following]):
            return True
        self._next = following
        return False

    def wrong(self, what: str) -> ToolFailed:
        """About the line that was taken last."""
        line = self._lines[self._next - 1]
        return ToolFailed(
            f"Line {self._next + 1} of the patch is not valid: {_quoted(line)} {what} Nothing was changed."
        )


def _operation(reader: _Reader) -> FileOperation:
    header = _FILE.fullmatch(reader.take())
    if header is None:
        raise reader.wrong('Here a file must begin: "*** Update File: ", "*** Add File: " or "*** Delete File: ".')
    kind, path = header[1], header[2].strip()
    if kind == "Add":
        return AddFile(path, _content(reader))
    if kind == "Delete":
        if reader.is_in_file:
            reader.take()
            raise reader.wrong("Nothing follows a file that is deleted.")
        return DeleteFile(path)
    moved = _MOVE.fullmatch(reader.peek())
    if moved:
        reader.take()
    hunks = _hunks(reader)
    if not hunks and not moved:
        raise reader.wrong("Nothing is changed in it: give at least one @@ with lines that begin with - or +.")
    return UpdateFile(path, moved[1].strip() if moved else "", tuple(hunks))


def _content(reader: _Reader) -> str:
    lines: list[str] = []
    while reader.is_in_file:
        line = reader.take()
        if not line.startswith("+"):
            raise reader.wrong("Each line of a new file begins with +.")
        lines.append(line[1:])
    return "".join(f"{line}\n" for line in lines)


def _hunks(reader: _Reader) -> list[Hunk]:
    hunks: list[Hunk] = []
    while reader.is_in_file:
        anchors = []
        while reader.peek().startswith("@@"):
            anchors.append(_NUMBERS.sub("", reader.take()[2:].removeprefix(" "), count=1).removesuffix(" @@"))
        hunks.append(_hunk(reader, tuple(anchors)))
    return hunks


def _hunk(reader: _Reader, anchors: tuple[str, ...]) -> Hunk:
    lines: list[tuple[str, str]] = []
    at_end = False
    while reader.is_in_file and not reader.peek().startswith("@@") and not at_end:
        line = reader.take()
        if line == END_OF_FILE:
            at_end = True
        elif not line:
            lines.append((" ", ""))  # an empty line that stays: its blank is easily lost
        elif line[0] in " -+":
            lines.append((line[0], line[1:]))
        else:
            raise reader.wrong("A line of a change starts with a space (context), - (removed) or + (added).")
    if not any(mark != " " for mark, _ in lines):
        raise reader.wrong("This part changes nothing: mark the lines that go with - and those that come with +.")
    return Hunk(anchors, tuple(lines), at_end)


def _quoted(line: str) -> str:
    return repr(line if len(line) <= _SHOWN else line[:_SHOWN] + "…")
