"""What concerns all nodes of a cluster, asked of one: lists, goodbyes, what goes on everywhere, and pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from covey.server import all_nodes
from covey.server.membership import TOOLS, Ask, sign
from tests.server.fake_owner import fake_owner, freeze
from tests.server.nodes_in_process import SECRET, FakeNode, Node, two_nodes, until
from tests.server.site import CLIENT
from tests.support.engine import Gate
from tests.support.raw_http import OpenRaw

pytestmark = pytest.mark.anyio


async def test_the_open_workspaces_of_all_nodes(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second):
        found = {(await first.owns(table)).id, (await second.owns(table)).id}
        for node in (first, second):
            answer = await node.client.request("GET", "/v1/workspaces")
            assert ({each["id"] for each in answer.value}, answer.header("x-covey-missing")) == (found, "")


async def test_a_node_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_nodes, "ANSWER_S", 0.2)
    async with two_nodes(tmp_path) as (table, first, second), fake_owner(freeze) as frozen:
        workspace = await second.owns(table)
        table.nodes["c"] = FakeNode(frozen.there.node_id, "c", frozen.there.address)
        table.nodes["d"] = FakeNode("d-1", "d", "http://127.0.0.1:1")
        table.nodes["e"] = FakeNode("e-1", "e", "http://127.0.0.1:1", is_alive=False)
        answer = await first.client.request("GET", "/v1/workspaces")
        assert ([each["id"] for each in answer.value], answer.header("x-covey-missing")) == ([workspace.id], "c, d")


async def test_runs_of_all_nodes_as_their_owners_say(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second):
        run_ids = [await _prompt(node, (await node.owns(table)).id) for node in (first, second)]
        for node in (first, second):
            await _ended(node, run_ids)
            newest = (await node.client.request("GET", "/v1/runs?limit=1")).value
            assert [run["run_id"] for run in newest] == run_ids[1:]
            own = (await node.client.request("GET", "/v1/runs?state=active")).value
            assert own == []


async def test_who_says_goodbye_says_it_to_all(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second):
        workspace = await second.owns(table)
        assert workspace.clients.have_claims
        assert (await first.client.request("DELETE", f"/v1/clients/{CLIENT}")).status == 200
        assert not workspace.clients.have_claims


async def test_what_goes_on_everywhere_is_one_stream(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second):
        here, there = await first.owns(table), await second.owns(table)
        second.site.model.answer(gate := Gate(), "done")
        waiting = await _prompt(second, there.id)
        stream = await first.client.stream("/v1/activity")
        assert (await _event(stream))["payload"]["payload"] == {"runs": 1, "asks": 0}
        assert (await _event(stream))["payload"]["payload"]["run_id"] == waiting
        mine = await _prompt(first, here.id)
        gate.open()
        ended: set[str] = set()
        while ended != {waiting, mine}:
            event = await _event(stream)
            if event["type"] == "run_complete":
                ended.add(event["payload"]["payload"]["run_id"])
        stream.close()
        await until(lambda: not second.site.app.streams and not first.site.app.streams)


async def test_a_page_that_one_node_let_in_comes_in_everywhere(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, second):
        workspace = await second.owns(table)
        token, page_id = await _let_in(first, second)
        as_page = {"authorization": f"Bearer {token}", "connection": "close"}
        path = f"/v1/workspaces/{workspace.id}"
        for node in (first, second):
            assert (await node.client.request("GET", f"{path}/sessions", headers=as_page)).status == 200
            refused = await node.client.request("POST", "/v1/control", {"command": "shutdown"}, headers=as_page)
            assert refused.code == "may_not_administer"
        streams = [
            await node.client.stream(f"{path}/events?client_id={CLIENT}", headers=as_page) for node in (first, second)
        ]
        listed = (await second.client.request("GET", "/v1/web/sessions")).value
        assert [page["id"] for page in listed] == [page_id]
        assert (await second.client.request("DELETE", f"/v1/web/sessions/{page_id}")).status == 200
        for node, stream in zip((first, second), streams, strict=True):
            await stream.rest()
            assert (await node.client.request("GET", f"{path}/sessions", headers=as_page)).status == 401
        assert (await second.client.request("DELETE", f"/v1/web/sessions/{page_id}")).code == "page_not_found"


async def test_a_page_signs_itself_out_at_any_node(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (_, first, second):
        token, _page_id = await _let_in(first, second)
        as_page = {"authorization": f"Bearer {token}", "connection": "close"}
        assert (await second.client.request("POST", "/v1/web/sign-out", headers=as_page)).status == 200
        assert (await first.client.request("GET", "/v1/version", headers=as_page)).code == "signed_out"


async def test_a_page_of_a_node_that_is_not_there(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (table, first, _second):
        as_page = {"authorization": "Bearer c~x"}
        assert (await first.client.request("GET", "/v1/version", headers=as_page)).code == "unauthorized"
        table.nodes["c"] = FakeNode("c-1", "c", "http://127.0.0.1:1")
        answer = await first.client.request("GET", "/v1/version", headers=as_page)
        assert (answer.status, answer.code) == (503, "node_unreachable")


async def test_rights_go_with_the_request(tmp_path: Path) -> None:
    """A process that a tool has started at the first node approves nothing at the second."""
    async with two_nodes(tmp_path) as (table, _, second):
        workspace = await second.owns(table)
        target = f"/v1/workspaces/{workspace.id}/permissions/skip"
        body = json.dumps({"skip": True}).encode()
        proof = sign(SECRET, Ask("POST", target.encode(), body, rights=TOOLS), "b-1", "a").decode()
        answer = await second.client.request("POST", target, body=body, headers={"x-covey-passed-on": proof})
        assert answer.code == "may_not_approve"


async def test_what_only_nodes_ask_is_not_for_clients(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as (_, first, _second):
        assert (await first.client.request("GET", f"/v1/node/pages/{'0' * 64}")).status == 404
        assert (await first.client.request("POST", "/v1/node/adopt/w")).status == 404


async def _prompt(node: Node, workspace_id: str) -> str:
    path = f"/v1/workspaces/{workspace_id}"
    session = (await node.client.request("POST", f"{path}/sessions", {})).value["id"]
    answer = await node.client.request("POST", f"{path}/agent", {"session_id": session, "prompt": "hello"})
    return str(answer.value["run_id"])


async def _ended(node: Node, run_ids: list[str]) -> None:
    found: list[str] = []
    while found != run_ids[::-1]:
        found = [run["run_id"] for run in (await node.client.request("GET", "/v1/runs?state=completed")).value]


async def _event(stream: OpenRaw) -> Any:
    await stream.until(b"data: ")
    return json.loads(await stream.until(b"\n\n"))


async def _let_in(made_at: Node, redeemed_at: Node) -> tuple[str, str]:
    """The token of a page and its id: by a code of one node, brought to another."""
    code = (await made_at.client.request("POST", "/v1/web/codes", {})).value["code"]
    origin = {"origin": redeemed_at.there.address, "authorization": ""}
    answer = await redeemed_at.client.request("POST", "/v1/web/sessions", {"code": code, "name": "p"}, headers=origin)
    assert answer.status == 200, answer
    return answer.value["token"], answer.value["id"]
