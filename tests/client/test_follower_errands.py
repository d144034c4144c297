"""What a follower has under way: each load once, sends in order, and nothing left when it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from covey.client.client import Client
from covey.client.follower import Follower
from covey.client.view.view import View
from covey.protocol.errors import Unauthorized
from covey.protocol.requests import PostPrompt
from tests.client.values import some_session
from tests.support.stub_server import Connection, Handler, Request, StubServer, answer, cut, in_turn, stall

pytestmark = pytest.mark.anyio

W = "/v1/workspaces/w1"
BUSY = answer(503, {"message": "the disk is full", "code": "store_unavailable"})
WORKSPACE = {
    "id": "w1",
    "path": "/w",
    "yolo": False,
    "data_dir": "/d",
    "version": "1",
    "config": {"models": {}, "providers": {}, "options": {"data_directory": "/d"}},
}


async def stay(request: Request, connection: Connection) -> None:
    """A stream on which nothing happens."""
    await connection.begin_events()
    await stall(request, connection)


@pytest.fixture
async def server() -> AsyncIterator[StubServer]:
    async with StubServer() as stub:
        stub.on("GET", f"{W}/(runs|permissions|questions|sessions/s1/messages)", answer(200, []))
        stub.on("GET", f"{W}/sessions", answer(200, [some_session("s1")]))
        stub.on("GET", W, answer(200, WORKSPACE))
        stub.on("POST", f"{W}/current-session", answer(200, {}))
        stub.on("GET", f"{W}/events", stay)
        yield stub


@pytest.fixture
async def client(server: StubServer) -> AsyncIterator[Client]:
    async with Client(server.address, client_id="c1") as made:
        yield made


def following(client: Client) -> Follower:
    return Follower(client, "w1", session_id="s1", first_delay_s=0.01)


def is_loaded(view: View) -> bool:
    return not any(view.loads)


def receipt(run_id: str) -> Handler:
    return answer(202, {"run_id": run_id, "session_id": "s1", "seq": 1, "state": "queued"})


async def test_each_load_is_one_request_and_one_that_fails_is_made_again(server: StubServer, client: Client) -> None:
    server.on("GET", f"{W}/sessions", in_turn(BUSY, cut, answer(200, [some_session("s1")])))
    async with following(client) as follower:
        await follower.until(is_loaded)
    assert len(server.asked("GET", f"{W}/sessions")) == 3
    assert len(server.asked("GET", f"{W}/sessions/s1/messages")) == len(server.asked("GET", W)) == 1
    assert len([request for request in server.asked("GET", f"{W}/runs") if "state" not in request.query]) == 2


async def test_a_load_that_is_asked_for_again_takes_the_place_of_the_one_under_way(
    server: StubServer, client: Client
) -> None:
    server.on("GET", f"{W}/sessions/s1/messages", in_turn(stall, answer(200, [])))
    async with following(client) as follower:
        await server.wait_for("GET", f"{W}/sessions/s1/messages")
        follower.open("")
        follower.open("s1")
        await follower.until(is_loaded)
    assert len(server.asked("GET", f"{W}/sessions/s1/messages")) == 2


async def test_prompts_and_cancels_of_a_session_are_sent_one_after_the_other(
    server: StubServer, client: Client
) -> None:
    go = asyncio.Event()

    async def when_it_may(request: Request, connection: Connection) -> None:
        await go.wait()
        await receipt(request.json()["run_id"])(request, connection)

    server.on("POST", f"{W}/agent", when_it_may)
    server.on("POST", f"{W}/agent/sessions/s1/cancel", answer(200, {"covered": [], "mark": 2}))
    async with following(client) as follower:
        await follower.until(is_loaded)
        for run_id in ("r1", "r2"):
            follower.post(PostPrompt(prompt="hello", run_id=run_id))
        follower.cancel()
        await server.wait_for("POST", f"{W}/agent")
        assert [request.json()["run_id"] for request in server.asked("POST", f"{W}/agent")] == ["r1"]
        go.set()
        await follower.until(lambda view: not view.outbox.cancels)
    sent = [request.path.removeprefix(W) for request in server.requests if request.method == "POST"]
    assert [path for path in sent if path.startswith("/agent")] == ["/agent", "/agent", "/agent/sessions/s1/cancel"]


async def test_a_cancel_does_not_wait_for_a_prompt_that_cannot_be_sent(server: StubServer, client: Client) -> None:
    server.on("POST", f"{W}/agent", BUSY)
    server.on("POST", f"{W}/agent/sessions/s1/cancel", answer(200, {"covered": [], "mark": 2}))
    async with following(client) as follower:
        await follower.until(is_loaded)
        follower.post(PostPrompt(prompt="hello", run_id="r1"))
        follower.cancel()
        await follower.until(lambda view: not view.outbox.cancels)
        assert follower.view.outbox.prompts["r1"].state == "sending"
        server.on("POST", f"{W}/agent", receipt("r1"))
        await follower.until(lambda view: view.outbox.prompts["r1"].state == "accepted")


async def test_closing_ends_everything_that_is_under_way(server: StubServer, client: Client) -> None:
    server.on("GET", f"{W}/(runs|permissions|sessions)", stall)
    server.on("POST", f"{W}/(agent|permissions/grant)", stall)
    before = asyncio.all_tasks()
    async with following(client) as follower:
        follower.post(PostPrompt(prompt="hello", run_id="r1"))
        follower.answer_permission("p1", "allow")
        await server.wait_for("POST", f"{W}/agent")
        await server.wait_for("POST", f"{W}/permissions/grant")
        await server.wait_for("GET", f"{W}/sessions")
    ours = {task for task in asyncio.all_tasks() - before if "_serve" not in repr(task.get_coro())}
    assert ours == set()


async def test_what_no_waiting_changes_is_raised_where_the_face_waits(server: StubServer, client: Client) -> None:
    refused = answer(401, {"message": "the token is wrong", "code": "unauthorized"})
    server.on("GET", f"{W}/events", in_turn(cut_after_the_head, refused))
    with pytest.raises(Unauthorized):
        async with following(client) as follower:
            await follower.until(lambda view: False)


async def cut_after_the_head(request: Request, connection: Connection) -> None:
    await connection.begin_events()
    connection.cut()


async def test_a_session_accepts_edits_before_its_run_hears_that_this_one_is_allowed(
    server: StubServer, client: Client
) -> None:
    server.on("PUT", f"{W}/sessions/s1", answer(200, some_session("s1")))
    server.on("POST", f"{W}/permissions/grant", stall)
    async with following(client) as follower:
        follower.allow_edits("p1", "s1")
        await server.wait_for("POST", f"{W}/permissions/grant")
    sent = [request for request in server.requests if request.path in (f"{W}/sessions/s1", f"{W}/permissions/grant")]
    assert [request.method for request in sent] == ["PUT", "POST"]
    assert sent[0].json() == {"mode": "accept_edits"}
