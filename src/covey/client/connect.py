"""Find a server, or start one.

    async with connect() as client: ...                              # the user's own server, started if need be
    async with connect(host="tcp://127.0.0.1:8790") as client: ...   # one that somebody else runs

Only a server on a unix socket is started. However many processes ask at once, one of them starts it and the others
wait: a lock on a file beside the socket decides which.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import getpass
import json
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from covey.client.client import Client
from covey.client.errors import BadAnswer, ConnectionLost, ServerUnreachable, SocketGone
from covey.machine.locks import open_lock, try_lock
from covey.machine.names import TOKEN_VARIABLE, server_lock
from covey.protocol.build import current_build
from covey.protocol.errors import ApiError, CoveyError, Forbidden, Unauthorized, Unavailable
from covey.protocol.paths import Address, default_data_dir, default_socket, make_private, token_file
from covey.protocol.requests import Version
from covey.protocol.who import ClientKind

if TYPE_CHECKING:
    from subprocess import Popen

START_S = 10.0
"""A start takes a fraction of a second; on a busy machine, some. After this, something is wrong."""
POLL_S = 0.01
"""Looking whether a socket answers costs microseconds; waiting too long for it is felt by a person."""
SOCKET_BACK_S = 10.0
"""How long to wait for a server to make its socket again: it looks every two seconds."""
GOODBYE_S = 1.0
"""A goodbye spares the server a wait, so it is not worth one of ours."""
IDLE_EXIT_S = 60
"""How long a server that was started for somebody stays when nobody needs it (R17)."""
LOG_MAX_BYTES = 1024 * 1024
"""A log that is longer when a server starts is put aside; the one before it goes."""
LOG_TAIL_BYTES = 2000
"""What is shown of it when a start fails: a traceback's worth."""

Say = Callable[[str], None]

_started: list[Popen[bytes]] = []
"""Servers that this process started. They outlive it; only the handles are kept, so that nobody warns about them."""


def resolve_address(host: str | None, data_dir: Path | None) -> Address:
    """Where the server is: as asked for, or the default socket of the data directory."""
    return Address.parse(host) if host else Address(path=str(default_socket(data_dir)))


class Owner(NamedTuple):
    """The server that owns a data directory, as it says itself."""

    address: Address
    pid: int


def owner_address(data_dir: Path) -> Address | None:
    """Where the server that owns the data directory listens; None if there is none."""
    owner = find_owner(data_dir)
    return owner.address if owner else None


def find_owner(data_dir: Path) -> Owner | None:
    """The server that owns the data directory and listens; None if there is none."""
    try:
        descriptor = os.open(server_lock(data_dir), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        said = json.loads(os.pread(descriptor, 4096, 0))
        owner = Owner(Address.parse(str(said["address"])), int(said["pid"]))
        # A server that was killed still seems to speak. Its pid is looked at first: our trying the lock would be in
        # the way of one that starts in its place.
        os.kill(owner.pid, 0)
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return owner if owner.address.is_unix or owner.address.port else None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    finally:
        os.close(descriptor)
    return None


def _own_address(data_dir: Path | None) -> Address:
    """The default socket or, if nobody listens there, where the server of the data directory says that it is."""
    default = resolve_address(None, data_dir)
    # The owner of the socket's directory could listen there in place of our server.
    make_private(Path(default.path).parent)
    owner = owner_address(data_dir or default_data_dir())
    return default if owner is None or _listens(default) else owner


async def _wait_for_socket(address: Address, data_dir: Path) -> None:
    """A server that runs and whose socket file was removed makes it again: wait for that, and start no second one."""
    if not address.is_unix or _listens(address):
        return
    deadline = time.monotonic() + SOCKET_BACK_S
    while (owner := find_owner(data_dir)) and owner.address == address and not _listens(address):
        if time.monotonic() > deadline:
            raise SocketGone(
                f"The server (pid {owner.pid}) runs, but its socket {address.path} is gone and does not come back. "
                f"End it with `kill {owner.pid}`; then try again."
            )
        await asyncio.sleep(POLL_S)


def _listens(address: Address) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        return probe.connect_ex(address.path) in (0, errno.EAGAIN)  # EAGAIN: it has more to accept than it can


def find_token(token_path: Path | None, data_dir: Path | None) -> str:
    """The token for TCP: from a file that was named, else from the environment, else from the data directory."""
    if token_path is not None:
        return token_path.read_text().strip()
    if token := os.environ.get(TOKEN_VARIABLE, "").strip():
        return token
    with suppress(OSError):
        return token_file(data_dir or default_data_dir()).read_text().strip()
    return ""


def environment(address: Address) -> dict[str, str] | None:
    """What tools of the workspace should find in their environment: ours, if the server is on this machine.

    Without it they would have that of the user who happened to start the server.
    """
    return own_environment() if address.is_unix else None


def own_environment() -> dict[str, str]:
    """The variables of this process, as far as they can be sent, without the token that is for clients alone."""
    return {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE and is_text(name + value)}


def user_name() -> str:
    """The user's name on this machine, as others on the workspace see it; '' if there is none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def is_text(text: str) -> bool:
    """It can be sent as JSON: names of files and values of variables may hold any bytes."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def find_server(host: str | None, data_dir: Path | None, token_path: Path | None) -> tuple[Address, str]:
    """The address of the server at `host`, or of the user's own, and the token for it."""
    address = resolve_address(host, data_dir) if host else _own_address(data_dir)
    return address, "" if address.is_unix else find_token(token_path, data_dir)


@asynccontextmanager
async def connect(
    host: str | None = None,
    *,
    data_dir: Path | None = None,
    token_path: Path | None = None,
    autostart: bool = True,
    name: str = "",
    kind: ClientKind = "api",
    say: Say = lambda sentence: None,
) -> AsyncIterator[Client]:
    """A client of the server at `host`, or of the user's own. Says goodbye at the end."""
    address, token = find_server(host, data_dir, token_path)
    client = Client(address, token=token, name=name or user_name(), kind=kind)
    async with connected(client, data_dir, autostart=autostart, say=say):
        yield client


@asynccontextmanager
async def connected(
    client: Client, data_dir: Path | None, *, autostart: bool, say: Say = lambda sentence: None
) -> AsyncIterator[None]:
    """While this lasts, a server answers the client. It is started if it is a unix socket of ours."""
    await _wait_for_socket(client.address, data_dir or default_data_dir())
    async with client:
        server = _Server(client, (data_dir or default_data_dir()).absolute(), say)
        if client.address.is_unix and autostart:
            client.revive = server.ensure
            await server.ensure()
            await server.replace_if_other()
        else:
            await server.compare()
        try:
            yield
        finally:
            await leave(client)


async def leave(client: Client) -> None:
    """Say goodbye, if anybody is there to hear it."""
    with suppress(CoveyError, TimeoutError):
        async with asyncio.timeout(GOODBYE_S):
            await client.goodbye()


class _Server:
    """The server of one client: sees to it that it runs, and that it is of this build."""

    def __init__(self, client: Client, data_dir: Path, say: Say) -> None:
        self._client = client
        self._socket = Path(client.address.path)
        self._data_dir = data_dir
        self._say = say
        self._build_id = ""

    async def ensure(self) -> None:
        """Return once a server answers; start it if none does."""
        if await self._answers():
            return
        await _wait_for_socket(self._client.address, self._data_dir)
        make_private(self._socket.parent)
        async with self._alone():
            if not await self._answers():
                await self._start()

    async def compare(self) -> None:
        """Warn if a server that we did not start is of another version."""
        version = (await self._version()).version
        if version != current_build().version:
            self._say(f"The server is Covey {version}, this is {current_build().version}.")

    async def replace_if_other(self) -> None:
        """A server of another build goes, if nobody needs it; otherwise it stays, and that is said."""
        if self._build_id == current_build().build_id:
            return
        async with self._alone():
            # The previous holder of the lock may have replaced it already.
            if await self._answers() and self._build_id != current_build().build_id:
                try:
                    await self._client.control("shutdown_if_idle")
                except (ApiError, ConnectionLost):
                    self._say("The running server is of another build and has work to do, so it is used as it is.")
                    return
                await self._wait_until_gone()
            if not await self._answers():
                await self._start()

    async def _version(self) -> Version:
        """The first request to a server, so whatever is wrong with the address or the token is reported here."""
        try:
            return await self._client.version()
        except Unauthorized:
            said = "refused the token" if self._client.has_token else "wants a token"
            raise Unauthorized(f"The server at {self._client.address} {said}.") from None
        except (Forbidden, Unavailable):
            raise
        except (BadAnswer, ApiError):
            raise BadAnswer(
                f"No Covey server answers at {self._client.address}: something else does. Check the address."
            ) from None

    async def _answers(self) -> bool:
        """Whether a server answers there. One that is shutting down is waited for; one that hangs raises."""
        deadline = time.monotonic() + START_S
        while True:
            try:
                async with asyncio.timeout(START_S):
                    self._build_id = (await self._version()).build_id
                return True
            except (ConnectionLost, Unavailable, TimeoutError):
                if time.monotonic() > deadline:
                    raise ServerUnreachable(
                        f"Something listens at {self._client.address} but does not answer. "
                        "If it is a Covey server, end it; then try again."
                    ) from None
                await asyncio.sleep(POLL_S)
            except BadAnswer:
                raise
            except ServerUnreachable:
                return False

    async def _start(self) -> None:
        try:
            self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            log = _fresh_log(self._data_dir)
        except OSError as error:
            raise ServerUnreachable(
                f"The server could not start: {self._data_dir} cannot be its data directory ({error.strerror}). "
                "Choose another with --data-dir."
            ) from None
        begin = log.stat().st_size
        process = _spawn(self._client.address, self._data_dir, log)
        deadline = time.monotonic() + START_S
        while not await self._answers():
            if process.poll() is not None:
                raise ServerUnreachable(f"The server could not start. {_tail(log, begin)}")
            if time.monotonic() > deadline:
                raise ServerUnreachable(f"The server did not come up in {START_S:g} s. {_tail(log, begin)}")
            await asyncio.sleep(POLL_S)

    async def _wait_until_gone(self) -> None:
        deadline = time.monotonic() + START_S
        while await self._answers():
            if time.monotonic() > deadline:
                raise ServerUnreachable(f"The server at {self._client.address} said that it would end, but it stays.")
            await asyncio.sleep(POLL_S)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Nobody else starts or replaces this server meanwhile. The kernel frees the lock of a process that dies."""
        with open_lock(f"{self._socket}.lock") as lock:
            deadline = time.monotonic() + 2 * START_S
            while not try_lock(lock):
                if time.monotonic() > deadline:
                    raise ServerUnreachable("Another process has been starting the server for too long.")
                await asyncio.sleep(POLL_S)
            yield


def _spawn(address: Address, data_dir: Path, log: Path) -> Popen[bytes]:
    """A server of our own build, in a session of its own: no Ctrl-C and no closed terminal reaches it."""
    import subprocess

    # -P: a file that is named like a module and happens to lie where the server starts must not be imported.
    command = [sys.executable, "-P", "-m", "covey", "serve"]
    command += ["--host", str(address), "--data-dir", str(data_dir), "--idle-exit", str(IDLE_EXIT_S)]
    command += ["--log-file", str(log)]
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=data_dir,
            start_new_session=True,
        )
    _started.append(process)
    return process


def _fresh_log(data_dir: Path) -> Path:
    """Where a server that was started for somebody writes what it has to say; for the user's eyes only."""
    log = data_dir / "server.log"
    if log.exists() and log.stat().st_size > LOG_MAX_BYTES:
        log.replace(log.with_name("server.log.1"))
    os.close(os.open(log, os.O_CREAT | os.O_WRONLY, 0o600))
    return log


def _tail(log: Path, begin: int) -> str:
    """The last that this server, and none before it, has written."""
    text = log.read_bytes()[begin:][-LOG_TAIL_BYTES:].decode("utf-8", "replace").strip()
    return f"The end of its log, {log}:\n{text}" if text else f"Its log, {log}, says nothing."
