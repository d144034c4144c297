"""Requests without a socket: whatever an application does or leaves undone, a client sees what it would over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from covey.client.errors import Closed
from covey.client.transport import TransportFailed
from covey.in_process.transport import AHEAD_BYTES, InProcessTransport

pytestmark = pytest.mark.anyio

HEAD = {"type": "http.response.start", "status": 200, "headers": [(b"Content-Type", b"text/plain")]}
SOON_S = 30.0


async def test_a_request_arrives_as_it_was_sent_and_its_answer_as_it_was_given() -> None:
    seen: dict[str, Any] = {}

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.update(scope, body=(await receive())["body"])
        await send({**HEAD, "status": 418})
        await send({"type": "http.response.body", "body": b"a te", "more_body": True})
        await send({"type": "http.response.body", "body": b"apot"})

    transport = InProcessTransport(application)
    where = "/v1/w%C3%B6rd%2F?q=1%202"
    answer = await transport.request("POST", where, b"{}", headers={"X-One": "two"}, timeout_s=SOON_S)
    assert (answer.status, answer.headers, answer.body) == (418, {"content-type": "text/plain"}, b"a teapot")
    assert (seen["method"], seen["path"], seen["query_string"], seen["body"]) == (
        "POST",
        "/v1/wörd/",
        b"q=1%202",
        b"{}",
    )
    assert {(b"x-one", b"two"), (b"content-length", b"2")} <= set(seen["headers"])


async def test_an_application_that_says_nothing_or_stops_halfway_fails_the_request() -> None:
    left = asyncio.Event()

    async def silent(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        assert (await receive())["type"] == "http.disconnect"
        left.set()

    with pytest.raises(TransportFailed, match="too long"):
        await InProcessTransport(silent).request("GET", "/", headers={}, timeout_s=0.01)
    await left.wait()

    async def half(scope: Any, receive: Any, send: Any) -> None:
        await send(HEAD)
        await send({"type": "http.response.body", "body": b"half", "more_body": True})

    answer = await InProcessTransport(half).open("GET", "/", headers={}, timeout_s=SOON_S)
    assert await answer.read(SOON_S) == b"half"
    with pytest.raises(TransportFailed, match="ended it"):
        await answer.read(SOON_S)


async def test_an_answer_waits_for_its_reader_and_ends_when_that_leaves() -> None:
    given = 0
    ended = asyncio.Event()

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        nonlocal given
        await send(HEAD)
        while given < 1_000:
            await send({"type": "http.response.body", "body": bytes(AHEAD_BYTES // 4), "more_body": True})
            given += 1
        ended.set()

    answer = await InProcessTransport(endless).open("GET", "/", headers={}, timeout_s=SOON_S)
    for _ in range(20):
        await asyncio.sleep(0)
    assert given == 4
    assert len(await answer.read(SOON_S)) > AHEAD_BYTES
    answer.close()
    await ended.wait()
    with pytest.raises(TransportFailed, match="closed"):
        await answer.read(SOON_S)


async def test_at_the_end_every_client_is_sent_away_and_nothing_is_left_running() -> None:
    async def waiting(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await receive()

    transport = InProcessTransport(waiting)
    asking = asyncio.create_task(transport.request("GET", "/", headers={}, timeout_s=SOON_S))
    await asyncio.sleep(0)
    await transport.end()
    with pytest.raises(TransportFailed):
        await asking
    with pytest.raises(Closed):
        await transport.request("GET", "/", headers={}, timeout_s=SOON_S)
