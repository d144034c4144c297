"""`covey serve` of another version, as a process: one that knows PostgreSQL but no nodes, or one of the future.

python -m tests.support.other_covey old URL serve …       with PYTHONPATH at sources of `BEFORE`
python -m tests.support.other_covey newer serve …         of a version that has changed tables and values
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

BEFORE = "9de360a"
"""The commit before there were nodes: its store on PostgreSQL has one server, and the first step of the tables."""
NEWER_STEP = "ALTER TABLE workspaces ADD COLUMN colour text NOT NULL DEFAULT ''"


def _old(url: str) -> None:
    """No command of that version opens PostgreSQL, but its server takes any store."""
    from covey.server import daemon
    from covey.store.postgres import store

    real: Any = daemon.serve
    make: Any = store.PostgresStore

    def open_store(path: Path) -> Any:
        with ThreadPoolExecutor(1) as elsewhere:  # it has a loop of its own, and this thread has one already
            return elsewhere.submit(make, url).result()

    daemon.serve = lambda options: real(options, open_store)  # type: ignore[assignment,misc]


def _newer() -> None:
    from covey.store.postgres import schema

    schema.STEPS = (*schema.STEPS, NEWER_STEP)
    schema.FORMAT += 1  # before anybody has read it


def main() -> int:
    which = sys.argv.pop(1)
    if which == "old":
        _old(sys.argv.pop(1))
    else:
        _newer()
    from covey.cli import main as cli

    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
