"""Connections to the other nodes of a cluster. Not a general HTTP client: it speaks to servers of ours.

An answer is read as far as its head. What follows is either read to its end, after which the connection serves the next
request, or it is an event stream and goes on, byte for byte, to the client's socket (`splice_to`): neither the chunks
of HTTP nor events are parsed, so heartbeats, merging and what becomes of slow readers stay the owner's.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import NamedTuple, Protocol, cast

import httptools

from covey.protocol.paths import Address

CONNECT_S = 2.0
"""A node accepts at once, also a busy one: its kernel does. One that does not is off, or cut off."""
LINK_S = 10
"""Bytes that nobody acknowledges for so long: the link is cut. A node that is frozen still acknowledges them."""
IDLE_S = 55.0
"""Less than what a server keeps a connection for that waits for its next request."""
MOST_IDLE = 32
"""To each node."""
HEAD_BYTES = 64 * 1024
SPLICED_BYTES = 128 * 1024
"""What the kernel may hold of a stream for a client that does not read: by itself it would take megabytes, and the
owner, which alone can merge what was not read yet, would learn late that somebody is slow."""
BUFFERED_BYTES = 256 * 1024
"""What may wait for a client that takes an answer slowly; beyond it the owner is slowed down."""


class PeerFailed(Exception):
    """There is no answer. `was_sent`: the node may have got the request, and may have done what it asks."""

    def __init__(self, why: str, *, was_sent: bool) -> None:
        super().__init__(why)
        self.was_sent = was_sent


class Head(NamedTuple):
    """The head of an answer; names are in lower case."""

    status: int
    headers: list[tuple[bytes, bytes]]

    def get(self, name: bytes) -> bytes:
        return next((value for found, value in self.headers if found == name), b"")

    @property
    def is_event_stream(self) -> bool:
        return self.status == 200 and self.get(b"content-type").startswith(b"text/event-stream")


class Sink(Protocol):
    """Where the bytes of a spliced stream go."""

    @property
    def is_free(self) -> bool:
        """It takes more without buffering."""

    def write_raw(self, data: bytes) -> None: ...


class PeerConnections:
    """All connections of this node to others, by address."""

    def __init__(self) -> None:
        self._idle: dict[str, list[PeerConnection]] = {}

    async def get(self, address: str, *, is_fresh: bool = False) -> PeerConnection:
        """One that waits, or a new one. `is_fresh`: a new one, which nobody can have closed a moment ago."""
        idle = self._idle.get(address, [])
        while idle and not is_fresh:
            connection = idle.pop()
            if connection.is_open:
                return connection
        return await self._connect(address)

    async def _connect(self, address: str) -> PeerConnection:
        where = Address.parse(address)
        try:
            async with asyncio.timeout(CONNECT_S):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: PeerConnection(self, address), where.host, where.port
                )
        except TimeoutError:
            raise PeerFailed(f"no connection to {address} within {CONNECT_S:g} s", was_sent=False) from None
        except OSError as error:
            raise PeerFailed(f"no connection to {address}: {error.strerror or error}", was_sent=False) from None
        return connection

    def keep(self, connection: PeerConnection) -> bool:
        """Whether there is room for one more that waits."""
        idle = self._idle.setdefault(connection.address, [])
        if len(idle) >= MOST_IDLE:
            return False
        idle.append(connection)
        return True

    def forget(self, connection: PeerConnection) -> None:
        idle = self._idle.get(connection.address, [])
        if connection in idle:
            idle.remove(connection)

    def close(self) -> None:
        for idle in list(self._idle.values()):
            for connection in list(idle):
                connection.abort()


class PeerConnection(asyncio.Protocol):
    """One connection: one request after the other, or one event stream."""

    def __init__(self, pool: PeerConnections, address: str) -> None:
        self.address = address
        self.use = 0
        """Rises with each request, and when that is over: who holds it from an earlier one must leave it alone."""
        self.transport: asyncio.Transport
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._answer = b""
        self._body: _Body | None = None
        self._sink: Sink | None = None
        self._lost = ""
        """Why nothing more comes."""
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_open(self) -> bool:
        return not self._lost and not self.transport.is_closing()

    async def ask(self, request: bytes, *, is_head: bool = False, is_parsed: bool = False) -> Head:
        """Send a request and wait for the head of its answer, however long that takes: `abort` ends the wait.

        `is_parsed`: also an event stream is read by `pieces`.
        """
        self._stop_timer()
        if self._lost:
            raise PeerFailed(self._lost, was_sent=False)
        self.use += 1
        self.transport.write(request)
        while (end := self._answer.find(b"\r\n\r\n")) < 0:
            if self._lost:
                raise PeerFailed(self._lost, was_sent=True)
            await self._more()
        head = _read_head(self._answer[:end])
        rest, self._answer = self._answer[end + 4 :], b""
        if head.is_event_stream and not is_parsed:
            self._answer = rest
        else:
            self._body = _Body(head, is_empty=is_head)
            self._body.take_in(rest)
        return head

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes; then the connection is free. Raises PeerFailed if it is cut off."""
        body = self._body
        assert body is not None
        while True:
            if data := body.take():
                self._resume()
                yield data
            elif body.is_complete:
                break
            elif self._lost:
                raise PeerFailed(self._lost, was_sent=True)
            else:
                await self._more()
        self._put_back(body)

    def splice_to(self, sink: Sink) -> None:
        """From now on whatever comes goes to the client."""
        if (connection := self.transport.get_extra_info("socket")) is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SPLICED_BYTES)
        if self._answer:
            sink.write_raw(self._answer)
            self._answer = b""
        self._sink = sink
        self._check_sink()

    async def stalled_or_over(self) -> bool:
        """Wait until the client has to take what it was given before more is read: True. False: nothing more comes."""
        while not self._lost:
            if self._is_paused:
                return True
            await self._more()
        return False

    def go_on(self) -> None:
        """The client has taken what it was given."""
        self._resume()

    def abort(self, why: str = "it was given up") -> None:
        """End it at once; whoever waits for an answer gets PeerFailed."""
        self._lost = self._lost or why
        self._stop_timer()
        self._pool.forget(self)
        self.transport.abort()
        self._wake()

    # ── what the transport says ──

    _is_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        _watch_link(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        if self._sink is not None:
            self._sink.write_raw(data)
            self._check_sink()
            return
        if self._body is not None:
            self._body.take_in(data)
            if self._body.waiting > BUFFERED_BYTES:
                self._pause()
        else:
            self._answer += data
            if len(self._answer) > HEAD_BYTES and b"\r\n\r\n" not in self._answer:
                self.abort("it sent a head without an end")
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = self._lost or "it closed the connection"
        self._stop_timer()
        self._pool.forget(self)
        self._wake()

    # ── inside ──

    def _check_sink(self) -> None:
        if self._sink is not None and not self._sink.is_free:
            self._pause()
            self._wake()

    def _pause(self) -> None:
        if not self._is_paused and not self._lost:
            self._is_paused = True
            self.transport.pause_reading()

    def _resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            if not self._lost:
                self.transport.resume_reading()

    def _put_back(self, body: _Body) -> None:
        self._body = None
        self.use += 1
        if body.may_stay_open and self.is_open and self._pool.keep(self):
            self._timer = self._loop.call_later(IDLE_S, self.abort)
        else:
            self.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _more(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Body:
    """The body of an answer: of a length that is known, or in chunks."""

    def __init__(self, head: Head, *, is_empty: bool) -> None:
        self.is_complete = False
        self.waiting = 0
        """Bytes that nobody has taken yet."""
        self.may_stay_open = b"close" not in head.get(b"connection").lower()
        self._pieces: list[bytes] = []
        self._left = 0
        self._parser: httptools.HttpResponseParser | None = None
        if not is_empty and head.get(b"transfer-encoding").lower() == b"chunked":
            self._parser = httptools.HttpResponseParser(self)
            self._parser.feed_data(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        else:
            self._left = 0 if is_empty else int(head.get(b"content-length") or 0)
            self.is_complete = not self._left

    def take_in(self, data: bytes) -> None:
        if self._parser is not None:
            self._parser.feed_data(data)
        elif data:
            self._left -= len(data)
            self.on_body(data)
            self.is_complete = self._left <= 0

    def take(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces.clear()
        self.waiting = 0
        return data

    def on_body(self, data: bytes) -> None:
        self._pieces.append(data)
        self.waiting += len(data)

    def on_message_complete(self) -> None:
        self.is_complete = True


def _read_head(data: bytes) -> Head:
    status, *lines = data.split(b"\r\n")
    fields = [line.partition(b":") for line in lines]
    return Head(int(status.split(b" ", 2)[1]), [(name.strip().lower(), value.strip()) for name, _, value in fields])


def _watch_link(connection: socket.socket | None) -> None:
    """A cable that was pulled says nothing by itself."""
    if connection is None:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LINK_S * 1000)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, LINK_S // 2)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, LINK_S // 2)
