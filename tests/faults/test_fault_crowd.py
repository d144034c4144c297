"""Clients in crowds: whoever comes and goes leaves nothing behind, and whoever stops reading slows nobody (R16)."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from covey.client.client import Client
from covey.client.event_stream import EventStream
from covey.protocol.paths import Address
from covey.server.event_stream import STALLED_S
from tests.faults.watching import FIRST_DELAY_S, Watcher, client_of, place, same_bytes
from tests.support.effort import bound
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.fault_proxy import FaultProxy, Plan, Way
from tests.support.server import Server, Workspace, until

MIB = 1024 * 1024
CLIENTS = 50
VISITS = bound(300, 1000)
STALLED = 20
DELTAS = 50_000
LINE = " a line of a large file, long enough that all of them are more than a server keeps for those who do not read"
TEXT = "".join(f"{n}{LINE}\n" for n in range(DELTAS))


@pytest.fixture
def workspace(server: Server, tmp_path: Path) -> Iterator[Workspace]:
    opened = place(server, tmp_path / "project", yolo=True)
    yield opened
    opened.close()


def beginning(workspace: Workspace) -> str:
    """The id before the first event of the workspace."""
    stream = workspace.stream()
    workspace.session()
    first = stream.wait_for(lambda seen: [e.id for e in seen if e.id])[0]
    stream.close()
    return f"{first.partition('.')[0]}.0"


class Visitor:
    """A client that never says goodbye, and goes in another way each time."""

    def __init__(self, workspace: Workspace, number: int) -> None:
        self._workspace = workspace
        self._client_id = client_of(number + 1)
        self._session = workspace.session()

    async def visit(self, number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._workspace.server.port)
        stream = self._request("GET", f"/events?client_id={self._client_id}&deltas={number % 2}")
        prompt = self._request("POST", "/agent", {"session_id": self._session, "prompt": "hello", "mode": "own_turn"})
        match number % 5:
            case 0:
                writer.write(stream)
                await reader.readuntil(b"retry:")
            case 1:
                writer.write(stream)
                await reader.readuntil(b"retry:")
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            case 2:
                writer.write(stream[:70])
            case 3:
                writer.write(prompt[:-10])
            case 4:
                writer.write(prompt)
        await writer.drain()
        writer.close()

    def _request(self, method: str, path: str, body: object = None) -> bytes:
        data = json.dumps(body).encode() if body else b""
        head = f"{method} {self._workspace.path}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        head += f"Authorization: Bearer {self._workspace.server.token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        return head.encode() + data


def settled(server: Server) -> tuple[int, int]:
    """Descriptors and memory once everybody has left and everything has run."""
    until(lambda: server.metric("event_streams_open") == 0)
    until(lambda: sum(server.open_runs(state) for state in ("accepted", "queued", "active")) == 0, 60)
    return server.descriptors(), server.resident_bytes()


def cpu_s(server: Server) -> float:
    """What the server has worked so far: unlike time on the wall, it does not depend on what else the machine does."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def effort_s(workspace: Workspace) -> float:
    """What fifty prompts cost the server, one after the other, from the post to the known end."""
    session = workspace.session()
    start = cpu_s(workspace.server)
    for _ in range(50):
        workspace.ended(workspace.prompt(session, "hello")["run_id"])
    return cpu_s(workspace.server) - start


@pytest.mark.larger
@pytest.mark.anyio
async def test_r16_fifty_clients_come_and_go_again_and_again(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    """E11. The first visits are not counted: they fill caches and pools, once."""
    model.on(lambda request: Reply(text="fine"))
    visitors = [Visitor(workspace, number) for number in range(CLIENTS)]

    async def come_and_go(first: int, count: int) -> None:
        async def visits(number: int) -> None:
            for visit in range(count // CLIENTS):
                await visitors[number].visit(first + number + visit)

        await asyncio.gather(*(visits(number) for number in range(CLIENTS)))

    await come_and_go(0, 250)
    descriptors, memory = await asyncio.to_thread(settled, server)
    effort = await asyncio.to_thread(effort_s, workspace)
    await come_and_go(1, VISITS)
    # The model's connections are kept for the next prompt: as many as there ever were prompts at once.
    await asyncio.to_thread(until, lambda: settled(server)[0] <= descriptors + CLIENTS)
    after = await asyncio.to_thread(effort_s, workspace)
    assert server.resident_bytes() <= memory + 24 * MIB
    assert after <= 3 * effort + 0.5


def answer(request: Recorded) -> Reply:
    """A large file in small pieces. Those of a text would be put together as they arrive; those of a call are not."""
    call = Call(name="write", input={"file_path": "large.txt", "content": TEXT}, pieces=DELTAS)
    return Reply(text="", tools=(call,)) if request.call_number == 0 else Reply(text="done")


class Crowd:
    """Clients of one workspace, with a direct line to the server or behind a proxy."""

    def __init__(self, workspace: Workspace, stack: AsyncExitStack) -> None:
        self._workspace = workspace
        self._stack = stack

    async def watcher(self, start: str, port: int = 0, **options: Any) -> Watcher:
        server = self._workspace.server
        address = Address(host="127.0.0.1", port=port or server.port)
        client = await self._stack.enter_async_context(Client(address, token=server.token))
        stream = EventStream(client, self._workspace.id, last_event_id=start, first_delay_s=FIRST_DELAY_S, **options)
        return Watcher(await self._stack.enter_async_context(stream))


async def run_time_s(workspace: Workspace, session: str, readers: list[Watcher], run_id: str) -> float:
    """From the post to the moment when all readers have seen the end."""
    start = time.perf_counter()
    await asyncio.to_thread(workspace.prompt, session, "hello", run_id=run_id)
    await asyncio.gather(*(reader.until_end(run_id) for reader in readers))
    return time.perf_counter() - start


def peak_bytes(server: Server) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in status if line.startswith("VmHWM:")))


@pytest.mark.heavy  # tests/e2e/test_e2e_watchers.py has the same with one of them
@pytest.mark.anyio
@pytest.mark.timeout(300)
async def test_scenario_22_twenty_clients_stop_reading_while_50000_deltas_stream(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    """Half of them do not read; of the others the network holds everything back, so that they fall out of the log."""
    model.on(answer)
    session = workspace.session()
    first = Plan(down=Way(after=2000, fault="stall"))
    async with AsyncExitStack() as stack, asyncio.timeout(250):
        proxy = stack.enter_context(
            FaultProxy(server.port, lambda link: first if link.number < STALLED // 2 else Plan())
        )
        crowd = Crowd(workspace, stack)
        readers = [await crowd.watcher(beginning(workspace)) for _ in range(2)]
        await run_time_s(workspace, session, readers, "warm-up")
        alone = await run_time_s(workspace, session, readers, "alone")
        memory = server.resident_bytes()
        start = str(readers[0].known)
        stalled = [await crowd.watcher(start) for _ in range(STALLED // 2)]
        stalled += [await crowd.watcher(start, proxy.port, silence_s=1.0) for _ in range(STALLED // 2)]
        together = await run_time_s(workspace, session, readers, "together")
        assert proxy.struck == STALLED // 2
        assert together <= 3 * alone + STALLED_S / 2  # a server that waited for one of them would do so for STALLED_S
        assert peak_bytes(server) <= memory + 120 * MIB
        await asyncio.gather(*(watcher.until_end("together") for watcher in stalled))
        async with Client(Address(host="127.0.0.1", port=server.port), token=server.token) as client:
            stored = await client.messages(workspace.id, session)
        for reader in readers:
            same_bytes(reader.transcript, stored)
        for watcher in stalled:
            same_bytes(watcher.transcript, stored[-4:])
