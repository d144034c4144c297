"""A hand-made HTTP server that does exactly what a test tells it: also what a real one never would.

    async with StubServer() as server:
        server.on("GET", "/v1/health", answer(200, {"status": "ok"}))
        ...
        assert server.requests[0].headers["authorization"] == "Bearer secret"

A handler gets the request and the open connection; it may answer, stream, stall or cut.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from covey.protocol.events import Event, encode_event
from covey.protocol.paths import Address
from covey.protocol.sse import EventId, frame, preamble


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Connection:
    """One request's way back."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.closed = False

    async def answer(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        await self.send(head.encode() + body)

    async def begin_events(self) -> None:
        await self.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            + _chunk(preamble(1000))
        )

    async def event(self, event: Event, seq: int | None = None, epoch: int = 1) -> None:
        event_id = None if seq is None else EventId(epoch, seq)
        await self.raw_event(frame(encode_event(event), event_id))

    async def raw_event(self, data: bytes) -> None:
        await self.send(_chunk(data))

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def end_events(self) -> None:
        """The end as HTTP wants it; without it, a closed connection is a cut one."""
        await self.send(b"0\r\n\r\n")

    def cut(self) -> None:
        self.closed = True
        self._writer.close()


Handler = Callable[[Request, Connection], Awaitable[None]]


@dataclass(slots=True)
class _Route:
    method: str
    pattern: re.Pattern[str]
    handler: Handler


@dataclass(slots=True)
class StubServer:
    """Listens on a unix socket if it is given a path, else on any free port. Later routes win over earlier ones."""

    socket: Path | None = None
    requests: list[Request] = field(default_factory=list)
    _routes: list[_Route] = field(default_factory=list)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        if self.socket is not None:
            self._server = await asyncio.start_unix_server(self._serve, str(self.socket))
        else:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        if self.socket is not None:
            self.socket.unlink(missing_ok=True)

    @property
    def address(self) -> Address:
        assert self._server is not None
        if self.socket is not None:
            return Address(path=str(self.socket))
        return Address(host="127.0.0.1", port=self._server.sockets[0].getsockname()[1])

    def on(self, method: str, path: str, handler: Handler) -> None:
        """`path` may hold regular expressions."""
        self._routes.append(_Route(method, re.compile(path), handler))

    def asked(self, method: str, path: str) -> list[Request]:
        return [request for request in self.requests if request.method == method and re.fullmatch(path, request.path)]

    async def wait_for(self, method: str, path: str, count: int = 1) -> list[Request]:
        """Wait until so many of these requests have arrived."""
        async with asyncio.timeout(30), self._arrived:
            await self._arrived.wait_for(lambda: len(self.asked(method, path)) >= count)
        return self.asked(method, path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = Connection(writer)
        try:
            while not connection.closed and (request := await _read_request(reader)):
                self.requests.append(request)
                async with self._arrived:
                    self._arrived.notify_all()
                await self._handler(request)(request, connection)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    def _handler(self, request: Request) -> Handler:
        for route in reversed(self._routes):
            if route.method == request.method and route.pattern.fullmatch(request.path):
                return route.handler
        return answer(404, {"message": f"the stub knows no {request.method} {request.path}", "code": "not_found"})


def answer(status: int, body: Any = b"", content_type: str = "application/json") -> Handler:
    """A handler that always answers this: bytes as they are, anything else as JSON."""
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)

    async def handler(request: Request, connection: Connection) -> None:
        await connection.answer(status, data, content_type)

    return handler


def in_turn(*handlers: Handler) -> Handler:
    """A handler for each request in order; the last one stays."""
    left = list(handlers)

    async def handler(request: Request, connection: Connection) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(request, connection)

    return handler


async def cut(request: Request, connection: Connection) -> None:
    """A handler that hangs up without a word."""
    connection.cut()


async def stall(request: Request, connection: Connection) -> None:
    """A handler that never answers."""
    await asyncio.Event().wait()


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    method, target, _ = lines[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    url = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    return Request(method, unquote(url.path), query, headers, body)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
