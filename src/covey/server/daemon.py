"""The server as a process: the data directory it owns, the address it listens on, the signals it obeys."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from uvicorn.config import Config as UvicornConfig
from uvicorn.server import Server as UvicornServer

from covey import __version__
from covey.config.key_variables import PROVIDERS_KEYS
from covey.config.load import load
from covey.engine.preferences import load_preferences
from covey.engine.shared import Shared
from covey.engine.workspaces import Workspaces, load_engine
from covey.engine.world import World
from covey.machine.locks import open_lock, try_lock
from covey.machine.memory import close_memory, keep_together
from covey.machine.names import TOKEN_VARIABLE, server_lock
from covey.machine.owned import why_not_our_directory
from covey.protocol.paths import Address
from covey.server.access import Access, hosts, is_loopback
from covey.server.app import App
from covey.server.http_protocol import bounded
from covey.server.listener import CannotServe, Listener, bound_address, listening
from covey.server.token import find_token
from covey.store.base import Store
from covey.store.journal import Journal
from covey.store.sqlite import SqliteStore

log = logging.getLogger(__name__)

GUARD_S = 2.0
"""How often it is looked whether the socket is still there."""
FLUSH_S = 1.5
"""How long the journal may take to write its last changes; draining has had its own time before."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    address: Address
    data_dir: Path
    config_file: Path | None
    token_file: Path | None
    idle_exit_s: float


OpenStore = Callable[[Path], Store]


def serve(options: ServeOptions, open_store: OpenStore = SqliteStore) -> None:
    """Run until asked to stop. Prints one line once it listens."""
    close_memory()
    keep_together()
    _make_data_dir(options.data_dir)
    _warn_of_strangers(options.address)
    with _owned(options.data_dir) as announce, listening(options.address) as listener:
        announce(bound_address(options.address, listener.socket))
        token = "" if options.address.is_unix else find_token(options.data_dir, options.token_file, os.environ)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(options, listener, token, open_store))


def _make_data_dir(data_dir: Path) -> None:
    """Whoever can write into it could give us a token, a lock or a store of theirs."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        why = why_not_our_directory(data_dir)
    except OSError as error:
        raise CannotServe(f"{data_dir} cannot be the data directory: {error.strerror}") from None
    if why:
        raise CannotServe(
            f"{data_dir} {why}: the data directory must be yours, and only you may write into it. "
            f"Try `chmod go-w {data_dir}`, or choose another --data-dir."
        )


def _warn_of_strangers(address: Address) -> None:
    if not address.is_unix and not is_loopback(address.host):
        log.warning(
            "%s can be reached from other machines, and nothing on the way is encrypted: whoever listens in gets the "
            "token, and with it everything that you can do. Prefer 127.0.0.1 and a tunnel, such as ssh -L",
            address,
        )


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop


class _Uvicorn(UvicornServer):
    """uvicorn without its own signal handling: the order of closing is ours."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def listen_on(self, listener: socket.socket) -> None:
        """Serve on another socket from now on. Connections that are open stay so."""
        config, loop = self.config, asyncio.get_running_loop()

        make = cast("Callable[..., asyncio.Protocol]", config.http_protocol_class)

        def connection() -> asyncio.Protocol:
            return make(config, self.server_state, self.lifespan.state)

        before, self.servers = self.servers, [await loop.create_server(connection, sock=listener)]
        for old in before:
            old.close()


async def _serve(options: ServeOptions, listener: Listener, token: str, open_store: OpenStore) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    hang_up = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)  # nohup asks for that
    for number in (signal.SIGTERM, signal.SIGINT, *hang_up):
        loop.add_signal_handler(number, _on_signal, stopping, number)
    environ = dict(os.environ)
    loaded = load(None, options.config_file, environ)
    for name in (*PROVIDERS_KEYS, *loaded.config.key_variables, TOKEN_VARIABLE):
        os.environ.pop(name, None)  # whoever needs one gets it on purpose
    store = open_store(options.data_dir / "covey.db")
    journal = Journal(store)
    sockets = (Path(options.address.path),) if options.address.is_unix else ()
    shared = Shared(
        store,
        journal,
        World(),
        options.data_dir,
        options.config_file,
        environ,
        sockets=sockets,
        preferences=load_preferences(options.data_dir),
    )
    workspaces = Workspaces(shared, stopping.set, options.idle_exit_s)
    access = Access(token, hosts(loaded.config.server.allowed_hosts))
    app = App(workspaces, access, shared.counts, stopping.set)
    config = UvicornConfig(
        app,
        loop="none",
        http=bounded(),
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
    serving = asyncio.create_task(server.serve([listener.socket]))
    beating = asyncio.create_task(app.beat())
    guarding = asyncio.create_task(_guard(listener, server))
    _say_listening(bound_address(options.address, listener.socket))
    preparing = asyncio.create_task(_prepare())
    await stopping.wait()
    await workspaces.close()
    beating.cancel()
    guarding.cancel()
    server.should_exit = True
    await serving
    await journal.aclose(FLUSH_S)
    await preparing


async def _prepare() -> None:
    """What the first workspace and the first command need: nobody who starts a server has to wait for it."""
    await load_engine()
    from covey.engine.confining import announce

    await asyncio.to_thread(announce)
    gc.collect()
    gc.freeze()  # what was imported stays: the collector need not look at it over and over


async def _guard(listener: Listener, server: _Uvicorn) -> None:
    """A server whose socket file was removed runs on, and nobody can reach it: make the file again. Until cancelled."""
    while True:
        await asyncio.sleep(GUARD_S)
        try:
            renewed = listener.renewed()
        except (CannotServe, OSError) as error:
            log.warning("the socket is gone, and cannot be made again: %s", error)
            continue
        if renewed:
            log.warning("the socket was removed; it is there again")
            await server.listen_on(renewed)


def _on_signal(stopping: asyncio.Event, number: signal.Signals) -> None:
    if stopping.is_set() and number is not signal.SIGHUP:  # a terminal that goes away says so more than once
        # Whatever was promised is on disk already: the next start goes on from there.
        os._exit(128 + number)
    log.info("stopping on %s; a second signal ends it at once", number.name)
    stopping.set()


def _say_listening(address: Address) -> None:
    where = str(address) if address.is_unix else address.url
    sys.stdout.write(f"covey: listening on {where}\n")
    sys.stdout.flush()


@contextlib.contextmanager
def _owned(data_dir: Path) -> Iterator[Callable[[Address], None]]:
    """Own the data directory while we run. The lock dies with the process, so a stale one cannot keep anybody out.

    Yields a function that records where we listen, for a second server that finds the directory taken.
    """
    with contextlib.ExitStack() as stack:
        try:
            descriptor = stack.enter_context(open_lock(server_lock(data_dir)))
        except OSError as error:  # ELOOP: it is a link, which is not followed
            raise CannotServe(f"{server_lock(data_dir)} cannot be opened: {error.strerror}") from None

        def announce(address: Address) -> None:
            owner = {"pid": os.getpid(), "boot_id": _boot_id(), "address": str(address), "version": __version__}
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(owner).encode(), 0)

        is_ours = False
        with contextlib.suppress(OSError):  # a file system without locks
            is_ours = try_lock(descriptor)
        if not is_ours:
            raise CannotServe(_taken(data_dir, os.pread(descriptor, 4096, 0)))
        os.ftruncate(descriptor, 0)
        yield announce
        os.ftruncate(descriptor, 0)


def _taken(data_dir: Path, owner: bytes) -> str:
    try:
        known = json.loads(owner)
        address, who = known["address"], f"the server at {known['address']} (pid {known['pid']})"
    except (ValueError, KeyError, TypeError):
        return (
            f"{data_dir} is in use: another server has just started on it, or `covey doctor --repair` is at work. "
            "Try again in a moment, or choose another --data-dir."
        )
    return (
        f"{who} uses {data_dir} already. Use it with --host {address}, stop it with `covey stop --host {address}`, "
        "or choose another --data-dir."
    )


def _boot_id() -> str:
    """Tells apart two processes with the same pid before and after a reboot."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""
