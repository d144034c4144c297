"""Below the application: how long a head and a body may take, how long a head may be, and how many may only wait.

A real uvicorn on a socket of its own. Its bounds are so large that they are never reached: a test lets a deadline come.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import pytest
import uvicorn

from covey.server.http_protocol import MAX_HEAD_BYTES, ConnectionBounds, HttpProtocol, bounded

pytestmark = pytest.mark.anyio

AGES = 600.0
GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Server:
    """A server that answers "ok", once it has the body, unless the path is /hold: then when the test lets it."""

    def __init__(self, protocol: type[HttpProtocol]) -> None:
        self.waiting = protocol.waiting
        self.connections: set[Any] = set()
        self.port = 0
        self.release = asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/early":
            await self._answer(send)
            return
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            if not message["more_body"]:
                break
        if scope["path"] == "/hold":
            await self.release.wait()
        await self._answer(send)

    async def _answer(self, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def connect(self, data: bytes = b"") -> Streams:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers.append(writer)
        writer.write(data)
        return reader, writer

    async def exchange(self, data: bytes) -> bytes:
        """All that comes back until the server hangs up."""
        reader, _ = await self.connect(data)
        return await ended(reader)

    async def seen(self, size: int) -> HttpProtocol:
        """The only connection, once so much of a head has come."""
        await until(lambda: [c for c in self.connections if c._head_bytes == size])
        (connection,) = self.connections
        assert isinstance(connection, HttpProtocol)
        return connection

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()


async def ended(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(30):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


async def answered(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(30):
        return await reader.readuntil(b"ok")


def expire(connection: HttpProtocol) -> None:
    """As if its time were over."""
    assert connection._deadline is not None
    connection._deadline.cancel()
    connection._on_deadline()


async def until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


@asynccontextmanager
async def serving(head_s: float = AGES, body_s: float = AGES, waiting: int = 100) -> AsyncIterator[Server]:
    protocol = bounded(ConnectionBounds(head_s, body_s, waiting))
    made = Server(protocol)
    config = uvicorn.Config(
        made.app, port=0, interface="asgi3", loop="none", http=protocol, ws="none", lifespan="off", log_config=None,
        access_log=False, timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]
    task = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    made.connections = server.server_state.connections
    made.port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        made.release.set()
        await made.close()
        server.should_exit = True
        await task


# ── time ──


async def test_a_silent_connection_is_closed_by_the_clock() -> None:
    async with serving(head_s=0.01) as server:
        assert await server.exchange(b"") == b""


@pytest.mark.parametrize("begun", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: h\r\nX: ", b"GET /"])
async def test_a_head_that_does_not_come_ends_the_connection(begun: bytes) -> None:
    async with serving() as server:
        reader, _ = await server.connect(begun)
        expire(await server.seen(len(begun)))
        answer = await ended(reader)
        assert answer.startswith(b"HTTP/1.1 408 ") if begun else answer == b""


async def test_a_head_that_comes_byte_by_byte_has_no_more_time() -> None:
    async with serving() as server:
        _, writer = await server.connect(b"GET / HTTP/1.1\r\n")
        connection = await server.seen(16)
        deadline = connection._deadline
        writer.write(b"X: x")
        assert (await server.seen(20))._deadline is deadline


@pytest.mark.parametrize("after", [b"\r\n", b"GET / HTT"])
async def test_the_next_head_on_a_connection_has_its_time_too(after: bytes) -> None:
    async with serving() as server:
        reader, writer = await server.connect(GET)
        await answered(reader)
        writer.write(after)
        expire(await server.seen(len(after)))
        assert (await ended(reader)).startswith(b"HTTP/1.1 408 ")


async def test_a_head_that_was_begun_during_an_answer_has_its_time_from_then_on() -> None:
    async with serving() as server:
        reader, writer = await server.connect(b"GET /hold HTTP/1.1\r\nHost: h\r\n\r\n")
        await until(lambda: not len(server.waiting) and server.connections)
        writer.write(b"\r\n")  # some clients send a line end too many
        connection = await server.seen(2)
        assert connection._deadline is None, "an answer under way is not ended for that"
        server.release.set()
        await answered(reader)
        expire(connection)
        assert (await ended(reader)).startswith(b"HTTP/1.1 408 ")


async def test_a_body_that_does_not_come_ends_the_connection() -> None:
    async with serving() as server:
        reader, _ = await server.connect(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf")
        await until(lambda: any(c._in_body for c in server.connections))
        expire(await server.seen(0))
        answer = await ended(reader)
        assert answer.startswith(b"HTTP/1.1 408 ")
        error = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert error == {"message": "The request took too long to arrive.", "code": "bad_http"}


async def test_a_body_that_goes_on_after_its_answer_has_no_more_time() -> None:
    async with serving() as server:
        reader, _ = await server.connect(b"POST /early HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf")
        await answered(reader)
        expire(await server.seen(0))
        assert await ended(reader) == b""


# ── places ──


async def test_of_too_many_silent_connections_the_oldest_go() -> None:
    async with serving(waiting=5) as server:
        silent = []
        for number in range(8):
            silent.append(await server.connect(b"GET /" if number % 2 else b""))
            await until(lambda: len(server.waiting) == min(len(silent), 5))
        for reader, _ in silent[:3]:
            assert await ended(reader) == b""
        reader, _ = await server.connect(GET)
        await answered(reader)
        assert len(server.waiting) == 5
        silent[-1][1].write(b" HTTP/1.1\r\nHost: h\r\n\r\n")
        await answered(silent[-1][0])


async def test_connections_that_were_answered_count_and_those_under_way_do_not() -> None:
    async with serving(waiting=2) as server:
        held, _ = await server.connect(b"GET /hold HTTP/1.1\r\nHost: h\r\n\r\n")
        first, _ = await server.connect(GET)
        await answered(first)
        early, _ = await server.connect(b"POST /early HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf")
        await answered(early)
        for _ in range(3):
            reader, _ = await server.connect(GET)
            await answered(reader)
        assert await ended(first) == b"" and await ended(early) == b""
        assert len(server.waiting) == 2
        server.release.set()
        assert (await answered(held)).endswith(b"ok")


async def test_a_connection_that_is_gone_gives_its_place_back() -> None:
    async with serving() as server:
        _, writer = await server.connect(GET)
        await until(lambda: len(server.waiting) == 1)
        writer.close()
        await until(lambda: len(server.waiting) == 0)


# ── heads ──


def head_of(size: int) -> bytes:
    head = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX: " + b"x" * 100 + b"\r\n\r\n"
    return head.replace(b"x" * 100, b"x" * (size - len(head) + 100))


@pytest.mark.parametrize("step", [70_000, 32_768, 997])
@pytest.mark.parametrize(("over", "status"), [(0, b"200"), (1, b"400")])
async def test_a_head_may_have_64_kib_and_not_a_byte_more(over: int, status: bytes, step: int) -> None:
    head = head_of(MAX_HEAD_BYTES + over)
    assert len(head) == 65_536 + over
    async with serving() as server:
        reader, writer = await server.connect()
        for start in range(0, len(head), step):
            writer.write(head[start : start + step])
            await writer.drain()
        assert (await ended(reader)).startswith(b"HTTP/1.1 " + status)


async def test_a_head_after_another_request_in_the_same_packet_is_bounded_too() -> None:
    async with serving() as server:
        body = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx"
        reader, writer = await server.connect(body + head_of(MAX_HEAD_BYTES + 200))
        answer = await ended(reader)
        assert b"400 Bad Request" in answer and b"at most 65536 bytes" in answer
        writer.close()


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        (b"/", b"h", b"200"),
        (b"http://h/", b"h", b"200"),
        (b"http://H:80/?q", b"h:80", b"200"),
        (b"http://evil/", b"h", b"400"),
        (b"http://h:1/", b"h", b"400"),
        (b"http://h@evil/", b"h", b"400"),
        (b"HTTPS://evil?x", b"h", b"400"),
    ],
)
async def test_an_address_must_name_the_same_server_as_the_host_header(
    target: bytes, host: bytes, status: bytes
) -> None:
    async with serving() as server:
        request = b"GET %b HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % (target, host)
        assert (await server.exchange(request)).startswith(b"HTTP/1.1 " + status)
