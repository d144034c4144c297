"""`covey diff`: what a session has changed in files, by its tools and by its commands."""

from __future__ import annotations

import argparse
import os
import sys

from covey.cli import common, exits
from covey.cli.ids import find_run
from covey.cli.terminal_text import json_text, plain, undisguised
from covey.client.changes import all_changes
from covey.lines.changes import file_name, makers, missed, notes
from covey.lines.words import counted
from covey.protocol.changes import ChangedFile, FileDiff, SessionChanges
from covey.protocol.requests import WorkspaceView

BAR = 40
"""Signs of a bar in --stat at most."""

_BOLD, _RED, _GREEN, _CYAN, _END = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"


def main(args: argparse.Namespace) -> int:
    return common.run(_diff(args))


async def _diff(args: argparse.Namespace) -> int:
    async with common.connected(args) as client:
        workspace = await common.join(client, args.cwd)
        session_id = await common.chosen_session(client, workspace.id, args.session)
        run_id = args.run and (await find_run(client, workspace.id, args.run, session_id=session_id)).run_id
        changes = await all_changes(client, workspace.id, session_id, run_id=run_id, diffs=not args.stat)
    if args.json:
        print(json_text(changes))
        return exits.OK
    _Printer(workspace).print(changes, stat=args.stat)
    return exits.OK


class _Printer:
    """Diffs on stdout, in colour where it is a terminal; what has to be known about them on stderr."""

    def __init__(self, workspace: WorkspaceView) -> None:
        self._root = workspace.path
        self._colors = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._stream = undisguised(sys.stdout)

    def print(self, changes: SessionChanges, *, stat: bool) -> None:
        for file in changes.files:
            if stat:
                self._stat(file, max(len(self._name(each)) for each in changes.files))
            else:
                self._whole(file)
        if stat and changes.files:
            self._total(changes)
        self._stream.flush()  # what is said about it comes below
        if not changes.files:
            common.complain("the session has changed no file that is recorded")
        for text in missed(changes):
            common.complain(text)

    def _name(self, file: ChangedFile) -> str:
        return file_name(file, self._root)

    def _whole(self, file: ChangedFile) -> None:
        further = "".join(f", {note}" for note in notes(file))
        self._line(_BOLD, f"{file.change.status}: {self._name(file)} ({makers(file)}{further})")
        for line in file.change.diff.splitlines():
            self._line(_color_of(line), line)

    def _stat(self, file: ChangedFile, width: int) -> None:
        change = file.change
        counted = "" if change.additions is None else f"{(change.additions or 0) + (change.deletions or 0):>6} "
        about = ", ".join((file.change.status, makers(file), *notes(file)))
        self._stream.write(plain(f" {self._name(file):<{width}} |{counted or '       '}"))
        plus, minus = _bar(change)
        self._paint(_GREEN, plus)
        self._paint(_RED, minus)
        self._stream.write(plain(f"{' ' * bool(plus or minus)}({about})\n"))

    def _total(self, changes: SessionChanges) -> None:
        added = sum(file.change.additions or 0 for file in changes.files)
        deleted = sum(file.change.deletions or 0 for file in changes.files)
        count = len(changes.files)
        lines = f"{counted(added, 'insertion')}(+), {counted(deleted, 'deletion')}(-)"
        self._line("", f" {counted(count, 'file')} changed, {lines}")

    def _line(self, color: str, text: str) -> None:
        self._paint(color, text)
        self._stream.write("\n")

    def _paint(self, color: str, text: str) -> None:
        shown = plain(text)
        self._stream.write(f"{color}{shown}{_END}" if color and shown and self._colors else shown)


def _color_of(line: str) -> str:
    if line.startswith(("---", "+++")):
        return _BOLD
    return {"+": _GREEN, "-": _RED, "@": _CYAN}.get(line[:1], "")


def _bar(change: FileDiff) -> tuple[str, str]:
    added, deleted = change.additions or 0, change.deletions or 0
    share = min(1.0, BAR / max(1, added + deleted))
    return "+" * (added and max(1, round(added * share))), "-" * (deleted and max(1, round(deleted * share)))
