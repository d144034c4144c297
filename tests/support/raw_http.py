"""A client that shows the very bytes of an answer, in one event loop with the servers that it asks."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from covey.protocol.paths import Address
from tests.support.engine import within


@dataclass(frozen=True)
class RawAnswer:
    status: int
    head: list[bytes]
    """The lines of headers, without the date."""
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.value["code"])

    def header(self, name: str) -> str:
        start = f"{name}:".encode()
        return next((line[len(start) :].strip().decode() for line in self.head if line.startswith(start)), "")


class OpenRaw:
    """An answer while it arrives."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.status = 0
        self.head: list[bytes] = []

    async def begin(self) -> OpenRaw:
        first = await within(self.reader.readuntil(b"\r\n\r\n"))
        status, *lines = first.rstrip(b"\r\n").split(b"\r\n")
        self.status = int(status.split()[1])
        self.head = [line for line in lines if not line.startswith(b"date:")]
        return self

    async def until(self, part: bytes) -> bytes:
        return await within(self.reader.readuntil(part))

    async def rest(self) -> bytes:
        """Until the server hangs up."""
        return await within(self.reader.read())

    def close(self) -> None:
        self.writer.transport.abort()


class RawHttp:
    def __init__(self, address: Address, token: str) -> None:
        self._address = address
        self._token = token
        self._open: list[OpenRaw] = []

    async def begin(
        self, method: str, target: str, value: Any = None, *, headers: dict[str, str] | None = None, body: bytes = b""
    ) -> OpenRaw:
        """Send a request on a connection of its own."""
        sent = {"host": self._address.url.removeprefix("http://"), "authorization": f"Bearer {self._token}"}
        if value is not None:
            body = json.dumps(value).encode()
        if body:
            sent |= {"content-type": "application/json", "content-length": str(len(body))}
        sent |= headers or {}
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {text}" for name, text in sent.items() if text)]
        reader, writer = await asyncio.open_connection(self._address.host, self._address.port, limit=2**20)
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        opened = OpenRaw(reader, writer)
        self._open.append(opened)
        return opened

    async def stream(self, target: str, **options: Any) -> OpenRaw:
        return await (await self.begin("GET", target, **options)).begin()

    async def request(self, method: str, target: str, value: Any = None, **options: Any) -> RawAnswer:
        headers = {"connection": "close", **options.pop("headers", {})}
        opened = await (await self.begin(method, target, value, headers=headers, **options)).begin()
        return RawAnswer(opened.status, opened.head, await opened.rest())

    def close(self) -> None:
        for opened in self._open:
            opened.close()
