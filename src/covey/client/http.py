"""A small HTTP/1.1 client for one server on this machine. Not a general one: no TLS, no redirects, no compression.

httpx2 would do all of this, but importing it takes about as long as everything else that `covey run` does before its
first word: 200 ms with it, 130 without, with a model that answers at once. HTTP itself is parsed in C by httptools.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Mapping

import httptools

from covey.client.transport import Response, TransportFailed
from covey.protocol.paths import Address

CONNECT_S = 5.0
"""A server on this machine accepts at once; one that does not in this time hangs."""
READ_BYTES = 256 * 1024
"""What is taken from the socket at once: as much as the server hands over at once."""
MAX_IDLE_CONNECTIONS = 8


class HttpFailed(TransportFailed):
    """There is no answer, or only a part of one."""


class CannotConnect(HttpFailed):
    """Nobody listens: nothing was sent."""


class Http:
    """The connections to one address, kept between requests."""

    def __init__(self, address: Address, headers: Mapping[str, str]) -> None:
        self._address = address
        host = address.url.removeprefix("http://")
        self._headers = {"Host": host, "User-Agent": "covey", **headers}
        self._idle: list[_Connection] = []

    async def request(
        self, method: str, target: str, body: bytes = b"", *, headers: Mapping[str, str], timeout_s: float
    ) -> Response:
        """One request and its whole answer."""
        exchange = await self.open(method, target, body, headers=headers, timeout_s=timeout_s)
        return Response(exchange.status, exchange.headers, await exchange.read_all(timeout_s))

    async def open(
        self, method: str, target: str, body: bytes = b"", *, headers: Mapping[str, str], timeout_s: float
    ) -> Exchange:
        """Send a request and wait for the head of its answer. The rest is read from what this returns."""
        connection = self._take_idle() or await self._connect()
        exchange = Exchange(self, connection)
        try:
            async with asyncio.timeout(timeout_s):
                await connection.send(self._head(method, target, headers, body) + body)
                await exchange.begin()
        except BaseException as error:
            connection.close()
            raise _failure(error) from None
        return exchange

    async def aclose(self) -> None:
        while self._idle:
            self._idle.pop().close()
        await asyncio.sleep(0)  # a transport closes its socket in the loop's next turn

    def keep(self, connection: _Connection) -> None:
        """The answer was read to its end: the connection can serve another request."""
        if len(self._idle) < MAX_IDLE_CONNECTIONS:
            self._idle.append(connection)
        else:
            connection.close()

    def _take_idle(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
            connection.close()
        return None

    async def _connect(self) -> _Connection:
        try:
            async with asyncio.timeout(CONNECT_S):
                if self._address.is_unix:
                    streams = await asyncio.open_unix_connection(self._address.path)
                else:
                    streams = await asyncio.open_connection(self._address.host, self._address.port)
        except TimeoutError:
            raise CannotConnect(f"it does not accept connections within {CONNECT_S:g} s") from None
        except OSError as error:
            # What asyncio says itself is not for people.
            said = os.strerror(error.errno) if error.errno and error.errno in errno.errorcode else error.strerror
            raise CannotConnect(said or str(error)) from None
        return _Connection(*streams)

    def _head(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
        fields = {**self._headers, **headers}
        if body or method in ("POST", "PUT", "PATCH"):
            fields["Content-Length"] = str(len(body))
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        assert not any("\r" in line or "\n" in line for line in lines), "a header would become two"
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer

    @property
    def is_open(self) -> bool:
        return not self.reader.at_eof() and not self._writer.is_closing()

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def close(self) -> None:
        """At once: whatever has not been sent yet is for an answer that nobody waits for."""
        self._writer.transport.abort()


class Exchange:
    """The answer to one request, while it arrives. The methods that begin with `on_` are called by the parser."""

    def __init__(self, http: Http, connection: _Connection) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._http = http
        self._connection: _Connection | None = connection
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: list[bytes] = []
        self._has_head = False
        self._is_complete = False
        self._may_stay_open = False

    async def begin(self) -> None:
        while not self._has_head:
            await self._receive()

    async def read(self, timeout_s: float) -> bytes:
        """The next bytes of the body, as soon as there are any; empty at its end."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._chunks and not self._is_complete:
                    await self._receive()
        except BaseException as error:
            self.close()
            raise _failure(error) from None
        data = b"".join(self._chunks)
        self._chunks.clear()
        return data

    async def read_all(self, timeout_s: float) -> bytes:
        """The rest of the body; the connection is free afterwards."""
        chunks = []
        while chunk := await self.read(timeout_s):
            chunks.append(chunk)
        self.close()
        return b"".join(chunks)

    def close(self) -> None:
        """Keep the connection if the answer was read to its end; else there is no way but to cut it."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._may_stay_open and connection.is_open:
            self._http.keep(connection)
        else:
            connection.close()

    async def _receive(self) -> None:
        if self._connection is None:
            raise HttpFailed("it is closed")
        data = await self._connection.reader.read(READ_BYTES)
        if not data:
            raise HttpFailed("the server closed it")
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        self._chunks.append(body)

    def on_message_complete(self) -> None:
        self._is_complete = True
        self._may_stay_open = self._parser.should_keep_alive()


def _failure(error: BaseException) -> BaseException:
    """Whatever happened on the way, as an error of ours; what was meant for the caller's task is passed on."""
    if isinstance(error, TimeoutError):
        return HttpFailed("nothing was heard for too long")
    if isinstance(error, httptools.HttpParserError | httptools.HttpParserUpgrade):
        return HttpFailed(f"what was received is not HTTP: {error}")
    if isinstance(error, OSError):
        return HttpFailed(error.strerror or str(error) or type(error).__name__)
    return error
