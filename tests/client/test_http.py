"""The HTTP underneath the client: answers in any pieces, connections kept or dropped, and things that are not HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from covey.client.http import CannotConnect, Http, HttpFailed
from covey.protocol.paths import Address

pytestmark = pytest.mark.anyio

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Wire:
    """A listener that counts connections and sends prepared bytes for each request."""

    def __init__(self, *answers: bytes, pieces: int = 0, hang_up: bool = False) -> None:
        self.answers = list(answers)
        self.pieces = pieces
        self.hang_up = hang_up
        self.connections = 0
        self.requests: list[bytes] = []
        self.open: set[asyncio.StreamWriter] = set()
        self.closed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                data = self.answers.pop(0)
                for start in range(0, len(data), self.pieces or len(data) or 1):
                    writer.write(data[start : start + (self.pieces or len(data))])
                    await writer.drain()
                if self.hang_up:
                    break
        writer.close()
        self.closed.set()


@asynccontextmanager
async def http(wire: Wire) -> AsyncIterator[Http]:
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = Http(Address(host="127.0.0.1", port=port), {"X-Always": "1"})
    try:
        yield client
    finally:
        await client.aclose()
        server.close()
        for writer in wire.open:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        await server.wait_closed()


async def get(client: Http, timeout_s: float = 30.0) -> bytes:
    response = await client.request("GET", "/x", headers={}, timeout_s=timeout_s)
    assert response.status == 200
    return response.body


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"


@pytest.mark.parametrize("pieces", [0, 1, 7])
async def test_answers_in_any_pieces(pieces: int) -> None:
    wire = Wire(OK, CHUNKED, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", pieces=pieces)
    async with http(wire) as client:
        assert [await get(client) for _ in range(3)] == [b"ok", b"abcd", b""]
    assert wire.connections == 1


async def test_what_is_sent() -> None:
    wire = Wire(OK, OK)
    async with http(wire) as client:
        await get(client)
        await client.request("POST", "/y?z=1", headers={"X-Once": "2"}, timeout_s=30.0)
    first, second = (request.decode().split("\r\n") for request in wire.requests)
    assert first[0] == "GET /x HTTP/1.1"
    assert first[1].startswith("Host: 127.0.0.1:")
    assert "X-Always: 1" in first
    assert not any(line.lower().startswith("content-length") for line in first)
    assert second[0] == "POST /y?z=1 HTTP/1.1"
    assert {"X-Once: 2", "Content-Length: 0"} <= set(second)


async def test_a_connection_that_the_server_closes_is_not_used_again() -> None:
    asked_to_close = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
    wire = Wire(asked_to_close, OK)
    async with http(wire) as client:
        assert [await get(client), await get(client)] == [b"ok", b"ok"]
    assert wire.connections == 2


async def test_a_connection_that_was_closed_while_idle_is_not_used_again() -> None:
    wire = Wire(OK, OK, hang_up=True)
    async with http(wire) as client:
        await get(client)
        (kept,) = client._idle
        async with asyncio.timeout(30):
            while kept.is_open:
                await asyncio.sleep(0)
        await get(client)
    assert wire.connections == 2


async def test_requests_at_once_have_connections_of_their_own() -> None:
    wire = Wire(*[OK] * 20)
    async with http(wire) as client:
        await asyncio.gather(*(get(client) for _ in range(12)))
        assert len(client._idle) == 8
        await get(client)
    assert wire.connections == 12


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    ],
)
async def test_what_is_not_http(data: bytes) -> None:
    async with http(Wire(data)) as client:
        with pytest.raises(HttpFailed, match="not HTTP"):
            await get(client)


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"])
async def test_an_answer_that_is_cut(data: bytes) -> None:
    async with http(Wire(data, hang_up=True)) as client:
        with pytest.raises(HttpFailed, match="closed it"):
            await get(client)


async def test_silence_and_cancelling_cut_the_connection() -> None:
    wire = Wire(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")
    async with http(wire) as client:
        with pytest.raises(HttpFailed, match="nothing was heard"):
            await get(client, timeout_s=0.02)
        async with asyncio.timeout(30):
            await wire.closed.wait()
        assert client._idle == []
        waiting = asyncio.create_task(get(client))
        wire.answers.append(b"HTTP/1.1 200 OK\r\n")
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert client._idle == []


async def test_nobody_listens() -> None:
    client = Http(Address(host="127.0.0.1", port=1), {})
    with pytest.raises(CannotConnect):
        await get(client)


async def test_a_header_cannot_become_two() -> None:
    async with http(Wire(OK)) as client:
        with pytest.raises(AssertionError):
            await client.request("GET", "/x", headers={"A": "b\r\nC: d"}, timeout_s=1.0)
