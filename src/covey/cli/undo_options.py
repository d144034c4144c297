"""What `covey undo`, `covey diff` and `covey fork` take, and how they teach it. Nothing heavy, for `--help`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

from covey.cli.option_types import some_id

UNDO_EXAMPLES = """\
examples:
  covey undo --dry-run               what would be taken back, and what stands in the way
  covey undo                         the newest turn of the latest session: its messages and its changes to files
  covey undo --to RUN                that turn and all after it
  covey undo --keep-files            only the messages; the files stay as they are
  covey undo --force-file notes.md   restore this file although you have changed it since

A file is restored only if nobody else has changed it since; otherwise nothing at all is touched, and you see why.
What commands have changed is taken back too, as far as it is known; if not all of it is, that is shown. The
prompts that are taken back are printed, so that you can give them again. `covey runs --all` lists runs with
their ids; the beginning or the end of an id will do if no other has the same.

exit codes:
  0 undone     1 refused (a conflict, a busy session, nothing to undo), or a file could not be restored
  2 wrong usage, or no such session or run     3 no server
"""

DIFF_EXAMPLES = """\
examples:
  covey diff                 what the latest session here changed in files, by its tools and by its commands
  covey diff 1x2y            that session, or the one whose id begins or ends so
  covey diff --stat          only the files, with how many lines came and went, and who changed them
  covey diff --run RUN       only what this turn changed
  covey diff --json          the same for programs, by file and turn, with what an undo would not restore

It shows what is recorded, not what is in the files now: what you have changed since is not in it. What commands changed
in ignored files, or outside of the directory, is not recorded. If not all could be looked at, that is said.

exit codes:
  0 shown, also if nothing was changed     2 wrong usage, or no such session or run     3 no server
"""

FORK_EXAMPLES = """\
examples:
  covey fork                               go on from here in a session of its own, and keep this one
  covey run -s "$(covey fork)" "Try it with a queue instead"
  covey fork -s 1x2y3z --at 1x2yAb         up to this message; `covey sessions show ID --json` lists them

The new session's id is printed. Files are not touched, and what was copied cannot be undone there.

exit codes:
  0 forked     1 refused     2 wrong usage, or no such session or message     3 no server
"""


def _add_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-s",
        "--session",
        metavar="ID",
        type=some_id,
        help="the session: its id, or the beginning or end of it; default: that of the latest prompt here",
    )


def _add_undo(parser: argparse.ArgumentParser) -> None:
    _add_session(parser)
    parser.add_argument(
        "--to",
        metavar="RUN",
        type=some_id,
        help="take back the turn of this run (its id, or the beginning or end of it) and all after it",
    )
    files = parser.add_mutually_exclusive_group()
    files.add_argument("--keep-files", action="store_true", help="take back the messages only")
    files.add_argument(
        "--force-file",
        metavar="FILE",
        action="append",
        default=[],
        help="restore it although it was changed since: what it holds now is lost; may be given more than once",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done (exit 1: it would not)")


def _add_diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        default="",
        help="the session: its id, or the beginning or end of it; default: that of the latest prompt here",
    )
    parser.add_argument("--stat", action="store_true", help="no diffs: only which files, and how much of them")
    parser.add_argument(
        "--run", metavar="RUN", default="", help="only the turn of this run: its id, or the beginning or end of it"
    )


def _add_fork(parser: argparse.ArgumentParser) -> None:
    _add_session(parser)
    parser.add_argument("--at", metavar="MESSAGE", type=some_id, help="the last message to take along; default: all")
    parser.add_argument("--title", metavar="TITLE", default="", help="a title for the new session")


class Command(NamedTuple):
    help: str
    examples: str
    add_options: Callable[[argparse.ArgumentParser], None]


COMMANDS = {
    "diff": Command("what a session has changed in files", DIFF_EXAMPLES, _add_diff),
    "undo": Command("take back the newest turn, with its changes to files", UNDO_EXAMPLES, _add_undo),
    "fork": Command("go on from a message in a session of its own", FORK_EXAMPLES, _add_fork),
}
