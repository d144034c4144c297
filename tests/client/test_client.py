"""The client against a server that answers on command: every route, and every way in which an answer can be wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from covey.client.client import Client
from covey.client.errors import BadAnswer, ConnectionLost, ServerUnreachable
from covey.protocol.errors import ApiError, Conflict, NotFound, QueueFull, Unauthorized
from covey.protocol.paths import Address
from covey.protocol.requests import EditPrompt, ForkSession, PostPrompt, UndoTurns, UpdateSession
from tests.client.values import some_run, some_session, some_workspace, text_message
from tests.support.stub_server import StubServer, answer, cut, stall

pytestmark = pytest.mark.anyio

WORKSPACE = "/v1/workspaces/w1"
LANE = f"{WORKSPACE}/agent/sessions/s1"
RECEIPT = {"run_id": "r1", "session_id": "s1", "seq": 1, "state": "active"}
UNDONE = {"undone": [{"run_id": "r1", "prompt": "p"}], "restored": ["/a"], "removed_messages": 2}
CANCELLED = {"covered": [{"run_id": "r1", "state_found": "active"}], "mark": 4}
AGENT = {"is_busy": False, "is_ready": True, "model": None, "model_cfg": None}
CONFIG = {"models": {}, "providers": {}, "options": {"data_directory": "/d"}}
VERSION = {"version": "1", "commit": "", "build_id": "b", "python_version": "3", "platform": "linux"}


@pytest.fixture
async def server() -> AsyncIterator[StubServer]:
    async with StubServer() as stub:
        yield stub


@pytest.fixture
async def client(server: StubServer) -> AsyncIterator[Client]:
    async with Client(server.address, token="secret", client_id="c1") as made:
        yield made


Call = Callable[[Client], Awaitable[Any]]

ROUTES: list[tuple[Call, str, str, Any]] = [
    (lambda c: c.health(), "GET", "/v1/health", {"status": "ok"}),
    (lambda c: c.version(), "GET", "/v1/version", VERSION),
    (lambda c: c.control("shutdown"), "POST", "/v1/control", {}),
    (lambda c: c.goodbye(), "DELETE", "/v1/clients/c1", b""),
    (lambda c: c.metrics(), "GET", "/metrics", b"covey_runs 1\n"),
    (lambda c: c.openapi(), "GET", "/openapi.json", {"openapi": "3.1.0"}),
    (lambda c: c.workspaces(), "GET", "/v1/workspaces", [some_workspace()]),
    (lambda c: c.create_workspace("/project"), "POST", "/v1/workspaces", some_workspace()),
    (lambda c: c.workspace("w1"), "GET", WORKSPACE, some_workspace()),
    (lambda c: c.release_workspace("w1"), "DELETE", WORKSPACE, b""),
    (lambda c: c.set_current_session("w1", "s1"), "POST", f"{WORKSPACE}/current-session", b""),
    (lambda c: c.config("w1"), "GET", f"{WORKSPACE}/config", CONFIG),
    (lambda c: c.providers("w1"), "GET", f"{WORKSPACE}/providers", []),
    (lambda c: c.sessions("w1"), "GET", f"{WORKSPACE}/sessions", [some_session()]),
    (lambda c: c.create_session("w1", "t"), "POST", f"{WORKSPACE}/sessions", some_session()),
    (lambda c: c.session("w1", "s1"), "GET", f"{WORKSPACE}/sessions/s1", some_session()),
    (
        lambda c: c.update_session("w1", "s1", UpdateSession(title="new")),
        "PUT",
        f"{WORKSPACE}/sessions/s1",
        some_session(),
    ),
    (lambda c: c.delete_session("w1", "s1"), "DELETE", f"{WORKSPACE}/sessions/s1", b""),
    (lambda c: c.messages("w1", "s1"), "GET", f"{WORKSPACE}/sessions/s1/messages", [text_message("m1", "hi")]),
    (lambda c: c.undo("w1", "s1", UndoTurns()), "POST", f"{WORKSPACE}/sessions/s1/undo", UNDONE),
    (lambda c: c.fork("w1", "s1", ForkSession()), "POST", f"{WORKSPACE}/sessions/s1/fork", some_session()),
    (lambda c: c.agent("w1"), "GET", f"{WORKSPACE}/agent", AGENT),
    (lambda c: c.init_agent("w1"), "POST", f"{WORKSPACE}/agent/init", b""),
    (lambda c: c.update_agent("w1"), "POST", f"{WORKSPACE}/agent/update", b""),
    (lambda c: c.post_prompt("w1", PostPrompt(session_id="s1", prompt="p")), "POST", f"{WORKSPACE}/agent", RECEIPT),
    (lambda c: c.agent_session("w1", "s1"), "GET", LANE, some_session()),
    (lambda c: c.cancel_session("w1", "s1"), "POST", f"{LANE}/cancel", CANCELLED),
    (lambda c: c.summarize("w1", "s1"), "POST", f"{LANE}/summarize", RECEIPT),
    (lambda c: c.queued_count("w1", "s1"), "GET", f"{LANE}/prompts/queued", 2),
    (lambda c: c.queued_prompts("w1", "s1"), "GET", f"{LANE}/prompts/list", ["a", "b"]),
    (lambda c: c.clear_queue("w1", "s1"), "POST", f"{LANE}/prompts/clear", b""),
    (lambda c: c.edit_prompt("w1", "s1", "r1", EditPrompt(prompt="x")), "PATCH", f"{LANE}/prompts/r1", some_run()),
    (lambda c: c.drop_prompt("w1", "s1", "r1"), "DELETE", f"{LANE}/prompts/r1", b""),
    (lambda c: c.runs("w1", session_id="s1", state="active"), "GET", f"{WORKSPACE}/runs", [some_run()]),
    (lambda c: c.run("w1", "r1", wait=5), "GET", f"{WORKSPACE}/runs/r1", some_run()),
    (lambda c: c.cancel_run("w1", "r1"), "POST", f"{WORKSPACE}/runs/r1/cancel", CANCELLED),
    (lambda c: c.skips_permissions("w1"), "GET", f"{WORKSPACE}/permissions/skip", {"skip": True}),
    (lambda c: c.skip_permissions("w1", True), "POST", f"{WORKSPACE}/permissions/skip", b""),
    (lambda c: c.permissions("w1"), "GET", f"{WORKSPACE}/permissions", []),
    (
        lambda c: c.answer_permission("w1", "p1", "deny"),
        "POST",
        f"{WORKSPACE}/permissions/grant",
        {"resolved": True},
    ),
    (lambda c: c.questions("w1"), "GET", f"{WORKSPACE}/questions", []),
    (lambda c: c.answer_questions("w1", "q1", ()), "POST", f"{WORKSPACE}/questions/answer", {"resolved": True}),
    (lambda c: c.refuse_questions("w1", "q1"), "POST", f"{WORKSPACE}/questions/cancel", {"resolved": True}),
]


@pytest.mark.parametrize(("call", "method", "path", "body"), ROUTES, ids=[f"{m} {p}" for _, m, p, _ in ROUTES])
async def test_route(server: StubServer, client: Client, call: Call, method: str, path: str, body: Any) -> None:
    server.on(method, path, answer(200, body))
    await call(client)
    (request,) = server.requests
    assert (request.method, request.path) == (method, path)
    assert request.headers["authorization"] == "Bearer secret"
    assert (request.headers.get("content-type") == "application/json") == bool(request.body)


async def test_answers_are_values(server: StubServer, client: Client) -> None:
    server.on("POST", "/v1/workspaces", answer(200, some_workspace()))
    server.on("GET", f"{WORKSPACE}/sessions/s1/messages", answer(200, [text_message("m1", "hi")]))
    server.on("POST", f"{LANE}/cancel", answer(200, CANCELLED))
    assert await client.create_workspace("/project", env={"A": "1"}) == some_workspace()
    assert server.requests[0].json() == {"path": "/project", "client_id": "c1", "env": {"A": "1"}}
    assert await client.messages("w1", "s1", after="m0", limit=3) == (text_message("m1", "hi"),)
    assert server.requests[1].query == {"after": "m0", "limit": "3"}
    receipt = await client.cancel_session("w1", "s1")
    assert (receipt.mark, receipt.covered[0].run_id) == (4, "r1")


async def test_only_given_fields_of_a_session_are_sent(server: StubServer, client: Client) -> None:
    server.on("PUT", f"{WORKSPACE}/sessions/s1", answer(200, some_session()))
    await client.update_session("w1", "s1", UpdateSession(title="new"))
    assert server.requests[0].json() == {"title": "new"}


async def test_a_workspace_that_was_released_is_joined_again_as_before(server: StubServer, client: Client) -> None:
    server.on("POST", "/v1/workspaces", answer(200, some_workspace()))
    await client.create_workspace("/project", env={"A": "1"})
    server.on("POST", "/v1/workspaces", answer(200, some_workspace("w2")))
    assert await client.rejoin("w1") == "w2"
    assert server.requests[0].body == server.requests[1].body
    assert await client.rejoin("another") == "another" and len(server.requests) == 2, "it was never joined"


async def test_the_long_poll_asks_for_no_more_than_the_server_grants(server: StubServer, client: Client) -> None:
    server.on("GET", f"{WORKSPACE}/runs/r1", answer(200, some_run()))
    await client.run("w1", "r1")
    await client.run("w1", "r1", wait=1000)
    assert [request.query for request in server.requests] == [{}, {"wait": "60"}]


async def test_an_id_cannot_leave_its_place_in_the_path(server: StubServer, client: Client) -> None:
    with pytest.raises(NotFound):
        await client.delete_session("w1", "../../x?y=1")
    assert server.requests[0].path == f"{WORKSPACE}/sessions/../../x?y=1"
    assert server.requests[0].query == {"client_id": "c1"}, "who does it"


@pytest.mark.parametrize(
    ("status", "body", "error", "code", "message"),
    [
        (404, b'{"message": "gone", "code": "run_not_found"}', NotFound, "run_not_found", "gone"),
        (409, b'{"message": "closing", "code": "workspace_closing"}', Conflict, "workspace_closing", "closing"),
        (401, b"", Unauthorized, "unauthorized", "the server answered 401 with an empty body"),
        (404, b"<html>no</html>", NotFound, "not_found", "the server answered 404: <html>no</html>"),
        (400, b'{"message": ', ApiError, "invalid_request", 'the server answered 400: {"message":'),
        (500, b'{"message": 7}', ApiError, "internal", 'the server answered 500: {"message": 7}'),
        (418, b"\xff\xfe", ApiError, "internal", "the server answered 418: \ufffd\ufffd"),
        (302, b"", ApiError, "internal", "the server answered 302 with an empty body"),
    ],
)
async def test_errors(
    server: StubServer, client: Client, status: int, body: bytes, error: type[ApiError], code: str, message: str
) -> None:
    server.on("GET", "/v1/health", answer(status, body))
    with pytest.raises(error) as caught:
        await client.health()
    assert (caught.value.code, str(caught.value)) == (code, message)


async def test_retry_after_is_kept(server: StubServer, client: Client) -> None:
    server.on("POST", f"{WORKSPACE}/agent", answer(429, {"message": "full", "code": "queue_full", "retry_after": 2.5}))
    with pytest.raises(QueueFull) as caught:
        await client.post_prompt("w1", PostPrompt(session_id="s1", prompt="p"))
    assert caught.value.retry_after == 2.5


@pytest.mark.parametrize("body", [b"", b"<html>hello</html>", b'{"status": 1}', b'{"status": "ok"', b"\xff"])
async def test_a_success_that_cannot_be_read(server: StubServer, client: Client, body: bytes) -> None:
    server.on("GET", "/v1/health", answer(200, body, "text/html"))
    with pytest.raises(BadAnswer, match="cannot be read"):
        await client.health()


async def test_nobody_listens_on_the_port(server: StubServer) -> None:
    address = server.address
    await server.stop()
    async with Client(address) as client:
        with pytest.raises(ServerUnreachable, match=r"covey serve --host tcp://127\.0\.0\.1:\d+") as caught:
            await client.health()
    assert not isinstance(caught.value, ConnectionLost)
    await server.start()


async def test_nobody_listens_on_the_socket(tmp_path: Path) -> None:
    async with Client(Address(path=str(tmp_path / "none.sock"))) as client:
        with pytest.raises(ServerUnreachable, match="covey serve"):
            await client.health()


async def test_a_connection_that_is_cut(server: StubServer, client: Client) -> None:
    server.on("GET", "/v1/health", cut)
    with pytest.raises(ConnectionLost, match="broke before it answered"):
        await client.health()


async def test_an_answer_that_never_comes(server: StubServer) -> None:
    server.on("GET", "/v1/health", stall)
    async with Client(server.address, answer_s=0.05) as client:
        with pytest.raises(ConnectionLost, match="nothing was heard"):
            await client.health()


async def test_unix_socket(tmp_path: Path) -> None:
    async with StubServer(tmp_path / "s.sock") as server:
        server.on("GET", "/v1/health", answer(200, {"status": "ok"}))
        async with Client.connect(f"unix://{tmp_path}/s.sock") as client:
            assert (await client.health()).status == "ok"
    (request,) = server.requests
    assert request.headers["host"] == "localhost"
    assert "authorization" not in request.headers


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch, server: StubServer) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.on("GET", "/v1/health", answer(200, {"status": "ok"}))
    async with Client(server.address) as client:
        assert (await client.health()).status == "ok"


async def test_one_client_may_ask_many_things_at_once(server: StubServer, client: Client) -> None:
    server.on("GET", "/v1/health", answer(200, {"status": "ok"}))
    answers = await asyncio.gather(*(client.health() for _ in range(30)))
    assert len(answers) == 30
