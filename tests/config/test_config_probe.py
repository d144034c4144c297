"""The one request that looks for a local model server: bounded in time and size, and never sent elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from covey.config import probe as probe_module
from covey.config.probe import MAX_ANSWER_BYTES, probe
from tests.support.machine import refusing_port

Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[str]:
    """A server that reads one request head and leaves the rest to `answer`."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(await reader.readuntil(b"\r\n\r\n"), writer)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()


def saying(data: bytes) -> Answer:
    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return answer


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (OK + b'{"object": "list", "data": [{"id": "a", "owned_by": "x"}, {"id": "b/c"}]}', ["a", "b/c"]),
        (OK + b'{"data": []}', []),
        (OK + b'{"data": null}', []),
        (OK + b"{}", None),
        (OK + b"[]", None),
        (OK + b'{"data": [{"id": 1}]}', None),
        (OK + b"<html>a web site</html>", None),
        (OK + b"\xff\xfe", None),
        (OK, None),
        (OK + b'{"data": [' + b" " * MAX_ANSWER_BYTES + b"]}", None),
        (b'HTTP/1.1 404 Not Found\r\n\r\n{"data": []}', None),
        (b'HTTP/1.1 301 Moved\r\nLocation: http://elsewhere.example/\r\n\r\n{"data": []}', None),
        (b"SSH-2.0-OpenSSH_9.9\r\n", None),
        (b"", None),
    ],
)
async def test_what_answers_is_believed_only_if_it_makes_sense(
    data: bytes, expected: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_module, "PROBE_SECONDS", 20)  # a busy machine must not turn an answer into silence
    async with serving(saying(data)) as base_url:
        assert await probe(base_url) == expected


@pytest.mark.anyio
async def test_the_request_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_module, "PROBE_SECONDS", 20)
    heads: list[bytes] = []

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        heads.append(head)

    async with serving(answer) as base_url:
        await probe(base_url)
    host = base_url.removeprefix("http://").removesuffix("/v1")
    assert heads == [f"GET /v1/models HTTP/1.0\r\nHost: {host}\r\nAccept: application/json\r\n\r\n".encode()]


@pytest.mark.anyio
async def test_nobody_there_is_no_answer() -> None:
    with refusing_port() as port:
        assert await probe(f"http://127.0.0.1:{port}/v1") is None


@pytest.mark.anyio
async def test_a_silent_or_endless_server_is_given_up() -> None:
    async def silent(head: bytes, writer: asyncio.StreamWriter) -> None:
        await given_up.wait()

    async def endless(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        while not given_up.is_set():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0)

    for answer in (silent, endless):
        given_up = asyncio.Event()
        async with serving(answer) as base_url:
            async with asyncio.timeout(60):
                assert await probe(base_url) is None
            given_up.set()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "base_url", ["http://192.0.2.1:8080/v1", "http://example.com/v1", "https://127.0.0.1:1/v1", "http:///v1", "x"]
)
async def test_only_this_machine_is_asked(base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(*args: object) -> None:
        raise AssertionError("must not connect")

    monkeypatch.setattr(asyncio, "open_connection", connect)
    with pytest.raises(ValueError):
        await probe(base_url)
