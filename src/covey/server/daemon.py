"""The server as a process: the data directory it owns, the address it listens on, the signals it obeys."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from covey import __version__
from covey.config.load import load
from covey.engine.workspace import Shared
from covey.engine.workspaces import Workspaces
from covey.engine.world import World
from covey.protocol.paths import Address, make_private, token_file
from covey.server.access import Access, hosts
from covey.server.app import App
from covey.server.http_protocol import HttpProtocol
from covey.store.base import Store
from covey.store.journal import Journal
from covey.store.sqlite import SqliteStore

log = logging.getLogger(__name__)

BACKLOG = 1024
"""Connections that may wait while the loop is busy: a hundred terminals may come back at once."""
FLUSH_S = 1.5
"""How long the journal may take to write its last changes; draining has had its own time before."""


class CannotServe(Exception):
    """The server cannot start; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Options:
    address: Address
    data_dir: Path
    config_file: Path | None
    token_file: Path | None
    idle_exit_s: float


OpenStore = Callable[[Path], Store]


def serve(options: Options, open_store: OpenStore = SqliteStore) -> None:
    """Run until asked to stop. Prints one line once it listens."""
    options.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _owned(options.data_dir, options.address), _listening(options.address) as listener:
        token = "" if options.address.is_unix else _token(options)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(options, listener, token, open_store))


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop


class _Uvicorn(uvicorn.Server):
    """uvicorn without its own signal handling: the order of closing is ours."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(options: Options, listener: socket.socket, token: str, open_store: OpenStore) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, stopping, number)
    loaded = load(None, options.config_file, os.environ)
    store = open_store(options.data_dir / "covey.db")
    journal = Journal(store)
    shared = Shared(store, journal, World(), options.data_dir, options.config_file, dict(os.environ))
    workspaces = Workspaces(shared, stopping.set, options.idle_exit_s)
    access = Access(token, hosts(loaded.config.server.allowed_hosts))
    app = App(workspaces, access, shared.counts, stopping.set)
    config = uvicorn.Config(
        app,
        loop="none",
        http=HttpProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=75,
    )
    server = _Uvicorn(config)
    await workspaces.start()
    serving = asyncio.create_task(server.serve([listener]))
    beating = asyncio.create_task(app.beat())
    _say_listening(options.address, listener)
    await stopping.wait()
    await workspaces.close()
    beating.cancel()
    server.should_exit = True
    await serving
    await journal.aclose(FLUSH_S)


def _on_signal(stopping: asyncio.Event, number: signal.Signals) -> None:
    if stopping.is_set():
        # Whatever was promised is on disk already: the next start goes on from there.
        os._exit(128 + number)
    log.info("stopping on %s; once more to leave at once", number.name)
    stopping.set()


def _say_listening(address: Address, listener: socket.socket) -> None:
    where = f"unix://{address.path}"
    if not address.is_unix:
        host, port = listener.getsockname()[:2]
        where = Address(host=host, port=port).url
    sys.stdout.write(f"covey: listening on {where}\n")
    sys.stdout.flush()


@contextlib.contextmanager
def _owned(data_dir: Path, address: Address) -> Iterator[None]:
    """Own the data directory while we run. The lock dies with the process, so a stale one cannot keep anybody out."""
    path = data_dir / "server.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(descriptor, 4096, 0).decode("utf-8", "replace").strip()
            raise CannotServe(
                f"another server owns {data_dir}: {owner or 'it has just started'}. "
                "Use it, stop it with `covey stop`, or choose another --data-dir."
            ) from None
        owner = json.dumps({"pid": os.getpid(), "boot_id": _boot_id(), "address": str(address), "version": __version__})
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, owner.encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _boot_id() -> str:
    """Tells apart two processes with the same pid before and after a reboot."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


@contextlib.contextmanager
def _listening(address: Address) -> Iterator[socket.socket]:
    listener = _bind_unix(address.path) if address.is_unix else _bind_tcp(address)
    try:
        listener.listen(BACKLOG)
        listener.setblocking(False)
        yield listener
    finally:
        listener.close()
        if address.is_unix:
            with contextlib.suppress(OSError):
                os.unlink(address.path)


def _bind_tcp(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
    except OSError as error:
        listener.close()
        raise CannotServe(f"cannot listen on {address}: {error.strerror}. Is the port taken?") from None
    return listener


def _bind_unix(path: str) -> socket.socket:
    """A socket that only this user can open. One that a crash left behind is removed; one that answers is not."""
    parent = Path(path).parent
    if not parent.exists():
        make_private(parent)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        else:
            raise CannotServe(f"a server answers on unix://{path} already; use it, or stop it with `covey stop`")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listener.bind(path)
    except OSError as error:
        listener.close()
        raise CannotServe(f"cannot listen on unix://{path}: {error.strerror or error}") from None
    finally:
        os.umask(mask)
    return listener


def _token(options: Options) -> str:
    """The token for TCP: from the file that was named, the environment, or one that is made and kept."""
    if options.token_file:
        try:
            token = options.token_file.read_text().strip()
        except OSError as error:
            raise CannotServe(f"cannot read the token file {options.token_file}: {error.strerror}") from None
        if not token:
            raise CannotServe(f"the token file {options.token_file} is empty")
        return token
    if token := os.environ.get("COVEY_TOKEN", "").strip():
        return token
    path = token_file(options.data_dir)
    with contextlib.suppress(FileNotFoundError):
        if token := path.read_text().strip():
            return token
    token = secrets.token_urlsafe(32)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
    return token
