"""Requests at a node that does not own their workspace (N1): the answer is the owner's, byte for byte, in one hop."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from covey.cluster.whereabouts import Nobody
from covey.server import front_door
from covey.server.membership import Ask, sign
from tests.server.fake_owner import fake_owner, freeze, hang_up, in_turn, reply
from tests.server.nodes_in_process import SECRET, Node, Table, node, two_nodes, until
from tests.server.site import CLIENT
from tests.support.engine import within

pytestmark = pytest.mark.anyio
PROMPT = {"session_id": "s", "prompt": "hello"}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_door, "BEYOND_LEASE_S", 0.0)


async def test_an_answer_is_the_owners_byte_for_byte(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second):
        workspace = await second.owns(table)
        path = f"/v1/workspaces/{workspace.id}"
        session = (await first.client.request("POST", f"{path}/sessions", {"title": "ä/☃"})).value["id"]
        targets = (
            path,
            f"{path}/sessions",
            f"{path}/sessions/{session}/messages",
            f"{path}/runs?limit=x",
            f"{path}/no",
        )
        for target in targets:
            assert await first.client.request("GET", target) == await second.client.request("GET", target)
        refused = await first.client.request("POST", f"{path}/agent", {"session_id": "none", "prompt": "x"})
        assert refused.code == "session_not_found"
        assert first.site.counts["requests_passed_on"] == 7
        assert second.site.counts["requests_passed_on"] == 0


async def test_what_is_here_is_answered_here(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, _):
        workspace = await first.owns(table)
        assert (await first.client.request("GET", f"/v1/workspaces/{workspace.id}")).status == 200
        assert (table.looked, first.site.counts["requests_passed_on"]) == (0, 0)


async def test_connections_to_a_node_are_used_again(tmp_path: Path) -> None:
    async with node(Table(), "a", tmp_path) as first, fake_owner(reply("200 OK", b"[]")) as owner:
        _give(first, owner.there)
        for _ in range(5):
            assert (await first.client.request("GET", "/v1/workspaces/w/sessions")).value == []
        assert (len(owner.requests), owner.connections) == (5, 1)


async def test_the_token_stays_at_the_first_node(tmp_path: Path) -> None:
    async with node(Table(), "a", tmp_path) as first, fake_owner(reply("200 OK", b"[]")) as owner:
        _give(first, owner.there)
        more = {"x-covey-run-id": "mine", "last-event-id": "1.2", "traceparent": "00-1-2-3"}
        await first.client.request("GET", "/v1/workspaces/w/sessions?a=%20b", headers=more)
        assert owner.requests[0].startswith(b"GET /v1/workspaces/w/sessions?a=%20b HTTP/1.1\r\n")
        kept = {name: owner.header(0, name) for name in ("authorization", *more)}
        assert kept == {"authorization": "", **more, "x-covey-run-id": ""}


async def test_a_stream_is_the_owners_byte_for_byte(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second):
        workspace = await second.owns(table)
        path = f"/v1/workspaces/{workspace.id}"
        direct = await second.client.stream(f"{path}/events?client_id={CLIENT}&deltas=1")
        passed = await first.client.stream(f"{path}/events?client_id={CLIENT}&deltas=1")
        assert (passed.status, *passed.head) == (200, *direct.head, b"connection: close")
        session = (await first.client.request("POST", f"{path}/sessions", {"title": "new"})).value["id"]
        end = session.encode()
        frames = [(await stream.until(end)).rpartition(b"\r\n")[2] for stream in (passed, direct)]
        assert frames[0] == frames[1]
        assert first.site.counts["streams_passed_on"] == 1


async def test_who_leaves_leaves_the_owner(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second):
        workspace = await second.owns(table)
        passed = await first.client.stream(f"/v1/workspaces/{workspace.id}/events?client_id={CLIENT}")
        await until(lambda: len(second.site.app.streams) == 1)
        passed.close()
        await until(lambda: not second.site.app.streams and not first.site.app.streams)


async def test_a_stream_ends_when_the_owner_changes(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second):
        workspace = await second.owns(table)
        passed = await first.client.stream(f"/v1/workspaces/{workspace.id}/events?client_id={CLIENT}")
        await passed.until(b"retry")
        table.give(workspace.id, second.there)  # no change
        table.give(workspace.id, first.there)
        await passed.rest()
        await until(lambda: not second.site.app.streams and not first.site.app.streams)


async def test_a_node_that_leaves_ends_streams_and_passes_no_more_of_them_on(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second):
        workspace = await second.owns(table)
        path = f"/v1/workspaces/{workspace.id}"
        passed = await first.client.stream(f"{path}/events?client_id={CLIENT}")
        await passed.until(b"retry")
        await first.door.leave()
        await passed.rest()
        late = await first.client.request("GET", f"{path}/events?client_id={CLIENT}")
        assert late.status == 503 and "about to leave" in late.value["message"]
        assert (await first.client.request("POST", f"{path}/sessions", {"title": "still"})).status == 200
        await until(lambda: not second.site.app.streams and not first.site.app.streams)


async def test_a_reader_that_is_slow_slows_the_owner_down(tmp_path: Path) -> None:
    sent = 0

    async def flood(_request: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(4000):
            writer.write(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
            sent += 10_000
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        writer.close()

    async with node(Table(), "a", tmp_path) as first, fake_owner(flood) as owner:
        _give(first, owner.there)
        passed = await first.client.stream(f"/v1/workspaces/w/events?client_id={CLIENT}")
        await _until_steady(lambda: sent)
        assert sent < 30_000_000  # what sockets hold, and no more
        body = await passed.rest()
        assert body.endswith(b"\r\n0\r\n\r\n") and body.count(b"x") == sent == 40_000_000


async def test_the_owner_is_waited_for(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second):
        workspace = await second.owns(table)
        table.owners[workspace.id] = Nobody(0.01)
        asking = asyncio.create_task(first.client.request("GET", f"/v1/workspaces/{workspace.id}/sessions"))
        await until(lambda: table.looked > 2)
        table.owners[workspace.id] = second.there
        assert (await within(asking)).status == 200


async def test_an_owner_that_does_not_answer_is_waited_for_and_then_503(tmp_path: Path, impatient: None) -> None:
    async with node(table := Table(), "a", tmp_path) as first, fake_owner(hang_up) as owner:
        there = owner.there
    _give_at(table, there)
    async with node(table, "a", tmp_path) as first:
        _give(first, there)
        answer = await first.client.request("POST", "/v1/workspaces/w/sessions", {})
        assert (answer.status, answer.code, answer.header("retry-after")) == (503, "owner_unreachable", "1")


async def test_what_was_not_answered_is_asked_again_where_twice_is_once(tmp_path: Path) -> None:
    answers = in_turn(hang_up, hang_up, reply("202 Accepted", b"{}"))
    async with node(Table(), "a", tmp_path) as first, fake_owner(answers) as owner:
        _give(first, owner.there)
        assert (await first.client.request("POST", "/v1/workspaces/w/agent", PROMPT)).status == 202
        ids = {owner.header(number, "x-covey-run-id") for number in range(3)}
        assert len(ids) == 1 and ids != {""}


@pytest.mark.parametrize(
    "path", ["agent/sessions/s/cancel", "runs/r/cancel", "permissions/grant", "questions/q/answer"]
)
async def test_cancels_and_answers_are_asked_again(tmp_path: Path, path: str) -> None:
    async with node(Table(), "a", tmp_path) as first, fake_owner(in_turn(hang_up, reply("200 OK", b"{}"))) as owner:
        _give(first, owner.there)
        assert (await first.client.request("POST", f"/v1/workspaces/w/{path}", {})).status == 200
        assert len(owner.requests) == 2


async def test_what_may_have_been_done_is_not_asked_for_again(tmp_path: Path) -> None:
    async with node(Table(), "a", tmp_path) as first, fake_owner(hang_up) as owner:
        _give(first, owner.there)
        answer = await first.client.request("POST", "/v1/workspaces/w/sessions", {"title": "once"})
        assert (answer.status, answer.code, len(owner.requests)) == (503, "outcome_unknown", 1)


async def test_an_answer_that_is_cut_off_is_asked_for_again(tmp_path: Path) -> None:
    async def half(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n[1,2")
        await writer.drain()
        writer.close()

    async with (
        node(Table(), "a", tmp_path) as first,
        fake_owner(in_turn(half, reply("200 OK", b"[1,2,3,4 ]"))) as owner,
    ):
        _give(first, owner.there)
        assert (await first.client.request("GET", "/v1/workspaces/w/sessions")).value == [1, 2, 3, 4]


async def test_a_frozen_owner_is_given_up_when_another_has_the_workspace(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second), fake_owner(freeze) as frozen:
        workspace = await second.owns(table)
        table.owners[workspace.id] = frozen.there
        asking = asyncio.create_task(first.client.request("GET", f"/v1/workspaces/{workspace.id}/sessions"))
        watching = asyncio.create_task(first.client.stream(f"/v1/workspaces/{workspace.id}/events?client_id={CLIENT}"))
        await until(lambda: len(frozen.requests) == 2)
        table.give(workspace.id, second.there)
        assert (await within(asking)).status == 200
        assert (await within(watching)).status == 200


async def test_a_node_that_is_not_the_owner_passes_nothing_on(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second):
        workspace = await second.owns(table)
        target = f"/v1/workspaces/{workspace.id}/sessions"
        answer = await first.client.request("GET", target, headers=_proof(target, "a-1"))
        assert (answer.status, answer.code) == (421, "not_the_owner")
        assert first.site.counts["requests_passed_on"] == 0


async def test_who_was_asked_in_vain_is_not_asked_for_long(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second), fake_owner(reply("421 Misdirected", b"{}")) as former:
        workspace = await second.owns(table)
        table.owners[workspace.id] = former.there
        asking = asyncio.create_task(
            first.client.request("POST", f"/v1/workspaces/{workspace.id}/sessions", {"title": "once"})
        )
        await until(lambda: len(former.requests) > 1)
        table.owners[workspace.id] = second.there
        assert (await within(asking)).status == 200
        assert len((await second.client.request("GET", f"/v1/workspaces/{workspace.id}/sessions")).value) == 1


async def test_a_request_for_a_former_life_of_a_node_is_refused(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, _, second):
        workspace = await second.owns(table)
        target = f"/v1/workspaces/{workspace.id}/sessions"
        assert (await second.client.request("GET", target, headers=_proof(target, "b-0"))).code == "not_the_owner"
        assert (await second.client.request("GET", target, headers=_proof(target, "b-1"))).status == 200


async def test_nobody_is_believed_without_the_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with two_nodes(tmp_path) as (table, _, second):
        workspace = await second.owns(table)
        target = f"/v1/workspaces/{workspace.id}/sessions"
        for headers in (
            _proof(target, "b-1", b"another secret"),
            _proof(f"{target}?x", "b-1"),
            {"x-covey-passed-on": "b-1 a all - 00"},
            {"x-covey-passed-on": ""} | _proof(target, "b-1") | {"x-covey-run-id": "added"},
        ):
            refused = await second.client.request("GET", target, headers={**headers, "authorization": ""})
            assert (refused.status, refused.code) == (403, "wrong_cluster_secret")
        signed = _proof(target, "b-1", method="POST", body=b'{"title": "a"}')
        other = await second.client.request("POST", target, {"title": "b"}, headers=signed)
        assert other.status == 403
        assert (await second.client.request("GET", target)).value == []
        assert "the same --cluster-secret-file" in caplog.text


async def test_nodes_with_different_secrets_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = Table()
    async with (
        node(table, "a", tmp_path / "a") as first,
        node(table, "b", tmp_path / "b", b"another secret") as second,
    ):
        workspace = await second.owns(table)
        answer = await first.client.request("POST", f"/v1/workspaces/{workspace.id}/sessions", {})
        assert (answer.status, answer.code) == (503, "secrets_differ")
        assert "the nodes a and b have different cluster secrets" in answer.value["message"]
        assert "node b at http://" in caplog.text


async def test_a_body_that_is_too_large_is_refused_at_once(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second):
        workspace = await second.owns(table)
        headers = {"content-length": str(33 * 1024 * 1024)}
        opened = await first.client.begin("POST", f"/v1/workspaces/{workspace.id}/agent", body=b"{}", headers=headers)
        assert (await opened.begin()).status == 413


async def test_a_workspace_that_was_released_is_not_opened_by_looking(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, _):
        table.owners["w"] = Nobody(0.0)
        for method in ("GET", "DELETE"):
            assert (await first.client.request(method, "/v1/workspaces/w")).code == "workspace_released"


async def test_a_directory_is_opened_at_its_owner(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second):
        workspace = await second.owns(table)
        body = {"path": workspace.path, "client_id": CLIENT}
        assert (await first.client.request("POST", "/v1/workspaces", body)).value["id"] == workspace.id
        assert first.site.workspaces.all() == []
        wrong = await first.client.request("POST", "/v1/workspaces", body=b"{")
        assert (wrong.status, wrong.code) == (400, "invalid_request")


def _give(first: Node, there: object) -> None:
    _give_at(first.table, there)


def _give_at(table: Table, there: object) -> None:
    table.owners["w"] = there  # type: ignore[assignment]


def _proof(
    target: str, receiver: str, secret: bytes = SECRET, method: str = "GET", body: bytes = b""
) -> dict[str, str]:
    return {"x-covey-passed-on": sign(secret, Ask(method, target.encode(), body), receiver, "a").decode()}


async def _until_steady(count: object) -> None:
    """Until it does not change any more in many turns of the loop."""
    last, same = -1, 0
    while same < 200:
        now = count()  # type: ignore[operator]
        same, last = (same + 1, last) if now == last else (0, now)
        await asyncio.sleep(0.001)
