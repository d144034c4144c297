"""A short cut from the feed to a client's socket, for streams whose client is up to date.

ASGI has one way to send, and it needs a task to wake up: most of what a delta costs when many clients watch. While a
stream only waits, its bytes can be written from where they appear, framed once for all clients that get the same ones
(measured: half the CPU for each client). Whoever reads slowly goes the ordinary way, where sending waits for them.

This knows uvicorn's inside, and nothing else does; with any other server `line_of` gives None.
"""

from __future__ import annotations

from starlette.types import Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class Line:
    """The connection under one response that has begun."""

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
        known, chunk = Line._framed
        if known is not data:
            chunk = b"%x\r\n%b\r\n" % (len(data), data)
            Line._framed = (data, chunk)
        self._cycle.transport.write(chunk)

    def drop(self) -> None:
        """Close without waiting for the client to take what is buffered, for which ASGI has no word."""
        self._cycle.transport.abort()


def line_of(send: Send) -> Line | None:
    """The line behind a response that was begun with `send`."""
    cycle = getattr(send, "__self__", None)
    if isinstance(cycle, RequestResponseCycle) and cycle.chunked_encoding:
        return Line(cycle)
    return None
