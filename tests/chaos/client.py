"""A client that trusts no node: a request gives up after a while, and a stream may break at any byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from covey.protocol.sse import FrameDecoder
from tests.support.nodes import TOKEN

ASK_S = 12.0
"""How long a post waits: somewhat longer than a lease."""
QUIET_S = 25.0
"""A stream says something at least every few seconds; one that does not is left."""
BROKEN = (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError)


@asynccontextmanager
async def _sent(
    port: int, method: str, path: str, body: Any, headers: dict[str, str]
) -> AsyncIterator[asyncio.StreamReader]:
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {TOKEN}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**26)
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        await writer.drain()
        yield reader
    finally:
        writer.transport.abort()


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = (line.partition(":") for line in head[1:] if line)
    return int(head[0].split()[1]), {name.lower(): value.strip() for name, _, value in pairs}


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readline()).strip() or b"0", 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)


async def ask(port: int, method: str, path: str, body: Any = None, timeout: float = ASK_S) -> tuple[int, Any]:
    """The status and the value. Raises one of BROKEN."""
    async with asyncio.timeout(timeout), _sent(port, method, path, body, {}) as reader:
        status, headers = await _head(reader)
        if "content-length" in headers:
            raw = await reader.readexactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            raw = b"".join([chunk async for chunk in _chunks(reader)])
        else:
            raw = await reader.read()
    return status, json.loads(raw) if raw and "json" in headers.get("content-type", "") else raw.decode()


async def events(port: int, path: str, last_event_id: str) -> AsyncIterator[tuple[str, Any]]:
    """The id ('' if it has none) and the value of each event, until the stream breaks or ends."""
    headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
    async with asyncio.timeout(None) as bound, _sent(port, "GET", path, None, headers) as reader:
        loop = asyncio.get_running_loop()
        bound.reschedule(loop.time() + ASK_S)
        status, found = await _head(reader)
        if status != 200:
            raise ConnectionRefusedError(f"{status}")
        decoder = FrameDecoder()
        pieces = _chunks(reader) if found.get("transfer-encoding") == "chunked" else _pieces(reader)
        bound.reschedule(loop.time() + QUIET_S)
        async for chunk in pieces:
            bound.reschedule(loop.time() + QUIET_S)
            for frame in decoder.feed(chunk):
                yield frame.id, json.loads(frame.data)


async def _pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await reader.read(65536):
        yield piece
