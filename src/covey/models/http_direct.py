"""A small HTTP/1.1 client for answers that come in drops. Not a general one: it posts, reads, and closes at once.

A model's words arrive one by one, each in a packet of its own, and the whole server may spend 100 microseconds of CPU
on each. httpx2 takes 62 of them, this file 15, decoding included (`python -m bench.model_client`: 100 streams, 50
words a second each). HTTP is parsed in C by httptools; Python is left with one callback and one wake-up for a packet.
Connections are kept for the next step of a run. There is no HTTP/2, no redirect, no cookie and no compression.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import httptools

from covey.models.http import ProviderEndpoint, ProviderHttpFailed, ProviderSilent

if TYPE_CHECKING:
    import ssl

MAX_HEADER_BYTES = 64 * 1024
"""Providers send about 2 KiB; a server that sends more than this is not one."""
MAX_BUFFERED_BYTES = 256 * 1024
"""What may wait for a reader that is busy; beyond it the provider is slowed down."""
MAX_IDLE_CONNECTIONS = 16
"""Kept for the next step. More would only wait to be closed by the other side."""
IDLE_CONNECTION_S = 55.0
"""Just under the minute after which common proxies drop a silent connection without a word."""
DRAIN_S = 1.0
"""How long the last bytes after an answer's end may take before the connection is given up."""


class Direct:
    """All connections to one endpoint."""

    def __init__(self, endpoint: ProviderEndpoint) -> None:
        self._endpoint = endpoint
        self._head = _request_head(endpoint)
        self._idle: list[_Connection] = []
        self._draining: set[_Connection] = set()
        self._closed = False
        self._tls: ssl.SSLContext | None = None

    async def post(self, body: bytes, path: str = "") -> _Answer:
        return await self._ask(self._head_of("POST", path) + b"content-length: %d\r\n\r\n" % len(body) + body)

    async def get(self, path: str) -> _Answer:
        return await self._ask(self._head_of("GET", path) + b"\r\n")

    def _head_of(self, method: str, path: str) -> bytes:
        return f"{method} {self._endpoint.target(path)} HTTP/1.1\r\n".encode("latin-1") + self._head

    async def _ask(self, request: bytes) -> _Answer:
        if self._idle:
            try:
                return await self._idle.pop().ask(request)
            except ProviderHttpFailed as failure:
                if not failure.retry:
                    raise
                # The server closed it in the very moment: that says nothing about the server, so try a new one.
        return await (await self._connect()).ask(request)

    async def aclose(self) -> None:
        self._closed = True
        for connection in (*self._idle, *self._draining):
            connection.abort()

    def drain(self, connection: _Connection) -> None:
        """Hold a connection on which only the last bytes of an answer are missing."""
        self._draining.add(connection)

    def keep(self, connection: _Connection) -> bool:
        """Take a connection that could be used again; False if there is no room for it."""
        self._draining.discard(connection)
        if self._closed or len(self._idle) >= MAX_IDLE_CONNECTIONS:
            return False
        self._idle.append(connection)
        return True

    def forget(self, connection: _Connection) -> None:
        self._draining.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    async def _connect(self) -> _Connection:
        parts, timeout = self._endpoint.parts, self._endpoint.connect_timeout_s
        tls = parts.scheme == "https"
        host, port = parts.hostname or "", parts.port or (443 if tls else 80)
        try:
            if tls and self._tls is None:
                self._tls = await asyncio.to_thread(_tls_context)
            async with asyncio.timeout(timeout):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(self, self._endpoint.idle_timeout_s), host, port, ssl=self._tls
                )
        except TimeoutError:
            raise ProviderHttpFailed(f"did not accept a connection within {timeout:g} s", retry=True) from None
        except OSError as error:
            raise _cannot_connect(error, f"{host}:{port}") from None
        return connection


class _Connection(asyncio.Protocol):
    """One connection: carries one answer after the other, and says when it has been silent for too long."""

    def __init__(self, pool: Direct, idle_timeout_s: float) -> None:
        self.transport: asyncio.Transport
        self._pool = pool
        self._idle_timeout_s = idle_timeout_s
        self._loop = asyncio.get_running_loop()
        self._last_heard = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._answer = _Answer(self)
        """The answer under way, or the next one: what comes before it was asked for is a failure of that one."""

    async def ask(self, request: bytes) -> _Answer:
        """Send the request and wait for the headers of its answer."""
        self._last_heard = self._loop.time()
        self._set_timer(self._idle_timeout_s, self._check_silence)
        self.transport.write(request)
        try:
            await self._answer.begun()
        except BaseException:
            self.abort()
            raise
        return self._answer

    def drain(self) -> None:
        """Nobody wants the rest of the answer, but when it has come the connection is good again."""
        self._pool.drain(self)
        self._set_timer(DRAIN_S, self.abort)

    def put_back(self) -> None:
        if self._answer.reusable and not self.transport.is_closing() and self._pool.keep(self):
            self._set_timer(IDLE_CONNECTION_S, self.abort)
            self._answer = _Answer(self)
        else:
            self.abort()

    def abort(self) -> None:
        self._pool.forget(self)
        self._clear_timer()
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._last_heard = self._loop.time()
        self._answer.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pool.forget(self)
        self._clear_timer()
        self._answer.connection_lost(exc)

    def _check_silence(self) -> None:
        """One timer for the whole answer, because a new one for each packet would cost more than the packet."""
        now = self._loop.time()
        if not self._answer.is_awaited:
            self._last_heard = now  # nobody listened: that is not the server's silence
        if now - self._last_heard >= self._idle_timeout_s:
            self._answer.fail_with(ProviderSilent(self._idle_timeout_s))
        else:
            self._set_timer(self._last_heard + self._idle_timeout_s - now, self._check_silence)

    def _set_timer(self, delay: float, callback: Callable[[], None]) -> None:
        self._clear_timer()
        self._timer = self._loop.call_later(delay, callback)

    def _clear_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Answer:
    """One answer: what the parser has found so far, and the one reader who waits for more."""

    def __init__(self, connection: _Connection) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.reusable = False
        self._connection = connection
        self._released = False
        self._parser = httptools.HttpResponseParser(self)
        self._header_bytes = 0
        self._body: list[bytes] = []
        self._buffered = 0
        self._paused = False
        self._complete = False
        self._failure: ProviderHttpFailed | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_awaited(self) -> bool:
        return self._waiter is not None

    async def begun(self) -> None:
        while not self.status:
            if self._failure:
                raise self._failure
            await self._more()

    async def read(self) -> bytes:
        while not self._body:
            if self._complete:
                return b""
            if self._failure:
                raise self._failure
            await self._more()
        data = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body.clear()
        self._buffered = 0
        if self._paused:
            self._paused = False
            self._connection.transport.resume_reading()
        return data

    async def finish(self) -> None:
        if not self._released:
            self._released = True
            if self._complete:
                self._connection.put_back()
            else:
                self._connection.drain()

    async def close(self) -> None:
        if not self._released:
            self._released = True
            self._connection.abort()

    # What the connection says.

    def feed(self, data: bytes) -> None:
        if not self.status:
            self._header_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.fail(f"sent something that is not HTTP ({error})")
        if not self.status and self._header_bytes > MAX_HEADER_BYTES:
            self.fail(f"sent more than {MAX_HEADER_BYTES // 1024} KiB of headers")
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._failure:
            return  # it was we who closed it
        if self.status and exc is None and not self.headers.keys() & {"content-length", "transfer-encoding"}:
            self._complete = True  # such a body ends with its connection
            self._wake()
        elif self._header_bytes:
            self.fail("closed the connection: the answer was cut off")
        else:
            self.fail("closed the connection without an answer", retry=True)

    def fail(self, text: str, *, retry: bool = False) -> None:
        self.fail_with(ProviderHttpFailed(text, retry=retry))

    def fail_with(self, failure: ProviderHttpFailed) -> None:
        """The first failure holds, and none can spoil an answer that is complete."""
        if not self._complete and self._failure is None:
            self._failure = failure
        self._connection.abort()
        self._wake()

    # What the parser says.

    def on_message_begin(self) -> None:
        if self._complete:
            raise ValueError("more than one answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            self.headers = {}  # only a greeting: the answer follows
        else:
            self.status = status

    def on_body(self, data: bytes) -> None:
        if self._released:
            return
        self._body.append(data)
        self._buffered += len(data)
        if self._buffered > MAX_BUFFERED_BYTES and not self._paused:
            self._paused = True
            self._connection.transport.pause_reading()

    def on_message_complete(self) -> None:
        if not self.status:
            return
        self._complete = True
        self.reusable = self._parser.should_keep_alive()  # the parser knows it only within this callback
        if self._released:
            asyncio.get_running_loop().call_soon(self._connection.put_back)  # not from within the parser

    # Waiting.

    async def _more(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _request_head(endpoint: ProviderEndpoint) -> bytes:
    """All headers but the length, which each request has of its own."""
    lines = [f"host: {endpoint.parts.netloc}"]
    lines += [f"{name}: {value}" for name, value in endpoint.headers.items()]
    return ("\r\n".join(lines) + "\r\n").encode("latin-1")


def _tls_context() -> ssl.SSLContext:
    """Certificates are always checked, against those that the system or SSL_CERT_FILE trusts."""
    import httpx2

    return httpx2.create_ssl_context()


def _cannot_connect(error: OSError, address: str) -> ProviderHttpFailed:
    from socket import gaierror
    from ssl import SSLCertVerificationError

    if isinstance(error, SSLCertVerificationError):
        return ProviderHttpFailed(f"has a certificate that cannot be trusted: {error.verify_message}")
    reason = "connection refused" if isinstance(error, ConnectionRefusedError) else error.strerror or error
    nobody = isinstance(error, ConnectionRefusedError | gaierror)
    return ProviderHttpFailed(f"cannot be reached at {address}: {reason}", retry=True, nobody=nobody)
