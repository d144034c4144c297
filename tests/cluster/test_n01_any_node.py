"""N1: any node takes any request, and gives the answer that the owner gives. One hop at most."""

from __future__ import annotations

import re
from typing import Any

import pytest

from covey.server.app import ENDPOINTS, V1_ENDPOINTS
from tests.support.cluster import Cluster
from tests.support.fake_model import FakeModel
from tests.support.server import Answer, Workspace

VOLATILE = re.compile(r'"(at|used_at|uptime_s|started_at)":[0-9.]+')


def test_n1_every_get_of_a_workspace_is_answered_as_by_its_owner(server: Cluster, workspace: Workspace) -> None:
    session = workspace.session("one")
    run_id = workspace.prompt(session, "hello")["run_id"]
    workspace.ended(run_id)
    message_id = workspace.messages(session)[0]["id"]
    values = {"id": workspace.id, "sid": session, "run_id": run_id, "message_id": message_id}
    owner, others = server.owner(workspace.id), server.others(workspace.id)
    asked = 0
    for endpoint in (*ENDPOINTS, *V1_ENDPOINTS):
        if endpoint.method != "GET" or not endpoint.path.startswith("/v1/workspaces/{id}"):
            continue
        path = re.sub(r"\{(\w+)(:path)?\}", lambda found: str(values.get(found[1], "none")), endpoint.path)
        right = owner.request("GET", path)
        for other in others:
            assert _steady(other.request("GET", path)) == _steady(right), path
        asked += 1
    assert asked > 20


def test_n1_what_changes_something_is_done_once_whichever_node_is_asked(server: Cluster, workspace: Workspace) -> None:
    for node in server.nodes:
        created = node.request("POST", f"{workspace.path}/sessions", {"title": node.name}).ok()
        assert [each["title"] for each in workspace.get("/sessions") if each["id"] == created["id"]] == [node.name]
    assert len(workspace.get("/sessions")) == 3
    assert server.metric("requests_passed_on_total") >= 4


def test_n1_errors_are_the_owners(server: Cluster, workspace: Workspace) -> None:
    owner = server.owner(workspace.id)
    bad: list[tuple[str, str, Any]] = [
        ("POST", "/agent", {"session_id": "none", "prompt": "x"}),
        ("POST", "/agent", {"prompt": 1}),
        ("POST", "/agent", b"{"),
        ("PATCH", "/agent", {}),
        ("GET", "/runs?limit=-1", None),
        ("GET", "/nothing", None),
    ]
    for method, path, body in bad:
        right = owner.request(method, workspace.path + path, body)
        assert right.status >= 400
        for other in server.others(workspace.id):
            assert _steady(other.request(method, workspace.path + path, body)) == _steady(right), (method, path)


def test_n1_the_same_directory_is_one_workspace_at_every_node(server: Cluster) -> None:
    found = {server.workspace().id for _ in range(6)}
    assert len(found) == 1
    assert server.metric("workspaces_open") == 1


def test_n1_lists_are_those_of_the_cluster(server: Cluster, workspace: Workspace, model: FakeModel) -> None:
    session = workspace.session()
    run_id = workspace.prompt(session, "findable words")["run_id"]
    workspace.ended(run_id)
    for node in server.nodes:
        assert [each["id"] for each in node.request("GET", "/v1/workspaces").ok()].count(workspace.id) == 1
        assert run_id in [run["run_id"] for run in node.request("GET", "/v1/runs").ok()]
        hits = node.request("GET", "/v1/search?q=findable").ok()["messages"]
        assert workspace.id in [hit["workspace_id"] for hit in hits]
        assert str(server.project) in [line["path"] for line in node.request("GET", "/v1/stats").ok()]
        names = [each["name"] for each in node.request("GET", "/v1/nodes").ok() if each["state"] == "ready"]
        assert names == ["a", "b", "c"]
        assert node.request("GET", "/v1/ready").ok() == {"ready": True}


@pytest.mark.parametrize("is_here", [True, False])
def test_n1_a_released_workspace_is_not_opened_by_looking(server: Cluster, workspace: Workspace, is_here: bool) -> None:
    owner = server.owner(workspace.id)
    asked = owner if is_here else server.others(workspace.id)[0]
    workspace.request("DELETE", f"?client_id={workspace.client_id}").ok()
    answer = asked.request("GET", workspace.path)
    while answer.status == 200:
        answer = asked.request("GET", workspace.path)
    answer.refused(404, "workspace_released")
    assert server.metric("workspaces_open") == 0


def _steady(answer: Answer) -> tuple[int, str, dict[str, str]]:
    """Without what differs from moment to moment."""
    headers = {name: value for name, value in answer.headers.items() if name not in ("date", "content-length")}
    return answer.status, VOLATILE.sub("", repr(answer.body)), headers
