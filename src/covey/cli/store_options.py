"""What `covey store` takes, and how it teaches it. Nothing heavy: `--help` must answer at once."""

from __future__ import annotations

import argparse

from covey.cli.undo_options import Command

STORE_EXAMPLES = """\
examples:
  covey store migrate postgres://covey@db/covey                      make the tables, or bring them up to this version
  covey store copy sqlite:~/.local/share/covey postgres://covey@db/covey   move what one server has into a cluster
  covey store new-epoch postgres://covey@db/covey                    after a restore from a backup: clients load anew

For the PostgreSQL that several nodes share; one server with SQLite needs none of this. A node migrates by itself when
it starts. copy takes all workspaces or, if anything is wrong, none; the file stays as it is, and its server must be
stopped. new-epoch is for a database that came back with less than it had acknowledged; no node may be running.

exit codes:
  0 done     1 it could not be done     2 wrong usage     3 the store cannot be reached
"""


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("migrate", "copy", "new-epoch"), help="what to do")
    parser.add_argument("stores", metavar="STORE", nargs="+", help="postgres://…; copy: sqlite:PATH, then postgres://…")
    parser.add_argument("--json", action="store_true", help="JSON instead of text")


COMMANDS = {"store": Command("the database that several nodes share: make it, fill it", STORE_EXAMPLES, _add_store)}
