"""A TCP listener for pages, beside the unix socket of a server: on demand, always at the same port."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from covey.protocol.paths import Address
from covey.server.access import Access
from covey.server.app import App, Gate
from covey.server.listener import CannotServe, Listener, bound_address
from covey.server.pages import Pages
from covey.server.serving import Serving

log = logging.getLogger(__name__)

HERE = "127.0.0.1"


class PageListener:
    """Listens once somebody asks for a page, and from the start where a page may come back by itself."""

    def __init__(self, app: App, pages: Pages, wanted_port: int) -> None:
        self._app = app
        self._pages = pages
        self._wanted_port = wanted_port
        self._listener: Listener | None = None
        self._serving: Serving | None = None
        self._opening = asyncio.Lock()

    async def start(self) -> None:
        """A page that was open when the server ended tries its port again and again: be there."""
        if self._pages.sessions.any:
            try:
                await self.listen()
            except CannotServe as error:
                log.warning("pages cannot come back by themselves: %s", error)

    async def listen(self) -> Address:
        async with self._opening:
            if self._listener is None:
                self._listener = self._bound()
                access = Access(pages_only=True, allowed_hosts=self._app.access.allowed_hosts, pages=self._pages)
                self._serving = Serving(Gate(self._app, access), self._listener)
            address = bound_address(Address(host=HERE), self._listener.socket)
            self._pages.sessions.keep_port(address.port)
            return address

    async def close(self) -> None:
        if self._serving and self._listener:
            await self._serving.close()
            self._listener.close()

    def _bound(self) -> Listener:
        """At the port of last time; a configured one is used or nothing is."""
        if self._wanted_port:
            return Listener(Address(host=HERE, port=self._wanted_port))
        if port := self._pages.sessions.port:
            with suppress(CannotServe):
                return Listener(Address(host=HERE, port=port))
            log.warning("port %d is in use, so pages that were open there have to be let in again", port)
        return Listener(Address(host=HERE, port=0))
