"""Between client and server: whatever the network does to a stream, its reader has what the server has in the end."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from covey.client.client import Client
from covey.client.event_stream import EventStream
from covey.protocol.paths import Address
from tests.faults.watching import FIRST_DELAY_S, Script, Watcher, place, same_bytes, through
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.fault_proxy import Fault, FaultProxy, Link, Plan, Way
from tests.support.server import Server, Workspace
from tests.support.stream import Stream

ENDS: tuple[Fault, ...] = ("cut", "reset", "half_close")
"""Faults that the client is informed of."""
STRIDE = 17
"""A prime: the positions fall into every part of a frame and into every byte of a character."""
AT_ONCE = 16


def down(after: int, fault: Fault) -> Plan:
    return Plan(down=Way(after=after, fault=fault))


def answer(request: Recorded) -> Reply:
    """Reasoning, text with characters of up to four bytes, and a tool call: every kind of growth."""
    if request.call_number == 0:
        call = Call(name="view", input={"file_path": "nöwhere 🐦.txt"}, pieces=5)
        return Reply(reasoning="hm 🤔 hm", text="wörd {n} 😀 ", chunks=5, tools=(call,))
    return Reply(text="and {n} móre 🎉 ", chunks=5)


@pytest.fixture
def workspace(server: Server, tmp_path: Path) -> Iterator[Workspace]:
    opened = place(server, tmp_path / "project")
    yield opened
    opened.close()


@pytest.fixture
def reference(workspace: Workspace) -> Stream:
    """What a client sees to which nothing happens."""
    return workspace.stream()


def beginning(reference: Stream) -> str:
    """The id before the first event of the workspace."""
    first = reference.wait_for(lambda seen: [e.id for e in seen if e.id])[0]
    return f"{first.partition('.')[0]}.0"


def open_stream(client: Client, workspace: Workspace, start: str, **options: Any) -> EventStream:
    return EventStream(client, workspace.id, last_event_id=start, first_delay_s=FIRST_DELAY_S, **options)


def batches(numbers: Iterable[int]) -> Iterator[list[int]]:
    listed = list(numbers)
    for start in range(0, len(listed), AT_ONCE):
        yield listed[start : start + AT_ONCE]


@pytest.mark.anyio
async def test_scenario_23_cut_at_every_place_of_a_replay(
    server: Server, workspace: Workspace, reference: Stream, model: FakeModel
) -> None:
    """The second connection of each client breaks at its own byte: in the head, in a frame, in a character."""
    model.on(answer)
    session = workspace.session()
    start = beginning(reference)
    workspace.prompt(session, "hello", run_id="r1")
    reference.terminal("r1")
    script = Script()
    with FaultProxy(server.port, script) as proxy:

        async def watch(number: int) -> Watcher:
            async with through(proxy, server, number) as client, open_stream(client, workspace, start) as stream:
                watcher = Watcher(stream)
                await watcher.until_end("r1")
                stored = await client.messages(workspace.id, session)
            same_bytes(watcher.transcript, stored)
            assert [event_id for event_id, _ in watcher.durable] == [e.id for e in reference.durable]
            return watcher

        whole = await watch(10**6)
        size = proxy.links[0].down
        assert size > 3000
        for numbers in batches(range(1, size, STRIDE)):
            script.streams.update({n: [down(400, "cut"), down(n - 1, ENDS[n % 3])] for n in numbers})
            watchers = await asyncio.gather(*(watch(n) for n in numbers))
            assert all(watcher.durable == whole.durable for watcher in watchers)
        assert proxy.struck > size // STRIDE


@pytest.mark.anyio
@pytest.mark.parametrize("fault", ENDS)
async def test_scenario_23_cut_again_and_again_while_the_model_speaks(
    server: Server, workspace: Workspace, reference: Stream, model: FakeModel, fault: Fault
) -> None:
    model.on(lambda request: Reply(reasoning="hm 🤔", text="wörd {n} 😀 ", chunks=400, delay_ms=2))
    session = workspace.session()
    start = beginning(reference)

    def decide(link: Link) -> Plan:
        """Each third connection is a long one: what does not fit into any would never arrive."""
        return down(link.number * 389 % 4001 if link.number % 3 else 6000 + link.number * 389, fault)

    with FaultProxy(server.port, decide) as proxy:
        async with through(proxy, server) as client, open_stream(client, workspace, start) as stream:
            watcher = Watcher(stream)
            async with asyncio.timeout(90):
                for number in itertools.count(1):  # text that is held up arrives at once: then one run is too short
                    await asyncio.to_thread(workspace.prompt, session, "hello", run_id=f"r{number}")
                    await watcher.until_end(f"r{number}")
                    if proxy.struck > 10:
                        break
    async with Client(Address(host="127.0.0.1", port=server.port), token=server.token) as direct:
        same_bytes(watcher.transcript, await direct.messages(workspace.id, session))
    reference.terminal(f"r{number}")
    assert [event_id for event_id, _ in watcher.durable] == [e.id for e in reference.durable]


@pytest.mark.anyio
async def test_r16_a_stream_that_stalls_is_noticed_and_made_again(
    server: Server, workspace: Workspace, reference: Stream, model: FakeModel
) -> None:
    """Nothing comes any more, and nobody says why: also in the middle of the answer's head."""
    model.on(answer)
    session = workspace.session()
    start = beginning(reference)
    workspace.prompt(session, "hello", run_id="r1")
    reference.terminal("r1")
    positions = (0, 5, 100, 300, 900, 1700, 2500)
    script = Script({n + 1: [down(400, "stall"), down(n, "stall")] for n in positions})
    with FaultProxy(server.port, script) as proxy:

        async def watch(number: int) -> None:
            lost: list[str] = []
            client = through(proxy, server, number, answer_s=4.0)
            stream = open_stream(
                client, workspace, start, silence_s=0.3, on_connection=lambda up, why: lost.append(why)
            )
            async with client, asyncio.timeout(90), stream:
                watcher = Watcher(stream)
                await watcher.until_end("r1")
                assert "nothing was heard for too long" in lost
            same_bytes(watcher.transcript, stored)

        async with Client(Address(host="127.0.0.1", port=server.port), token=server.token) as direct:
            stored = await direct.messages(workspace.id, session)
        await asyncio.gather(*(watch(n + 1) for n in positions))
        assert proxy.struck == 2 * len(positions)
