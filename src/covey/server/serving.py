"""An application on a listening socket, by uvicorn, until it is closed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from typing import cast

from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.server import Server

from covey.server.http_protocol import bounded
from covey.server.listener import CannotServe, Listener

log = logging.getLogger(__name__)

GUARD_S = 2.0
"""How often it is looked whether the socket is still there."""


class Serving:
    """Answers from when it is made, in the running loop. The listener belongs to the caller."""

    def __init__(self, app: ASGIApp, listener: Listener) -> None:
        config = Config(
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
        self._server = _Uvicorn(config)
        self._serving = asyncio.create_task(self._server.serve([listener.socket]))
        self._guarding = asyncio.create_task(_guard(listener, self._server))

    async def close(self) -> None:
        """Accept nobody any more, and wait for what is being answered."""
        self._guarding.cancel()
        self._server.should_exit = True
        await self._serving


class _Uvicorn(Server):
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
