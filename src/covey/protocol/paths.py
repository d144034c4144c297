"""Where client and server meet: addresses, the default socket, the data directory. Opens nothing and starts nothing."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from covey.protocol.errors import CoveyError

SOCKET_PATH_MAX_BYTES = 107 if sys.platform == "linux" else 103
"""What fits into `sun_path` with its final NUL: 108 bytes on Linux, 104 on macOS and the BSDs."""
_TEMP = "/tmp"  # noqa: S108 - only ever the parent of a directory that `make_private` has checked


class BadAddress(CoveyError, ValueError):
    """The text is not an address of ours; the message says what one looks like."""

    code = "bad_address"


class UnsafeDirectory(CoveyError):
    """Others could enter the directory: whoever owns it could pose as the server, or read what we write there."""

    code = "unsafe_directory"


class DataDirInUse(CoveyError):
    """Somebody else owns the data directory: two at once would write into one store."""

    code = "data_dir_in_use"

    def __init__(self, message: str, *, pid: int = 0, address: str = "") -> None:
        super().__init__(message)
        self.pid = pid
        """Of its owner; 0: not known."""
        self.address = address
        """Where its owner listens; '': nowhere, or not known."""


class Address(NamedTuple):
    """Where a server listens: a unix socket (`path`), or `host` and `port`."""

    path: str = ""
    host: str = ""
    port: int = 0

    @property
    def is_unix(self) -> bool:
        return bool(self.path)

    @property
    def url(self) -> str:
        """What HTTP requests are addressed to. On a socket the name only has to pass the check of the Host header."""
        if self.is_unix:
            return "http://localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def __str__(self) -> str:
        """As it is written after `--host`."""
        return f"unix://{self.path}" if self.is_unix else self.url.replace("http://", "tcp://", 1)

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address in `unix://PATH`, `tcp://ADDR:PORT` or, as a server prints it, `http://ADDR:PORT`."""
        scheme, _, rest = text.partition("://")
        if scheme == "unix" and rest:
            return cls(path=os.path.abspath(os.path.expanduser(rest)))
        host, colon, port = rest.rstrip("/").rpartition(":")
        if scheme in ("tcp", "http") and host and colon and port.isdecimal() and int(port) < 65536:
            return cls(host=host.removeprefix("[").removesuffix("]"), port=int(port))
        raise BadAddress(
            f"{text!r} is not an address: write unix://PATH or tcp://ADDR:PORT, such as tcp://127.0.0.1:8790"
        )


def default_data_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Where sessions are kept, for all projects of this user."""
    if chosen := environ.get("COVEY_DATA_DIR", ""):
        return Path(chosen).expanduser().absolute()
    base = environ.get("XDG_DATA_HOME", "")
    home = Path(environ.get("HOME") or Path.home())
    return (Path(base) if os.path.isabs(base) else home / ".local" / "share") / "covey"


def _usual_data_dir() -> Path:
    """That of the account, whatever HOME and other variables say: two homes of one user are two data directories."""
    from pwd import getpwuid

    try:
        home = Path(getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a container with a number for a user
        home = Path.home()
    return home / ".local" / "share" / "covey"


def token_file(data_dir: Path) -> Path:
    return data_dir / "token"


def debug_file(data_dir: Path, run_id: str) -> Path:
    """Where a run that was posted with `debug` keeps what it sends to its model and what comes back."""
    return data_dir / "debug" / f"{run_id}.txt"


def default_socket(data_dir: Path | None = None) -> Path:
    """The socket of the server for `data_dir`. Each data directory has one of its own: two servers never share one."""
    name = f"covey-{os.getuid()}"
    data_dir = data_dir or default_data_dir()
    if _real(data_dir) != _real(_usual_data_dir()):
        from hashlib import sha256

        name += "-" + sha256(_real(data_dir).encode()).hexdigest()[:12]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and is_private(Path(runtime)):
        socket = Path(runtime) / f"{name}.sock"
        if _fits(socket):
            return socket
    temp = os.environ.get("TMPDIR", "")
    for base in (temp if os.path.isabs(temp) else _TEMP, _TEMP):
        socket = Path(base) / f"covey-{os.getuid()}" / f"{name}.sock"
        if _fits(socket):
            break
    return socket


def make_private(directory: Path) -> None:
    """Make the directory, for this user alone; one that exists and that others could enter is refused."""
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700, parents=True)
    if not is_private(directory):
        advice = f"Try `chmod 700 {directory}`, or choose" if _may_be_closed(directory) else "Choose"
        raise UnsafeDirectory(
            f"{directory} is not private to you: it must be a directory that you own and nobody else can enter. "
            f"{advice} another place with --host unix://PATH."
        )


def _may_be_closed(directory: Path) -> bool:
    """Whether nobody else needs to enter it: never said of one like /tmp, whoever owns it."""
    try:
        found = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & stat.S_ISVTX


def is_private(directory: Path) -> bool:
    """It is a directory, not a link to one, owned by this user, and closed to everybody else."""
    try:
        found = directory.lstat()
    except OSError:
        return False
    return (found.st_mode & 0o170000) == 0o040000 and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _real(path: Path) -> str:
    return os.path.realpath(path.expanduser())


def _fits(socket: Path) -> bool:
    return len(os.fsencode(socket)) <= SOCKET_PATH_MAX_BYTES
