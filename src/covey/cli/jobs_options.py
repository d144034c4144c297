"""What `covey jobs` takes, and how it teaches it. Nothing heavy: `--help` must answer at once."""

from __future__ import annotations

import argparse

from covey.cli.undo_options import Command

JOBS_EXAMPLES = """\
examples:
  covey jobs                     what runs in the background, in every directory that the server has open
  covey jobs output job-1        the end of what it has written, also when it has ended
  covey jobs kill job-1          end it, with everything that it started

A job is a command that the agent left running: a server, a watcher, or whatever took longer than it was waited for.
It goes on when the run that started it has ended, and when everybody has left, for at most 12 hours. It ends with its
session and with the server. The ids are those of one directory: give another with --cwd.
How the last 20 of each directory ended, and the end of their output, are kept until their session is deleted.
`covey jobs` lists those of this directory, and of others while they are open; with --json as one list. `output` and
`kill` print one object a line for each job, with its `state` (running, exited, killed, closed) and `exit_code`.

exit codes:
  0 done     1 there is no such job     2 wrong usage     3 no server
"""


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("list", "output", "kill"), default="list", help="default: list")
    parser.add_argument("job", metavar="JOB", nargs="*", help="its id, such as job-1; `kill` takes several")
    parser.add_argument("--json", action="store_true", help="JSON instead of text")
    parser.add_argument("--cwd", metavar="DIR", help="the directory whose jobs are meant; default: this one")


COMMANDS = {"jobs": Command("commands that the agent left running in the background", JOBS_EXAMPLES, _add_jobs)}
