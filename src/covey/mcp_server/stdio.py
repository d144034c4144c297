"""Serves one agent on stdin and stdout, until it leaves."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress

from covey.mcp_server.service import McpService, Teller, internal
from covey.rpc.messages import Notification, Params, Request, RpcError
from covey.rpc.peer import Peer
from covey.rpc.stdio import StdioLines

LINE_BYTES = 8 * 1024 * 1024
UNREAD_BYTES = 4 * 1024 * 1024
LEAVE_S = 0.7
"""As for editors: nobody may find us here a second later."""


class _Connection:
    """What is done with the messages of one agent."""

    def __init__(self, service: McpService) -> None:
        self._service = service
        self.peer: Peer | None = None

    async def request(self, request: Request) -> Params:
        def send(progress: Params) -> None:
            assert self.peer
            self.peer.notify("notifications/progress", progress)

        return await self._service.answer(request.method, request.params, Teller(request.params, send))

    def notification(self, notification: Notification) -> None:
        """A call that is taken back gets no answer."""
        id = notification.params.get("requestId")
        if notification.method == "notifications/cancelled" and isinstance(id, str | int) and self.peer:
            self.peer.stop(id)

    def internal(self, error: Exception) -> RpcError:
        return internal(error)


async def serve_stdio(service: McpService) -> None:
    connection = _Connection(service)
    with StdioLines(LINE_BYTES) as lines:
        peer = connection.peer = Peer(lines.write, lines.drain, connection)
        reading = asyncio.create_task(_read(lines, peer))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, reading.cancel)
        await asyncio.wait({reading})
        service.is_leaving = True
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await peer.close()
                await lines.drain(0)


async def _read(lines: StdioLines, peer: Peer) -> None:
    while found := await lines.read():
        for line in found:
            peer.receive(line)
        await lines.drain(UNREAD_BYTES)
