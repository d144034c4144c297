"""The short cut to the socket: the same bytes in the same order, whether a task was woken for them or not."""

from __future__ import annotations

import asyncio
import random
import uuid
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from covey.engine.workspace import Workspace
from covey.protocol.requests import PostPrompt
from covey.protocol.sse import FrameDecoder
from covey.server.direct_writer import DirectWriter, direct_writer_of
from covey.server.event_stream import Stream
from tests.server.site import CLIENT, Site, scope, serving
from tests.support.engine import Gate, within

pytestmark = pytest.mark.anyio


class Cycle(RequestResponseCycle):
    """One response of uvicorn without its socket: `sent` is what the client gets, whichever way it came."""

    def __init__(self) -> None:
        self.chunked_encoding = True
        self.disconnected = False
        self.sent = b""
        self.pushed = 0
        self.aborted = False
        self.flow: Any = self
        self.transport: Any = self
        self._writable = asyncio.Event()
        self._writable.set()
        self._gone = asyncio.Event()

    @property
    def write_paused(self) -> bool:
        return not self._writable.is_set()

    def pause(self) -> None:
        self._writable.clear()

    def resume(self) -> None:
        self._writable.set()

    # as the transport

    def is_closing(self) -> bool:
        return self.aborted

    def write(self, chunk: bytes) -> None:
        size, _, rest = chunk.partition(b"\r\n")
        data = rest.removesuffix(b"\r\n")
        assert len(data) == int(size, 16)
        self.pushed += 1
        self.sent += data

    def abort(self) -> None:
        self.aborted = True

    # as the cycle

    async def send(self, message: Any) -> None:
        await self._writable.wait()
        self.sent += message.get("body", b"")

    async def receive(self) -> Any:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    @property
    def events(self) -> list[str]:
        return [frame.data for frame in FrameDecoder().feed(self.sent)]


async def watch(site: Site, workspace: Workspace, client_id: str = CLIENT) -> tuple[Cycle, asyncio.Task[None]]:
    cycle = Cycle()
    path = f"/v1/workspaces/{workspace.id}/events?client_id={client_id}&deltas=1"
    task = asyncio.create_task(site.app(scope("GET", path, {}), cycle.receive, cycle.send))
    while not cycle.sent:
        await asyncio.sleep(0)
    return cycle, task


async def test_only_a_response_of_uvicorn_in_chunks_has_a_direct_writer() -> None:
    cycle = Cycle()
    assert direct_writer_of(cycle.send) is not None
    cycle.chunked_encoding = False
    assert direct_writer_of(cycle.send) is None

    async def send(message: Any) -> None:
        pass

    assert direct_writer_of(send) is None


@pytest.mark.parametrize("seed", range(5))
async def test_who_is_paused_now_and_then_gets_what_everybody_gets(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with serving(tmp_path) as site:
        workspace = await site.workspace()
        session = await workspace.sessions.create("")
        steady, _ = await watch(site, workspace)
        other, _ = await watch(site, workspace, str(uuid.UUID(int=2)))
        for _ in range(20):
            (other.pause if chance.random() < 0.5 else other.resume)()
            site.model.answer(*["word "] * chance.randint(1, 20))
            receipt = await workspace.runs.post(PostPrompt(session_id=session.id, prompt="hi"))
            for _ in range(chance.randint(0, 5)):
                await asyncio.sleep(0)
            if chance.random() < 0.3:
                await within(workspace.runs.get(receipt.run_id, 10))
        other.resume()
        while workspace.is_busy:
            await asyncio.sleep(0)
        await within(site.workspaces.close())
        assert steady.pushed > 10
        ours = [event for event in other.events if "presence" not in event]
        theirs = [event for event in steady.events if "presence" not in event]
        assert ours == theirs


async def test_a_client_that_stops_reading_is_dropped_and_not_written_to_any_more(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        workspace = await site.workspace()
        session = await workspace.sessions.create("")
        cycle, task = await watch(site, workspace)
        cycle.pause()
        gate = Gate()
        site.model.answer(*["x "] * 50, gate)
        await workspace.runs.post(PostPrompt(session_id=session.id, prompt="hi", run_id="a"))
        await gate.reached()
        pushed = cycle.pushed
        (stream,) = site.app.streams
        assert isinstance(stream, Stream)
        while not stream.sending:
            await asyncio.sleep(0)
        stream.beat(asyncio.get_running_loop().time() + 60)
        await within(asyncio.wait({task}))
        assert cycle.aborted
        assert cycle.pushed == pushed
        gate.open()
        assert (await within(workspace.runs.get("a", 10))).state == "completed"
        assert workspace._parts.feed.readers == 0


@pytest.mark.parametrize("is_closing", [False, True])
async def test_who_is_gone_is_given_nothing_of_a_stream_that_is_passed_on(is_closing: bool) -> None:
    """A transport that is closed raises, with the loop that servers use: in the middle of what another node sends."""
    transport = mock.Mock(**{"is_closing.return_value": is_closing})
    cycle = mock.Mock(disconnected=False, transport=transport)
    DirectWriter(cycle).write_raw(b"1\r\nx\r\n")
    assert transport.write.call_count == (0 if is_closing else 1)
