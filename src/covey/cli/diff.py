"""`covey diff`: what a session has changed in files, by its tools and by its commands."""

from __future__ import annotations

import argparse
import os
import sys

import msgspec

from covey.cli import common, exits
from covey.cli.ids import find_run
from covey.cli.terminal_text import json_text, plain, undisguised
from covey.client.client import Client
from covey.lines.plain_text import visible
from covey.protocol.changes import ChangedFile, FileDiff, SessionChanges
from covey.protocol.requests import WorkspaceView

BAR = 40
"""Signs of a bar in --stat at most."""
COMMAND_SHOWN = 60

_BOLD, _RED, _GREEN, _CYAN, _END = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"


def main(args: argparse.Namespace) -> int:
    return common.run(_diff(args))


async def _diff(args: argparse.Namespace) -> int:
    async with common.connected(args) as client:
        workspace = await common.join(client, args.cwd)
        session_id = await common.chosen_session(client, workspace.id, args.session)
        run_id = args.run and (await find_run(client, workspace.id, args.run, session_id=session_id)).run_id
        changes = await _all(client, workspace.id, session_id, run_id, diffs=not args.stat)
    if args.json:
        print(json_text(changes))
        return exits.OK
    _Printer(workspace).print(changes, stat=args.stat)
    return exits.OK


async def _all(client: Client, workspace_id: str, session_id: str, run_id: str, *, diffs: bool) -> SessionChanges:
    """Page by page: what is left out of one answer for lack of room may fit into the next."""
    found = await client.changes(workspace_id, session_id, run_id=run_id, diffs=diffs)
    files = list(found.files)
    after = found.next
    while after:
        page = await client.changes(workspace_id, session_id, run_id=run_id, after=after, diffs=diffs)
        files += page.files
        after = page.next
    return msgspec.structs.replace(found, files=tuple(files), next="")


class _Printer:
    """Diffs on stdout, in colour where it is a terminal; what has to be known about them on stderr."""

    def __init__(self, workspace: WorkspaceView) -> None:
        self._root = workspace.path.rstrip("/") + "/"
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
        for missed in changes.missed:
            common.complain(f"not all could be looked at after `{visible(missed.label)}`: {missed.reason}")

    def _name(self, file: ChangedFile) -> str:
        name = visible(file.path.removeprefix(self._root))
        old = visible(file.change.old_path.removeprefix(self._root))
        return f"{old} => {name}" if old else name

    def _whole(self, file: ChangedFile) -> None:
        notes = "".join(f", {note}" for note in _notes(file))
        self._line(_BOLD, f"{file.change.status}: {self._name(file)} ({_makers(file)}{notes})")
        for line in file.change.diff.splitlines():
            self._line(_color_of(line), line)

    def _stat(self, file: ChangedFile, width: int) -> None:
        change = file.change
        counted = "" if change.additions is None else f"{(change.additions or 0) + (change.deletions or 0):>6} "
        notes = ", ".join((file.change.status, _makers(file), *_notes(file)))
        self._stream.write(plain(f" {self._name(file):<{width}} |{counted or '       '}"))
        plus, minus = _bar(change)
        self._paint(_GREEN, plus)
        self._paint(_RED, minus)
        self._stream.write(plain(f"{' ' * bool(plus or minus)}({notes})\n"))

    def _total(self, changes: SessionChanges) -> None:
        added = sum(file.change.additions or 0 for file in changes.files)
        deleted = sum(file.change.deletions or 0 for file in changes.files)
        count = len(changes.files)
        self._line("", f" {count} file{'s' * (count != 1)} changed, {added} insertions(+), {deleted} deletions(-)")

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


def _makers(file: ChangedFile) -> str:
    """Who changed it, each once."""
    found = dict.fromkeys(maker for turn in file.turns for maker in turn.made_by)
    return ", ".join(
        (maker.label or maker.made_by) if maker.made_by == "tool" else f"{maker.made_by} `{_short(maker.label)}`"
        for maker in found
    )


def _short(command: str) -> str:
    shown = visible(command)
    return shown if len(shown) <= COMMAND_SHOWN else f"{shown[: COMMAND_SHOWN - 1]}…"


def _notes(file: ChangedFile) -> list[str]:
    change = file.change
    notes = ["binary"] if change.is_binary else []
    notes += ["the diff is left out"] if change.is_left_out else []
    if change.is_executable is not None:
        notes.append("executable now" if change.is_executable else "not executable any more")
    if not all(turn.can_undo for turn in file.turns):
        notes.append("an undo leaves it")
    return notes
