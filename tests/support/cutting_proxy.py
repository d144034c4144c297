"""A TCP proxy in the loop of a test that hangs up after a while, again and again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from covey.protocol.paths import Address


@asynccontextmanager
async def cutting_proxy(target: Address, seed: int) -> AsyncIterator[Address]:
    """Passes everything on, but hangs up after some bytes of the answer, also in the middle of a character.

    Each connection lives a little longer than the one before: an event that is too long for one must fit into another.
    """
    chance = random.Random(seed)
    connections = 0
    tasks: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, budget: int) -> None:
        while budget > 0 and (data := await reader.read(min(budget, 300))):
            budget -= len(data)
            writer.write(data)
            await writer.drain()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        budget = chance.randrange(200, 3000) + 500 * connections
        writers, pumps = [writer], set[asyncio.Task[None]]()
        try:
            inner_reader, inner_writer = await asyncio.open_connection(target.host, target.port)
            writers.append(inner_writer)
            pumps.add(asyncio.create_task(pump(reader, inner_writer, 1_000_000)))
            pumps.add(asyncio.create_task(pump(inner_reader, writer, budget)))
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in pumps:
                task.cancel()
            for closing in writers:
                closing.transport.abort()
            await asyncio.gather(*pumps, return_exceptions=True)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(serve(reader, writer)))

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield Address(host="127.0.0.1", port=listener.sockets[0].getsockname()[1])
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
