"""E: event streams that break, fall behind, come back, or are never read."""

from __future__ import annotations

import asyncio
import socket
import threading
import uuid
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from covey.cli import exits
from covey.client import prompt
from covey.client.client import Client
from covey.client.event_stream import EventStream
from covey.client.transcript import Transcript
from covey.feed import feed as feed_module
from covey.feed.feed import Feed
from covey.protocol.events import Event, Gap, created, encode_event
from covey.protocol.messages import Message
from covey.protocol.paths import Address
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import RunComplete
from covey.server import event_stream
from tests.feed.readers import Reader, delta, message, text
from tests.peer_failures.command import covey, finish
from tests.peer_failures.conftest import SILENCE, NewRunId, ask
from tests.server.site import CLIENT, Watcher, serving
from tests.support.effort import bound
from tests.support.fake_model import FakeModel
from tests.support.fault_proxy import FaultProxy, Link, Plan, Way
from tests.support.machine import refusing_port
from tests.support.server import Server, Workspace, until
from tests.support.stream import Seen, Stream


def numbers(ids: list[str]) -> list[int]:
    return [int(event_id.partition(".")[2]) for event_id in ids]


def plain(messages: Iterable[Message]) -> Any:
    """Messages as the server's JSON has them."""
    return msgspec.json.decode(msgspec.json.encode(list(messages)))


def is_gapless(ids: list[str]) -> bool:
    found = numbers(ids)
    return found == list(range(found[0], found[0] + len(found)))


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with Client(Address(host="127.0.0.1", port=server.port), token=server.token) as made:
        yield made


async def until_end(stream: EventStream, run_id: str) -> list[Event]:
    """All that the stream gives, up to the end of the run."""
    seen = []
    async with asyncio.timeout(60):
        async for event in stream:
            seen.append(event)
            if isinstance(event.payload, RunComplete) and event.payload.run_id == run_id:
                break
    return seen


# ── connecting, and connecting again ──


def newer(known: str, seen: list[Seen]) -> str:
    """The id of the last event, once it is not the known one any more."""
    last_id = next((event.id for event in reversed(seen) if event.id), "")
    return last_id if last_id != known else ""


def test_e1_what_happens_while_a_client_subscribes_is_told_to_it_once(
    workspace: Workspace, new_run_id: NewRunId
) -> None:
    first = workspace.stream()
    run_ids: list[str] = []
    joined: list[tuple[str, Stream]] = []
    enough = threading.Event()

    def run() -> None:
        """There is something to be told for as long as somebody joins, however long that takes."""
        while not enough.is_set():
            run_id = new_run_id()
            workspace.prompt(workspace.session(), "hello", run_id=run_id)
            run_ids.append(run_id)

    with ThreadPoolExecutor(3) as pool:
        work = [pool.submit(run) for _ in range(3)]
        last_id = first.last_id
        try:
            for _ in range(8):
                last_id = first.wait_for(partial(newer, last_id))
                joined.append((last_id, workspace.stream(last_event_id=last_id)))
        finally:
            enough.set()
        for future in work:
            future.result()
    for run_id in run_ids:
        first.terminal(run_id)
    for last_id, stream in joined:
        stream.wait_for(lambda seen: first.last_id in [event.id for event in seen])
        assert is_gapless([last_id, *(event.id for event in stream.durable)])


@pytest.mark.anyio
async def test_e2_a_client_whose_connection_breaks_misses_and_repeats_nothing(
    server: Server, workspace: Workspace, new_run_id: NewRunId
) -> None:
    watching, run_id = workspace.stream(), new_run_id()
    session = workspace.session()
    watching.wait_for(lambda seen: watching.last_id)

    def decide(link: Link) -> Plan:
        return Plan(down=Way(after=300 + 400 * link.number, fault="cut"))

    with FaultProxy(server.port, decide) as proxy:
        async with Client(Address(host="127.0.0.1", port=proxy.port), token=server.token) as far:
            events = EventStream(far, workspace.id, last_event_id=watching.last_id, first_delay_s=0.001)
            async with events:
                workspace.prompt(session, ask("hello", {"text": "word ", "chunks": 40, "delay_ms": 1}), run_id=run_id)
                ids = [events.last_event_id]
                transcript = Transcript()
                async with asyncio.timeout(60):
                    async for event in events:
                        transcript.apply(event)
                        ids += [events.last_event_id] if events.last_event_id != ids[-1] else []
                        if isinstance(event.payload, RunComplete) and event.payload.run_id == run_id:
                            break
        assert proxy.struck > 3
    assert is_gapless(ids)
    assert plain(m for m in transcript if m.session_id == session) == workspace.messages(session)


@pytest.mark.anyio
async def test_e3_a_cursor_that_is_too_old_is_told_so_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        workspace = await site.workspace()
        for title in "abcdef":
            await workspace.sessions.create(title)
        site.store.trim_events(workspace.id, 2)
        path = f"/v1/workspaces/{workspace.id}/events?client_id={CLIENT}"
        watcher = Watcher(site, path, {"last-event-id": f"{workspace._parts.feed.epoch}.1"})
        await watcher.until(lambda: watcher.frames)
        await workspace.sessions.create("g")
        await watcher.until(lambda: watcher.ids)
        assert watcher.types == ["gap", "session"]
        (gap,) = watcher.of_type("gap")
        assert is_gapless(list(dict.fromkeys([gap["resume_from"], *watcher.ids])))


@pytest.mark.anyio
async def test_e3_the_client_then_gets_everything_as_it_is_now(
    workspace: Workspace, client: Client, new_run_id: NewRunId
) -> None:
    session, run_id = workspace.session(), new_run_id()
    workspace.prompt(session, "hello", run_id=run_id)
    workspace.ended(run_id)
    async with EventStream(client, workspace.id, session_id=session, last_event_id="1.1") as stream:
        async with asyncio.timeout(event_stream.HEARTBEAT_S / 2):  # without waiting for anything else to happen
            seen = [await anext(stream) for _ in range(4)]
    assert isinstance(seen[0].payload, Gap)
    assert plain(event.payload for event in seen[2:] if isinstance(event.payload, Message)) == workspace.messages(
        session
    )


@pytest.mark.anyio
async def test_e5_events_of_one_instant_have_ids_of_their_own_in_order() -> None:
    feed = Feed(epoch=7, last_seq=0)
    reader = Reader(feed)
    event = created(message("m", text("x"), finished=True))
    for seq in range(1, 2001):
        feed.publish(seq, event, encode_event(event))
    await asyncio.sleep(0)
    reader.take_all()
    assert numbers(reader.ids) == list(range(1, 2001))


@pytest.mark.anyio
async def test_e6_a_new_connection_has_the_options_of_the_first(
    workspace: Workspace, client: Client, new_run_id: NewRunId
) -> None:
    session, other = workspace.session(), workspace.session()
    async with EventStream(client, workspace.id, session_id=session) as stream:
        for _ in range(3):
            run_id = new_run_id()
            elsewhere = workspace.prompt(other, "not for everybody")["run_id"]
            workspace.prompt(session, "hello", run_id=run_id)
            seen = await until_end(stream, run_id)
            assert {event.session_id for event in seen} <= {session, ""}
            stream.reconnect()
            workspace.ended(elsewhere)


@pytest.mark.anyio
async def test_e7_who_comes_back_in_the_middle_of_an_answer_has_the_whole_of_it(
    workspace: Workspace, client: Client, model: FakeModel, new_run_id: NewRunId
) -> None:
    session, run_id = workspace.session(), new_run_id()
    transcript = Transcript()
    async with EventStream(client, workspace.id, session_id=session) as stream:
        reply = {"text": "{n} wörd 🐦 ", "chunks": 30, "gates": {"10": run_id, "20": f"{run_id}.more"}}
        workspace.prompt(session, ask("hello", reply), run_id=run_id)
        for gate, chunks in ((run_id, 10), (f"{run_id}.more", 20)):
            async with asyncio.timeout(60):
                while "".join(message.text for message in transcript).count("wörd") < chunks:
                    transcript.apply(await anext(stream))
            stream.reconnect()
            model.release(gate)
        for event in await until_end(stream, run_id):
            assert (change := transcript.apply(event)) is None or change.kind != "hole"
    assert plain(transcript) == workspace.messages(session)


# ── readers that are slow, or gone ──


@pytest.mark.anyio
async def test_e8_a_client_that_does_not_read_costs_neither_others_nor_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "LOG_BYTES", 100_000)
    feed = Feed(epoch=7, last_seq=0)
    begun = created(message("m", text("")))
    feed.publish(1, begun, encode_event(begun))
    idle, reader = Reader(feed), Reader(feed)
    for offset in range(0, 100_000, 10):
        feed.grow(delta("m", offset, "0123456789"))
        if offset % 1000 == 0:
            await asyncio.sleep(0)
            reader.take_all()
            assert feed._bytes < 200_000
    await asyncio.sleep(0)
    reader.take_all()
    assert reader.messages["m"] == ["0123456789" * 10_000]
    assert (idle.subscription.closed, reader.subscription.closed) == (True, False)


@pytest.mark.anyio
async def test_e9_a_slow_client_gets_all_of_the_text_in_fewer_pieces_and_the_end(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        workspace = await site.workspace()
        session = (await workspace.sessions.create("")).id
        path = f"/v1/workspaces/{workspace.id}/events?client_id={CLIENT}&deltas=1"
        slow = Watcher(site, path)
        await slow.until(lambda: slow.data)
        slow.hold()
        site.model.answer(*(f"{number} " for number in range(3000)))
        await workspace.runs.post(PostPrompt(session_id=session, prompt="hello", run_id="a"))
        run = await workspace.runs.get("a", wait_s=10)
        slow._reading.set()
        await slow.until(lambda: slow.of_type("run_complete"))
        pieces = slow.of_type("message_delta")
        assert 0 < len(pieces) < 1000
        assert "".join(piece["delta"] for piece in pieces) == run.text == slow.of_type("run_complete")[0]["text"]


@pytest.mark.anyio
async def test_e10_a_client_that_takes_nothing_for_too_long_is_gone(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        workspace = await site.workspace()
        watcher = Watcher(site, f"/v1/workspaces/{workspace.id}/events?client_id={CLIENT}")
        await watcher.until(lambda: watcher.data)
        watcher.hold()
        await workspace.sessions.create("nobody reads this")
        (stream,) = site.app.streams
        assert isinstance(stream, event_stream.Stream)
        while not stream.sending:
            await asyncio.sleep(0)
        stream.beat(stream.sent_at + event_stream.STALLED_S + 1)
        await watcher.until_end()
        assert (site.app.streams, workspace._parts.feed.readers) == (set(), 0)


@pytest.mark.larger
def test_e11_nothing_is_left_of_many_clients_that_came_and_went(server: Server, workspace: Workspace) -> None:
    request = (
        f"GET {workspace.path}/events?client_id={{}} HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {server.token}\r\n\r\n"
    )

    def fifty_come_and_go() -> None:
        sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
        for connection in sockets:
            connection.sendall(request.format(uuid.uuid4()).encode())
        for connection in sockets:
            assert connection.recv(1024).startswith(b"HTTP/1.1 200")
            connection.close()

    def settled() -> tuple[int, int]:
        until(lambda: server.metric("event_streams_open") == 0)
        return server.descriptors(), server.resident_bytes()

    fifty_come_and_go()
    descriptors, memory = settled()
    for _ in range(bound(4, 20)):
        fifty_come_and_go()
    settled()
    until(lambda: server.descriptors() <= descriptors + 2)  # the server has yet to see who hung up last
    assert server.resident_bytes() <= memory + 16 * 1024 * 1024


def test_e12_each_of_several_tabs_gets_every_event(workspace: Workspace, new_run_id: NewRunId) -> None:
    session, run_id = workspace.session(), new_run_id()
    tabs = [workspace.stream(session_id=session) for _ in range(3)]
    workspace.prompt(session, "hello", run_id=run_id)
    for tab in tabs:
        tab.terminal(run_id)
    assert tabs[0].durable == tabs[1].durable == tabs[2].durable


# ── nobody there ──


@pytest.mark.anyio
async def test_e13_a_client_that_cannot_connect_goes_on_trying_and_makes_up_no_end(
    server: Server, workspace: Workspace, new_run_id: NewRunId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt, "EventStream", partial(EventStream, first_delay_s=0.001))
    monkeypatch.setattr(prompt, "FIRST_DELAY_S", 0.001)
    monkeypatch.setattr(prompt, "TAIL_S", 0.1)
    session, run_id = workspace.session(), new_run_id()
    is_down = is_over = False

    def decide(link: Link) -> Plan:
        if is_over:  # an end that is longer than what gets through would never arrive
            return Plan()
        return Plan(down=Way(fault="cut")) if is_down else Plan(down=Way(after=3000, fault="cut"))

    request = PostPrompt(session_id=session, prompt=ask("hello", {**SILENCE, "chunks": 500}), run_id=run_id)
    accepted = asyncio.Event()
    with FaultProxy(server.port, decide) as proxy:
        async with Client(Address(host="127.0.0.1", port=proxy.port), token=server.token) as far:
            running = prompt.run_prompt(far, workspace.id, request, on_accepted=lambda receipt: accepted.set())
            answering = asyncio.create_task(running)
            await asyncio.wait_for(accepted.wait(), 30)
            is_down = True
            await asyncio.to_thread(proxy.wait_for, lambda: proxy.struck > 8)
            assert not answering.done()
            workspace.cancel(session)
            workspace.ended(run_id)
            is_over = True
            assert (await asyncio.wait_for(answering, 60)).cancelled


def test_e14_without_a_server_a_command_creates_nothing(server: Server, tmp_path: Path) -> None:
    with refusing_port() as port:
        code, out, err = finish(covey(server, "run", "hello", cwd=tmp_path, port=port))
    assert (code, out) == (exits.UNREACHABLE, "")
    assert "Start one with" in err
    assert list(tmp_path.iterdir()) == []


def test_e15_what_a_run_cost_is_known_to_who_was_away(workspace: Workspace, new_run_id: NewRunId) -> None:
    before, run_id = workspace.stream(), new_run_id()
    session = workspace.session()
    before.wait_for(lambda seen: before.last_id)
    before.close()
    workspace.prompt(session, ask("hello", {"usage": [1_000_000, 100_000]}), run_id=run_id)
    workspace.ended(run_id)
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000, "cost": 4.5}
    told = workspace.stream(last_event_id=before.last_id).terminal(run_id)["usage"]
    assert told == {**usage, "cached_tokens": 0}
    found = workspace.get(f"/sessions/{session}")
    assert {name: found[name] for name in usage} == usage
