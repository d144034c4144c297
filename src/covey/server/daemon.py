"""The server as a process: the data directory it owns, the address it listens on, the signals it obeys."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from covey.config.key_variables import PROVIDERS_KEYS
from covey.config.load import load
from covey.config.schema import Config, ConfigError, RetentionSettings
from covey.engine.ownership import node_home
from covey.engine.shared import load_engine
from covey.machine.memory import close_memory, keep_together
from covey.machine.names import TOKEN_VARIABLE
from covey.protocol.paths import Address
from covey.server.access import Access, hosts, is_loopback
from covey.server.data_dir import make_data_dir, owned
from covey.server.listener import Listener, bound_address, listening
from covey.server.page_listener import PageListener
from covey.server.pages import Pages
from covey.server.service import OpenStore, Service, ServiceOptions
from covey.server.serving import Serving
from covey.server.token import find_token
from covey.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from covey.server.tracing import Tracing

log = logging.getLogger(__name__)

TRACING_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

COLLECT_AFTER = (10_000, 20, 20)
"""Objects, and rounds of younger ones, between two looks of the collector: most of what a server keeps, it keeps for
long, and each look at all of it costs what there is of it. Reference counts free nearly everything without one."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    address: Address
    data_dir: Path
    config_file: Path | None
    token_file: Path | None
    idle_exit_s: float
    cluster: Mapping[str, str] = field(default_factory=dict)
    """What the command line says of `[cluster]`, by the names of its settings."""


def serve(options: ServeOptions, open_store: OpenStore = SqliteStore) -> None:
    """Run until asked to stop. Prints one line once it listens."""
    close_memory()
    keep_together()
    make_data_dir(options.data_dir)
    _warn_of_strangers(options.address)
    with owned(options.data_dir) as say_where, listening(options.address) as listener:
        say_where(bound_address(options.address, listener.socket))
        token = "" if options.address.is_unix else find_token(options.data_dir, options.token_file, os.environ)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(options, listener, token, open_store))


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


async def _serve(options: ServeOptions, listener: Listener, token: str, open_store: OpenStore) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    hang_up = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)  # nohup asks for that
    for number in (signal.SIGTERM, signal.SIGINT, *hang_up):
        loop.add_signal_handler(number, _on_signal, stopping, number)
    environ = dict(os.environ)
    own = _own_settings(options, environ)
    for name in (*PROVIDERS_KEYS, *own.key_variables, TOKEN_VARIABLE):
        os.environ.pop(name, None)  # whoever needs one gets it on purpose
    pages = Pages(options.data_dir, master=token)
    pages.allowed_hosts = own.server.allowed_hosts
    sockets = (Path(options.address.path),) if options.address.is_unix else ()
    cluster = structs.replace(own.cluster, **options.cluster)
    service = await Service.start(
        ServiceOptions(
            options.data_dir,
            options.config_file,
            environ,
            sockets,
            options.idle_exit_s,
            cluster if cluster.store or options.cluster else None,
            own.retention.backups,
        ),
        Access(token, hosts(own.server.allowed_hosts), pages),
        stopping.set,
        open_store,
    )
    tracing = _tracing(environ, cluster.node)
    if tracing:
        service.app.workspaces.everywhere.on_event = tracing.note
    serving = Serving(tracing.around(service.app) if tracing else service.app, listener)
    page_listener = PageListener(service.app, pages, own.server.web_port)
    await _open_to_pages(pages, page_listener, bound_address(options.address, listener.socket))
    _say_listening(bound_address(options.address, listener.socket))
    preparing = asyncio.create_task(_prepare())
    await stopping.wait()
    await service.drain()
    await serving.close()
    await page_listener.close()
    await service.close()
    if tracing:
        await tracing.aclose()
    await preparing


def _own_settings(options: ServeOptions, environ: Mapping[str, str]) -> Config:
    """What the files say about the server itself. Raises ConfigError.

    One that is started for somebody comes up also where they have a mistake: there is much to look at that needs no
    model. Not so a node, which would come up with another store.
    """
    try:
        return load(None, options.config_file, environ).config
    except ConfigError as error:
        if not options.idle_exit_s or options.cluster or node_home(options.data_dir).exists():
            raise
        log.warning("the server's own settings are the usual ones until it is started again: %s", error)
        # No backup is made, since the oldest would go for it: how many are to be kept is not known.
        return Config(mistake=error.message, retention=RetentionSettings(backups=0))


def _tracing(environ: Mapping[str, str], node: str) -> Tracing | None:
    """Spans for OpenTelemetry, if its variables ask for them. They cost nothing otherwise, not even an import."""
    if not any(environ.get(name) for name in TRACING_VARIABLES):
        return None
    from covey.server.tracing import Tracing

    return Tracing.wanted(environ, node)


async def _open_to_pages(pages: Pages, page_listener: PageListener, own: Address) -> None:
    """Browsers come to the server's own address, or to a listener of theirs where that is a unix socket."""

    async def own_address() -> Address:
        return own

    if own.is_unix:
        pages.listen = page_listener.listen
        await page_listener.start()
    else:
        pages.listen = own_address


async def _prepare() -> None:
    """What the first workspace and the first command need: nobody who starts a server has to wait for it."""
    await load_engine()
    from covey.engine.confining import announce

    await asyncio.to_thread(announce)
    gc.collect()
    gc.freeze()  # what was imported stays: the collector need not look at it over and over
    gc.set_threshold(*COLLECT_AFTER)


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
