"""`covey diff`: what a session has changed in files, by its tools and by its commands."""

from __future__ import annotations

import argparse
import os
import sys

from covey.cli import common, exits
from covey.cli.ids import find_run
from covey.cli.listing import padded
from covey.cli.terminal_text import json_text, plain, undisguised
from covey.client.changes import all_changes
from covey.lines.changes import file_name, makers, missed, notes
from covey.lines.code import diff_style
from covey.lines.line import Span, Style, line
from covey.lines.theme import choose_theme, paint
from covey.lines.widths import width
from covey.lines.words import counted
from covey.protocol.changes import ChangedFile, FileDiff, SessionChanges
from covey.protocol.requests import WorkspaceView

BAR = 40
"""Signs of a bar in --stat at most."""


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
        self._theme = choose_theme(os.environ, is_terminal=sys.stdout.isatty())
        self._stream = undisguised(sys.stdout)

    def print(self, changes: SessionChanges, *, stat: bool) -> None:
        for file in changes.files:
            if stat:
                self._stat(file, max(width(self._name(each)) for each in changes.files))
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
        self._line("strong", f"{file.change.status}: {self._name(file)} ({makers(file)}{further})")
        for text in file.change.diff.splitlines():
            self._line(diff_style(text), text)

    def _stat(self, file: ChangedFile, columns: int) -> None:
        change = file.change
        lines = "" if change.additions is None else f"{(change.additions or 0) + (change.deletions or 0):>6} "
        about = ", ".join((file.change.status, makers(file), *notes(file)))
        self._stream.write(plain(f" {padded(self._name(file), columns)} |{lines or '       '}"))
        plus, minus = _bar(change)
        self._paint("added", plus)
        self._paint("removed", minus)
        self._stream.write(plain(f"{' ' * bool(plus or minus)}({about})\n"))

    def _total(self, changes: SessionChanges) -> None:
        added = sum(file.change.additions or 0 for file in changes.files)
        deleted = sum(file.change.deletions or 0 for file in changes.files)
        count = len(changes.files)
        lines = f"{counted(added, 'insertion')}(+), {counted(deleted, 'deletion')}(-)"
        self._line("", f" {counted(count, 'file')} changed, {lines}")

    def _line(self, style: Style, text: str) -> None:
        self._paint(style, text)
        self._stream.write("\n")

    def _paint(self, style: Style, text: str) -> None:
        self._stream.write(paint(line(Span(text, style)), self._theme))


def _bar(change: FileDiff) -> tuple[str, str]:
    added, deleted = change.additions or 0, change.deletions or 0
    share = min(1.0, BAR / max(1, added + deleted))
    return "+" * (added and max(1, round(added * share))), "-" * (deleted and max(1, round(deleted * share)))
