"""`covey serve` with a fault at a chosen commit: `python -m tests.support.faulty_server FAULT serve --host ...`.

FAULT is `WHAT:WHEN:NUMBER`: at the NUMBER-th commit, WHEN (`before` or `after`) it, WHAT happens:
`kill` and `term` send that signal to the server itself; `full`, `io` and `locked` make this commit and the next
`PERSISTS - 1` ones fail as a full disk, a broken one or a locked database do. Every commit is noted on stderr.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import apsw

from covey.store.base import Change, RunExists, StoreFailed
from covey.store.sqlite import SqliteStore

PERSISTS = 3
"""How many commits in a row a bad disk fails: the first one may be alone, the others meet changes that wait."""
ERRORS: dict[str, type[apsw.Error]] = {"full": apsw.FullError, "io": apsw.IOError, "locked": apsw.BusyError}
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM}


class FaultyStore(SqliteStore):
    """The SQLite store, with one fault."""

    def __init__(self, path: Path, fault: str) -> None:
        super().__init__(path)
        self._what, self._when, number = fault.split(":")
        self._number = int(number)
        self._commits = 0

    def commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
        self._commits += 1
        names = "+".join(type(write).__name__ for change in changes for write in change.writes) or "nothing"
        sys.stderr.write(f"commit {self._commits}: {names}\n")
        sys.stderr.flush()
        if self._what in ERRORS and self._number <= self._commits < self._number + PERSISTS:
            raise StoreFailed(f"{self._what}, as the test asked for", passing=True)
        self._strike("before")
        results = super().commit(changes)
        self._strike("after")
        return results

    def _strike(self, when: str) -> None:
        if self._what in SIGNALS and self._commits == self._number and self._when == when:
            os.kill(os.getpid(), SIGNALS[self._what])
            if self._what == "kill":
                time.sleep(60)  # this thread is not to get any further


def main() -> int:
    from covey.cli import main as cli
    from covey.server import daemon

    fault = sys.argv.pop(1)
    real = daemon.serve

    def serve(options: daemon.ServeOptions) -> None:
        real(options, lambda path: FaultyStore(path, fault))

    daemon.serve = serve  # type: ignore[assignment] # the command line is used as it is
    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
