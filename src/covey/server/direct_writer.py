"""A short cut from the feed to a client's socket, for streams whose client is up to date.

ASGI has one way to send, and it needs a task to wake up: most of what a delta costs when many clients watch. While a
stream only waits, its bytes can be written from where they appear, framed once for all clients that get the same ones
(measured: half the CPU for each client). A slow reader is served the ordinary way, where sending waits for it.

Only this module depends on the internals of uvicorn; with any other server `direct_writer_of` returns None.
"""

from __future__ import annotations

import socket

from starlette.types import Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class DirectWriter:
    """Writes straight to the connection of one response that has begun."""

    __slots__ = ("_cycle",)

    _framed: tuple[bytes, bytes] = (b"", b"")
    """The last bytes that were written by any stream, and the same as a chunk of HTTP."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    @property
    def is_free(self) -> bool:
        """The client has taken what it was given: writing now costs no memory."""
        cycle = self._cycle
        return not (cycle.flow.write_paused or cycle.disconnected or cycle.transport.is_closing())

    def write(self, data: bytes) -> None:
        known, chunk = DirectWriter._framed
        if known is not data:
            chunk = b"%x\r\n%b\r\n" % (len(data), data)
            DirectWriter._framed = (data, chunk)
        self._cycle.transport.write(chunk)

    def write_raw(self, data: bytes) -> None:
        """Bytes that are chunks of HTTP already, as another node has framed them. Who is gone gets none."""
        if not self.is_gone:
            self._cycle.transport.write(data)

    @property
    def is_gone(self) -> bool:
        return self._cycle.disconnected or self._cycle.transport.is_closing()

    async def drain(self) -> None:
        """Until the client has taken what it was given, or is gone."""
        await self._cycle.flow.drain()

    def close(self) -> None:
        """Hang up once the client has taken what it was given. Nothing is said any more, not that this is the end."""
        self._cycle.transport.close()

    def drop(self) -> None:
        """Close without waiting for the client to take what is buffered, for which ASGI has no word."""
        self._cycle.transport.abort()


def hold_little(send: Send, size: int) -> None:
    """Have the kernel keep at most so many bytes for whoever reads the answer, where this server has such a way."""
    cycle = getattr(send, "__self__", None)
    connection = cycle.transport.get_extra_info("socket") if isinstance(cycle, RequestResponseCycle) else None
    if connection is not None and connection.fileno() >= 0:  # else whoever asked has left
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)


def direct_writer_of(send: Send) -> DirectWriter | None:
    """The direct writer for a response that was begun with `send`; None if this server has no such way."""
    cycle = getattr(send, "__self__", None)
    if isinstance(cycle, RequestResponseCycle) and cycle.chunked_encoding:
        return DirectWriter(cycle)
    return None
