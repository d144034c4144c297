"""Runs a bridge on stdin and stdout, until the editor leaves."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress

from covey.acp.bridge import Bridge, Connect
from covey.rpc.peer import Peer
from covey.rpc.stdio import StdioLines

LINE_BYTES = 48 * 1024 * 1024
"""What the server takes as one prompt (32 MiB), with room for what is around it."""
UNREAD_BYTES = 16 * 1024 * 1024
"""Of an editor that has not taken so much of what it was told, nothing more is read: it must take some first."""
LEAVE_S = 0.7
"""For goodbyes and last words when the editor has gone: nobody may find us here a second later."""


async def serve(connect: Connect, default_cwd: str) -> None:
    bridge = Bridge(connect, default_cwd=default_cwd)
    with StdioLines(LINE_BYTES) as lines:
        peer = Peer(lines.write, lines.drain, bridge)
        bridge.attach(peer)
        reading = asyncio.create_task(_read(lines, peer))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, reading.cancel)
        await asyncio.wait({reading})
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await peer.close()
                await asyncio.gather(bridge.close(), lines.drain(0))


async def _read(lines: StdioLines, peer: Peer) -> None:
    while found := await lines.read():
        for line in found:
            peer.receive(line)
        await lines.drain(UNREAD_BYTES)
