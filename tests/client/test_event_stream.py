"""The event stream against a server that cuts, stalls, forgets and restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from covey.client.client import Client
from covey.client.errors import BadAnswer, ServerUnreachable
from covey.client.event_stream import LONGEST_DELAY_S, EventStream
from covey.client.transcript import Transcript
from covey.protocol.errors import Conflict, NotFound, Unauthorized
from covey.protocol.events import Event, Gap, created, updated
from covey.protocol.runs import RunComplete
from tests.client.values import run_complete, some_session, some_workspace, text_delta, text_message
from tests.support.stub_server import Connection, Handler, Request, StubServer, answer, cut, in_turn, stall

pytestmark = pytest.mark.anyio

EVENTS = "/v1/workspaces/w1/events"
SOON_S = 0.001


@pytest.fixture
async def server() -> AsyncIterator[StubServer]:
    async with StubServer() as stub:
        stub.on("GET", "/v1/workspaces/w1/sessions", answer(200, [some_session("s1"), some_session("s2")]))
        stub.on("GET", "/v1/workspaces/w1/sessions/s1/messages", answer(200, [text_message("m1", "now")]))
        yield stub


@pytest.fixture
async def client(server: StubServer) -> AsyncIterator[Client]:
    async with Client(server.address, client_id="c1") as made:
        yield made


def serving(*events: tuple[Event, int | None], end: str = "stay") -> Handler:
    """A stream of these events, with their sequence numbers; then it stays open, ends or is cut."""

    async def handler(request: Request, connection: Connection) -> None:
        await connection.begin_events()
        for event, seq in events:
            await connection.event(event, seq)
        if end == "stay":
            await stall(request, connection)
        if end == "end":
            await connection.end_events()
        connection.cut()

    return handler


async def take(stream: EventStream, count: int) -> list[Event]:
    async with asyncio.timeout(30):
        return [await anext(stream) for _ in range(count)]


def following(client: Client, **options: object) -> EventStream:
    return EventStream(client, "w1", first_delay_s=SOON_S, **options)  # type: ignore[arg-type]


FIRST = created(text_message("m1", "Hel"))
SECOND = updated(text_message("m1", "Hello"))
LAST = created(run_complete(text="Hello"))


async def test_entering_connects_and_events_are_typed(server: StubServer, client: Client) -> None:
    server.on("GET", EVENTS, serving((FIRST, 1), (updated(text_delta("m1", 3, "lo")), None), (LAST, 2)))
    async with following(client, session_id="s1") as stream:
        assert stream.connected
        assert len(server.asked("GET", EVENTS)) == 1
        assert await take(stream, 3) == [FIRST, updated(text_delta("m1", 3, "lo")), LAST]
        assert stream.last_event_id == "1.2"
    (request,) = server.asked("GET", EVENTS)
    assert request.query == {"client_id": "c1", "deltas": "1", "session_id": "s1"}
    assert "accept-encoding" not in request.headers


@pytest.mark.parametrize("end", ["end", "cut"])
async def test_it_resumes_behind_the_last_event_with_the_same_options(
    server: StubServer, client: Client, end: str
) -> None:
    server.on("GET", EVENTS, in_turn(serving((FIRST, 1), (SECOND, 2), end=end), serving((LAST, 3))))
    seen: list[bool] = []
    async with following(client, session_id="s1", on_connection=lambda up, why: seen.append(up)) as stream:
        assert await take(stream, 3) == [FIRST, SECOND, LAST]
    first, second = server.asked("GET", EVENTS)
    assert "last-event-id" not in first.headers
    assert second.headers["last-event-id"] == "1.2"
    assert second.query == first.query
    assert seen == [True, False, True]


async def test_events_that_the_reader_has_not_been_given_are_not_counted(server: StubServer, client: Client) -> None:
    server.on("GET", EVENTS, serving((FIRST, 1), (SECOND, 2), (LAST, 3)))
    async with following(client) as stream:
        await take(stream, 1)
        assert stream.last_event_id == "1.1"
        stream.reconnect()
        await take(stream, 1)
    assert server.asked("GET", EVENTS)[1].headers["last-event-id"] == "1.1"


async def test_a_frame_cut_in_the_middle_is_not_an_event(server: StubServer, client: Client) -> None:
    async def half(request: Request, connection: Connection) -> None:
        await connection.begin_events()
        await connection.event(FIRST, 1)
        await connection.raw_event(b'id: 1.2\ndata: {"type":"run_complete","payl')
        connection.cut()

    server.on("GET", EVENTS, in_turn(half, serving((LAST, 2))))
    async with following(client) as stream:
        assert await take(stream, 2) == [FIRST, LAST]
    assert server.asked("GET", EVENTS)[1].headers["last-event-id"] == "1.1"


async def test_a_stream_of_single_bytes(server: StubServer, client: Client) -> None:
    async def dribble(request: Request, connection: Connection) -> None:
        await connection.begin_events()
        text = 'id: 1.1\r\ndata: {"type":"run_complete","payload":{"type":"created","payload":'
        text += '{"session_id":"s1","run_id":"r1","message_id":"m1","text":"é😀"}}}\r\n\r\n'
        for byte in text.encode():
            await connection.raw_event(bytes([byte]))
        await stall(request, connection)

    server.on("GET", EVENTS, dribble)
    async with following(client) as stream:
        (event,) = await take(stream, 1)
    assert event == created(run_complete(text="é😀"))


async def test_silence_is_a_dead_connection(server: StubServer, client: Client) -> None:
    server.on("GET", EVENTS, in_turn(serving((FIRST, 1)), serving((LAST, 2))))
    why: list[str] = []
    async with following(client, silence_s=1.5, on_connection=lambda up, reason: why.append(reason)) as stream:
        assert await take(stream, 2) == [FIRST, LAST]
    assert "nothing was heard" in why[1]


async def test_comments_keep_a_quiet_connection_alive(server: StubServer, client: Client) -> None:
    async def quiet(request: Request, connection: Connection) -> None:
        await connection.begin_events()
        for _ in range(18):
            await asyncio.sleep(0.1)
            await connection.raw_event(b": keep-alive\n\n")
        await connection.event(LAST, 1)
        await stall(request, connection)

    server.on("GET", EVENTS, quiet)
    async with following(client, silence_s=1.5) as stream:
        assert await take(stream, 1) == [LAST]
    assert len(server.asked("GET", EVENTS)) == 1


async def test_events_of_unknown_types_are_passed_over(server: StubServer, client: Client) -> None:
    async def newer(request: Request, connection: Connection) -> None:
        await connection.begin_events()
        await connection.raw_event(b'id: 1.1\ndata: {"type":"hologram","payload":{"type":"created","payload":{}}}\n\n')
        await connection.event(LAST, 2)
        await stall(request, connection)

    server.on("GET", EVENTS, newer)
    async with following(client) as stream:
        assert await take(stream, 1) == [LAST]


async def test_a_gap_is_reported_and_repaired(server: StubServer, client: Client) -> None:
    gap = created(Gap(reason="too old", resume_from="2.7"))
    server.on("GET", EVENTS, in_turn(serving((FIRST, 1), end="cut"), serving((gap, None), (LAST, 8))))
    transcript = Transcript()
    async with following(client, session_id="s1") as stream:
        events = await take(stream, 5)
        assert stream.last_event_id == "1.8"
    for event in events:
        transcript.apply(event)
    assert [type(event.payload).__name__ for event in events] == ["Message", "Gap", "Session", "Message", "RunComplete"]
    assert list(transcript) == [text_message("m1", "now")]


async def test_after_a_gap_it_resumes_where_the_gap_ended(server: StubServer, client: Client) -> None:
    gap = created(Gap(reason="too old", resume_from="2.7"))
    server.on(
        "GET", EVENTS, in_turn(serving((FIRST, 1), end="cut"), serving((gap, None), end="cut"), serving((LAST, 8)))
    )
    async with following(client, session_id="s1") as stream:
        events = await take(stream, 5)
    assert isinstance(events[-1].payload, RunComplete)
    assert server.asked("GET", EVENTS)[2].headers["last-event-id"] == "2.7"


async def test_without_a_session_only_what_was_seen_is_reloaded(server: StubServer, client: Client) -> None:
    gap = created(Gap(reason="too old", resume_from="2.7"))
    server.on("GET", EVENTS, in_turn(serving((FIRST, 1), end="cut"), serving((gap, None), (LAST, 8))))
    async with following(client) as stream:
        events = await take(stream, 6)
    assert [event.session_id for event in events] == ["s1", "", "s1", "s2", "s1", "s1"]


async def test_a_reload_that_fails_is_done_after_the_next_connection(server: StubServer, client: Client) -> None:
    gap = created(Gap(reason="too old", resume_from="2.7"))
    server.on("GET", EVENTS, in_turn(serving((FIRST, 1), end="cut"), serving((gap, None)), serving((LAST, 8))))
    sessions = answer(200, [some_session("s1")])
    server.on("GET", "/v1/workspaces/w1/sessions", in_turn(cut, answer(500), sessions))
    async with following(client, session_id="s1") as stream:
        events = await take(stream, 5)
    assert [type(event.payload).__name__ for event in events] == ["Message", "Gap", "Session", "Message", "RunComplete"]


async def test_an_event_that_cannot_be_read_is_a_gap(server: StubServer, client: Client) -> None:
    async def broken(request: Request, connection: Connection) -> None:
        await connection.begin_events()
        await connection.event(FIRST, 1)
        await connection.raw_event(b'id: 1.2\ndata: {"type":"message","payload":{"type":"updated","payload":{}}}\n\n')
        await connection.event(LAST, 3)
        await stall(request, connection)

    server.on("GET", EVENTS, broken)
    async with following(client, session_id="s1") as stream:
        events = await take(stream, 5)
    kinds = [type(event.payload).__name__ for event in events]
    assert kinds == ["Message", "Gap", "Session", "Message", "RunComplete"]


async def test_a_cut_before_the_first_event_id_is_a_gap(server: StubServer, client: Client) -> None:
    """Nothing tells the server where to resume, so whatever happened meanwhile must be reloaded."""
    server.on("GET", EVENTS, in_turn(serving(end="cut"), serving((LAST, 8))))
    async with following(client, session_id="s1") as stream:
        events = await take(stream, 4)
    assert [type(event.payload).__name__ for event in events] == ["Gap", "Session", "Message", "RunComplete"]


async def test_it_survives_a_restart_and_joins_the_workspace_again(server: StubServer, client: Client) -> None:
    gone = answer(404, {"message": "no such workspace", "code": "workspace_not_found"})
    server.on("POST", "/v1/workspaces", in_turn(answer(200, some_workspace()), answer(200, some_workspace("w2"))))
    server.on("GET", EVENTS, in_turn(serving((FIRST, 1), end="cut"), answer(503), cut, answer(500, b"<html>"), gone))
    server.on("GET", "/v1/workspaces/w2/events", serving((LAST, 2)))
    await client.create_workspace("/project")
    async with following(client, session_id="s1") as stream:
        assert await take(stream, 2) == [FIRST, LAST]
        assert stream.workspace_id == "w2"
    (request,) = server.asked("GET", "/v1/workspaces/w2/events")
    assert request.headers["last-event-id"] == "1.1"


async def test_whoever_connects_again_says_first_who_it_is_as_a_server_that_was_started_anew_does_not_know(
    server: StubServer,
) -> None:
    server.on(
        "POST", "/v1/workspaces", in_turn(answer(200, some_workspace()), answer(400), answer(200, some_workspace()))
    )
    server.on(
        "GET", EVENTS, in_turn(serving((FIRST, 1), end="cut"), serving((SECOND, 2), end="cut"), serving((LAST, 3)))
    )
    async with Client(server.address, client_id="c1", name="ann", kind="tui") as client:
        await client.create_workspace("/project", env={"A": "1"})
        async with following(client) as stream:
            assert await take(stream, 3) == [FIRST, SECOND, LAST], "nor does it matter if it cannot be joined"
    joins = server.asked("POST", "/v1/workspaces")
    assert [request.json()["client_name"] for request in joins] == ["ann"] * 3
    assert [request.json() for request in joins[1:]] == [joins[0].json()] * 2
    order = [request.method for request in server.requests]
    assert order == ["POST", "GET", "POST", "GET", "POST", "GET"]


async def test_a_workspace_that_nobody_knows_is_not_waited_for(server: StubServer, client: Client) -> None:
    gone = answer(404, {"message": "no such workspace", "code": "workspace_not_found"})
    server.on("GET", EVENTS, in_turn(serving((FIRST, 1), end="cut"), gone))
    async with following(client) as stream:
        await take(stream, 1)
        with pytest.raises(NotFound):
            await take(stream, 1)


async def test_it_tries_for_ever_and_asks_for_the_server_to_be_revived(server: StubServer, client: Client) -> None:
    server.on("GET", EVENTS, in_turn(serving((FIRST, 1), end="cut"), serving((LAST, 2))))
    port = server.address.port
    attempts = 0

    async def revive() -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 5:
            await server.start(port)
        else:
            raise ServerUnreachable("not yet")

    client.revive = revive
    async with following(client) as stream:
        assert await take(stream, 1) == [FIRST]
        await server.stop()
        assert await take(stream, 1) == [LAST]
    assert attempts == 5


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (401, "unauthorized", Unauthorized),
        (404, "session_not_found", NotFound),
        (409, "client_retired", Conflict),
    ],
)
async def test_what_no_waiting_will_change_is_raised(
    server: StubServer, client: Client, status: int, code: str, error: type[Exception]
) -> None:
    refusal = answer(status, {"message": "no", "code": code})
    server.on("GET", EVENTS, in_turn(serving((FIRST, 1), end="cut"), refusal))
    async with following(client) as stream:
        await take(stream, 1)
        with pytest.raises(error):
            await take(stream, 1)


async def test_the_first_connection_fails_at_once(server: StubServer, client: Client) -> None:
    with pytest.raises(NotFound):
        await following(client).__aenter__()
    server.on("GET", EVENTS, answer(200, b"<html>", "text/html"))
    with pytest.raises(BadAnswer, match="where events were expected"):
        await following(client).__aenter__()


async def test_pauses_grow_up_to_a_bound_and_an_event_resets_them(
    server: StubServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def longest(low: float, high: float) -> float:
        pauses.append(stream._delay_s)
        return 0.0

    monkeypatch.setattr("covey.client.event_stream.random.uniform", longest)
    server.on("GET", EVENTS, in_turn(serving((FIRST, 1), end="cut"), *[cut] * 9, serving((LAST, 2), end="cut")))
    stream = EventStream(client, "w1")
    async with stream:
        await take(stream, 3)
    assert pauses[:8] == [0.5, 1, 2, 4, 8, LONGEST_DELAY_S, LONGEST_DELAY_S, LONGEST_DELAY_S]
    assert pauses[10] == 0.5


async def test_hurry_ends_a_pause(server: StubServer, client: Client) -> None:
    server.on("GET", EVENTS, in_turn(serving((FIRST, 1), end="cut"), serving((LAST, 2))))
    lost = asyncio.Event()

    def on_connection(connected: bool, why: str) -> None:
        if not connected:
            lost.set()

    stream = EventStream(client, "w1", first_delay_s=3600, on_connection=on_connection)
    async with stream:
        reading = asyncio.create_task(take(stream, 2))
        await lost.wait()
        while not reading.done():
            stream.hurry()
            await asyncio.sleep(0)
        assert await reading == [FIRST, LAST]


async def test_a_reader_that_was_cancelled_can_go_on(server: StubServer, client: Client) -> None:
    server.on("GET", EVENTS, in_turn(serving((FIRST, 1)), serving((LAST, 2))))
    async with following(client) as stream:
        await take(stream, 1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await anext(stream)
        assert await take(stream, 1) == [LAST]


async def test_leaving_closes_the_connection(server: StubServer, client: Client) -> None:
    gone = asyncio.Event()

    async def watched(request: Request, connection: Connection) -> None:
        await connection.begin_events()
        try:
            while True:
                await connection.raw_event(b": keep-alive\n\n")
                await asyncio.sleep(0.005)
        except ConnectionError:
            gone.set()

    server.on("GET", EVENTS, watched)
    async with following(client):
        pass
    async with asyncio.timeout(30):
        await gone.wait()
