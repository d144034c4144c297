"""The reference for fan-out: a bare asyncio.Protocol server on uvloop that does nothing but write frames to everybody.

One write for each event and client, no HTTP, no log, no merging: what Python and the kernel can do at all. It speaks as
much of the event stream as the loader needs. A line `<frames> <gap>` on stdin starts a burst.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import uvloop

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nd\r\nretry: 1000\n\n\r\n"
FRAME = (
    b'data: {"type":"message_delta","payload":{"type":"updated","payload":{"message_id":"3ikx4zln",'
    b'"session_id":"3ikx4zll","run_id":"3ikx4zlm","part":0,"kind":"text","offset":%d,"delta":"~word"}}}\n\n'
)
TERMINAL = b'data: {"type":"run_complete"}\n\n'

clients: set[asyncio.Transport] = set()


class Client(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(HEAD)
        clients.add(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        clients.discard(self._transport)


def broadcast(frame: bytes) -> None:
    data = b"%x\r\n%b\r\n" % (len(frame), frame)
    for client in clients:
        client.write(data)


async def burst(frames: int, gap_s: float) -> None:
    """One turn of the loop for each event: as if they came one by one from a model."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    for number in range(frames):
        broadcast(FRAME % (number * 5))
        await asyncio.sleep(max(0.0, start + (number + 1) * gap_s - loop.time()) if gap_s else 0)
    broadcast(TERMINAL)


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Client, "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        frames, gap = line.split()
        await burst(int(frames), float(gap))


if __name__ == "__main__":
    uvloop.run(serve())
