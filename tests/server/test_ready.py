"""Whether requests should be sent to a server, and what one that is no node says about nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.server.access import Access
from tests.server.nodes_in_process import FakeNode, FakeWhereabouts, Table, node
from tests.server.site import serving

pytestmark = pytest.mark.anyio
LOCAL = {"host": "127.0.0.1"}


async def test_a_server_is_ready_until_it_shuts_down(tmp_path: Path) -> None:
    async with serving(tmp_path, Access("a token")) as site:
        answer = await site.request("GET", "/v1/ready", headers=LOCAL)
        assert (answer.status, answer.value) == (200, {"ready": True})
        site.workspaces.closing = True
        refused = await site.request("GET", "/v1/ready", headers=LOCAL)
        assert (refused.status, refused.code, refused.headers["retry-after"]) == (503, "not_ready", "2")
        assert (await site.request("GET", "/v1/health", headers=LOCAL)).status == 200


async def test_a_node_that_drains_or_has_no_store_is_not_ready(tmp_path: Path) -> None:
    async with node(Table(), "a", tmp_path) as only:
        assert (await only.client.request("GET", "/v1/ready", headers={"authorization": ""})).status == 200
        whereabouts = only.door.whereabouts
        assert isinstance(whereabouts, FakeWhereabouts)
        whereabouts.not_ready = "the store cannot be reached"
        refused = await only.client.request("GET", "/v1/ready")
        assert (refused.code, refused.value["message"]) == ("not_ready", "the store cannot be reached")


async def test_one_server_is_no_node(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        assert (await site.request("GET", "/v1/nodes")).value == []
        for command in ({"command": "drain"}, {"command": "shutdown", "node": "a"}):
            assert (await site.request("POST", "/v1/control", command)).code == "no_cluster"
        assert (await site.request("DELETE", "/v1/nodes/a")).code == "no_cluster"
        assert not site.stopped


async def test_nodes_are_listed_and_one_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    table = Table()
    async with node(table, "a", tmp_path) as only:
        table.nodes["b"] = FakeNode("b-1", "b", "http://b:1", is_alive=False)
        listed = (await only.client.request("GET", "/v1/nodes")).value
        assert [(each["name"], each["state"], each["is_asked"]) for each in listed] == [
            ("a", "ready", True),
            ("b", "gone", False),
        ]
        assert (await only.client.request("DELETE", "/v1/nodes/a")).code == "busy"
        assert (await only.client.request("DELETE", "/v1/nodes/b")).status == 200
        assert (await only.client.request("DELETE", "/v1/nodes/b")).code == "node_not_found"


async def test_a_command_is_passed_on_to_the_node_that_it_names(tmp_path: Path) -> None:
    table = Table()
    async with node(table, "a", tmp_path / "a") as first, node(table, "b", tmp_path / "b") as second:
        assert (await first.client.request("POST", "/v1/control", {"command": "drain", "node": "b"})).status == 200
        assert (first.site.stopped, second.site.stopped) == (False, True)
        unknown = await first.client.request("POST", "/v1/control", {"command": "drain", "node": "c"})
        assert (unknown.status, unknown.code) == (404, "node_not_found")
        table.nodes["d"] = FakeNode("d-1", "d", "http://127.0.0.1:1", is_alive=False)
        gone = await first.client.request("POST", "/v1/control", {"command": "drain", "node": "d"})
        assert (gone.status, gone.code) == (503, "node_unreachable")
