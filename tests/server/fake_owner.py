"""A node that a test plays itself: it takes requests, and does with them what the test says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from covey.cluster.whereabouts import There

Answering = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
"""Gets a whole request. The connection is closed afterwards, unless it says `keep`."""


@dataclass
class FakeOwner:
    there: There
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    answer: Answering | None = None

    def header(self, number: int, name: str) -> str:
        """Of one request that was taken; '' if it has none."""
        start = f"\r\n{name}: ".encode()
        _, found, rest = self.requests[number].partition(start)
        return rest.partition(b"\r\n")[0].decode() if found else ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                _, has_length, rest = request.lower().partition(b"\r\ncontent-length:")
                if has_length:
                    request += await reader.readexactly(int(rest.partition(b"\r\n")[0]))
                self.requests.append(request)
                assert self.answer is not None
                await self.answer(request, writer)
                if writer.is_closing():
                    return


def reply(status: str, body: bytes, *headers: str) -> Answering:
    """Always the same answer; the connection stays."""

    async def answer(_request: bytes, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return answer


async def hang_up(_request: bytes, writer: asyncio.StreamWriter) -> None:
    """As if the node were killed in this moment."""
    writer.transport.abort()


async def freeze(_request: bytes, _writer: asyncio.StreamWriter) -> None:
    """As if the node were stopped in this moment."""
    await asyncio.Event().wait()


def in_turn(*answers: Answering) -> Answering:
    left = list(answers)

    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(request, writer)

    return answer


@contextlib.asynccontextmanager
async def fake_owner(answer: Answering) -> AsyncIterator[FakeOwner]:
    owner = FakeOwner(There("f-1", "f", ""), answer=answer)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(task := asyncio.ensure_future(owner.serve(reader, writer)))
        try:
            await asyncio.wait({task})
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    owner.there = There("f-1", "f", f"http://127.0.0.1:{port}")
    try:
        yield owner
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
