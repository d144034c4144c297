"""`covey undo`: take back turns of a session, with the files that they changed."""

from __future__ import annotations

import argparse
import os
import sys

import msgspec

from covey.cli import common, exits
from covey.cli.ids import find_run
from covey.cli.screen import plain
from covey.cli.terminal_text import json_text
from covey.client.client import Client
from covey.lines.plain_text import visible
from covey.lines.words import counted
from covey.protocol.errors import Conflict
from covey.protocol.requests import FileConflict, UndoReceipt, UndoTurns, WorkspaceView

PROMPT_CHARS = 100
"""What is shown of a prompt: enough to know it again. --json has all of it."""

UNTRACKED = "a call was cut off, or not all that commands changed is known: whatever else they changed stays as it is"

REFUSED = "nothing was undone, because these files would lose something:"
ADVICE = (
    "Save what you want to keep of them. Then restore them all the same with --force-file FILE for each, "
    "or take back only the messages with --keep-files."
)


def main(args: argparse.Namespace) -> int:
    return common.run(_undo(args))


async def _undo(args: argparse.Namespace) -> int:
    async with common.connected(args) as client:
        workspace = await common.join(client, args.cwd)
        session_id = await common.chosen_session(client, workspace.id, args.session)
        first = (await find_run(client, workspace.id, args.to, session_id=session_id)).run_id if args.to else ""
        request = UndoTurns(
            run_id=first,
            keep_files=args.keep_files,
            force_files=tuple(os.path.join(_here(args.cwd), path) for path in args.force_file),
            dry_run=args.dry_run,
        )
        try:
            done = await client.undo(workspace.id, session_id, request)
        except Conflict as error:
            if error.code != "undo_conflict":
                raise
            return await _refused(client, workspace, session_id, request, error, as_json=args.json)
    for slip in _slips(request, done, workspace):
        common.complain(slip)
    if args.json:
        print(json_text(done))
    else:
        _print(done, workspace, is_done=not args.dry_run)
    return exits.FAILED if done.skipped or done.conflicts else exits.OK


async def _refused(
    client: Client, workspace: WorkspaceView, session_id: str, request: UndoTurns, error: Conflict, *, as_json: bool
) -> int:
    """Nothing was changed. The same request as a dry run reports every conflict."""
    found = await client.undo(workspace.id, session_id, msgspec.structs.replace(request, dry_run=True))
    slips = _slips(request, found, workspace)
    if as_json:
        conflicts = (REFUSED, *_listed(found.conflicts, workspace), *slips, ADVICE)
        said = "\n".join(conflicts) if found.conflicts else error.message
        failure = {"error": said, "exit_code": exits.FAILED}
        print(json_text({**failure, "code": error.code, "conflicts": found.conflicts}))
    elif found.conflicts:
        common.complain(REFUSED)
        _print_conflicts(found.conflicts, workspace)
        for sentence in (*slips, ADVICE):
            common.complain(sentence)
    else:  # what was found while the old contents were prepared; or it is settled by now
        common.complain(error.message)
    return exits.FAILED


def _slips(request: UndoTurns, done: UndoReceipt, workspace: WorkspaceView) -> list[str]:
    """A sentence for each file that was named, perhaps with a slip, and that this undo has nothing to do with."""
    known = {*done.restored, *done.removed, *(each.path for each in (*done.skipped, *done.conflicts))}
    known |= {os.path.realpath(path) for path in known}
    others = [path for path in request.force_files if not {os.path.normpath(path), os.path.realpath(path)} & known]
    said = "no turn that is taken back has changed this file."
    return [f"--force-file {_named(path, workspace)}: {said}" for path in others]


def _print(done: UndoReceipt, workspace: WorkspaceView, *, is_done: bool) -> None:
    for turn in done.undone:
        first_line = turn.prompt.strip().partition("\n")[0]
        cut = first_line[:PROMPT_CHARS] + ("…" if first_line != turn.prompt.strip() else "")
        print(plain(f"{'Undone' if is_done else 'Would undo'}: {cut or '(a prompt without text)'}"))
    for path in done.restored:
        what = ("removed", "would remove") if path in done.removed else ("restored", "would restore")
        print(plain(f"  {what[not is_done]} {_named(path, workspace)}"))
    print(f"  {'removed' if is_done else 'would remove'} {counted(done.removed_messages, 'message')}")
    if done.skipped:
        common.complain("these files were left as they are:")
        _print_conflicts(done.skipped, workspace)
    if done.conflicts:
        common.complain("it would be refused, because these files would lose something:")
        _print_conflicts(done.conflicts, workspace)
    if done.untracked:
        common.complain(UNTRACKED)


def _print_conflicts(conflicts: tuple[FileConflict, ...], workspace: WorkspaceView) -> None:
    for line in _listed(conflicts, workspace):
        print(plain(line), file=sys.stderr)


def _listed(conflicts: tuple[FileConflict, ...], workspace: WorkspaceView) -> list[str]:
    return [f"  {_named(conflict.path, workspace)}: {conflict.reason}" for conflict in conflicts]


def _named(path: str, workspace: WorkspaceView) -> str:
    """A path in the workspace, from its root on."""
    root = workspace.path.rstrip("/") + "/"
    return visible(path.removeprefix(root))


def _here(cwd: str | None) -> str:
    return os.path.abspath(os.path.expanduser(cwd or "."))
