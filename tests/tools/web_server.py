"""A web server on this machine that answers with the bytes a test gives it, and notes who came and who left."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

Respond = Callable[[asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes | str = b"", status: str = "200 OK", **headers: str) -> Respond:
    """A whole answer. The names of headers are written with underscores."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return raw("\r\n".join(lines).encode() + b"\r\n\r\n" + data)


def redirect(target: str, status: str = "302 Found") -> Respond:
    return answer(status=status, location=target)


def raw(data: bytes) -> Respond:
    async def respond(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return respond


def then_silent(data: bytes) -> Respond:
    """Begin, and say nothing more until the client has gone."""

    async def respond(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        await asyncio.Event().wait()

    return respond


def endless(beginning: bytes, piece: bytes) -> Respond:
    async def respond(writer: asyncio.StreamWriter) -> None:
        writer.write(beginning)
        while True:
            writer.write(piece)
            await writer.drain()

    return respond


class WebServer:
    """On every address of this machine: 127.0.0.1 and 127.0.0.2 are two hosts to a client."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.pages: dict[str, Respond] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.open = 0
        self.came = asyncio.Event()
        self._tls = tls
        self._handlers: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._handle, "0.0.0.0", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}{path}"

    async def stop(self) -> None:
        self._server.close()
        for handler in list(self._handlers):
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._handlers.add(task)
        self.open += 1
        try:
            with contextlib.suppress(
                ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError
            ):
                await self._serve(reader, writer)
        finally:
            self.open -= 1
            self._handlers.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        path = first.split(" ")[1]
        self.requests.append((path, headers))
        respond = self.pages.get(path) or answer("nothing here", "404 Not Found", content_type="text/plain")
        self.came.set()
        responding = asyncio.ensure_future(respond(writer))
        gone = asyncio.ensure_future(reader.read())
        await asyncio.wait({responding, gone}, return_when=asyncio.FIRST_COMPLETED)
        for task in (responding, gone):
            task.cancel()
        await asyncio.gather(responding, gone, return_exceptions=True)


@contextlib.asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncIterator[WebServer]:
    server = WebServer(tls)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
