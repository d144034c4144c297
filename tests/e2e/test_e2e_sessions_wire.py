"""Sessions over the wire: pages, search, archive, export; and what goes on in all workspaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.support.fake_model import FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, provider_config, running, until
from tests.support.stream import Stream


def talk(workspace: Workspace, *prompts: str, title: str = "") -> str:
    session = workspace.session(title)
    for prompt in prompts:
        workspace.ended(workspace.prompt(session, prompt)["run_id"])
    return session


def found(workspace: Workspace, query: str, more: str = "") -> dict[str, Any]:
    return dict(workspace.get(f"/search?q={quote(query)}{more}"))


def test_pages_of_sessions_meet_without_overlap_and_leave_out_the_archived(workspace: Workspace) -> None:
    made = [workspace.session(f"s{number}") for number in range(5)]
    workspace.request("PUT", f"/sessions/{made[0]}", {"archived": True}).ok()
    first = [session["id"] for session in workspace.get("/sessions?limit=2")]
    second = [session["id"] for session in workspace.get(f"/sessions?limit=2&before={first[-1]}")]
    assert sorted(first + second) == sorted(made[1:])
    assert made[0] in {session["id"] for session in workspace.get("/sessions?archived=1")}
    workspace.request("GET", "/sessions?before=nobody").refused(404, "session_not_found")
    renamed = workspace.request("PUT", f"/sessions/{made[0]}", {"title": "new"}).ok()
    assert renamed["archived_at"] and renamed["title"] == "new", "only what is given is changed"
    back = workspace.request("PUT", f"/sessions/{made[0]}", {"archived": False}).ok()
    assert "archived_at" not in back and back["title"] == "new"


def test_a_search_finds_messages_and_titles_with_marks_and_pages_on(workspace: Workspace) -> None:
    old = talk(workspace, "where do puffins nest", title="Birds of the north")
    new = talk(workspace, "a puffin has landed")
    hits = found(workspace, "puffin")
    assert [(hit["session_id"], hit["role"]) for hit in hits["messages"]] == [(new, "user"), (old, "user")]
    hit = hits["messages"][0]
    (start, end), *_ = hit["marks"]
    assert hit["snippet"][start:end] == "puffin" and hit["at"] > 0 and hits["is_complete"]
    assert hit["message_id"] in {message["id"] for message in workspace.messages(new)}
    (title,) = found(workspace, "north bird")["titles"]
    assert (title["session_id"], title["title"]) == (old, "Birds of the north")
    page = found(workspace, "puffin", "&limit=1")
    assert [hit["session_id"] for hit in page["messages"]] == [new]
    rest = found(workspace, "puffin", f"&limit=1&before={page['messages'][0]['message_id']}")
    assert [hit["session_id"] for hit in rest["messages"]] == [old] and rest["titles"] == []
    workspace.request("PUT", f"/sessions/{old}", {"archived": True}).ok()
    assert [hit.get("archived", False) for hit in found(workspace, "nest")["messages"]] == [True]


def test_a_query_is_words_and_one_without_any_is_refused(workspace: Workspace) -> None:
    session = talk(workspace, 'say "AND" or NEAR(this) -- not: that*')
    for query in ('"AND', "NEAR(this", "not: that*", "'; DROP TABLE messages", 'a "b', "text : say", "^say", "(say)"):
        workspace.request("GET", f"/search?q={quote(query)}").ok()
    assert found(workspace, '"AND" or NEAR(this)')["messages"][0]["session_id"] == session
    for empty in ("", "   ", "***", '""', "(-:^)"):
        workspace.request("GET", f"/search?q={quote(empty)}").refused(400, "empty_query")
    workspace.request("GET", f"/search?q={'x' * 1001}").refused(400, "query_too_long")
    workspace.request("GET", "/search?q=say&before=nobody").refused(404, "message_not_found")
    workspace.request("GET", "/search?q=say&limit=9999").refused(400, "invalid_request")


def test_a_search_reaches_every_workspace_open_or_not(server: Server, workspace: Workspace, tmp_path: Path) -> None:
    here = talk(workspace, "heron here")
    (tmp_path / "other").mkdir()
    other = server.workspace(tmp_path / "other")
    there = talk(other, "heron there")
    hits = server.request("GET", "/v1/search?q=heron").ok()["messages"]
    assert {(hit["session_id"], hit["workspace_id"]) for hit in hits} == {(here, workspace.id), (there, other.id)}
    assert {hit["path"] for hit in hits} == {str(server.project), str(tmp_path / "other")}
    server.request("GET", "/v1/search?q=").refused(400, "empty_query")


def test_an_export_is_complete_in_both_formats(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(text="```\nunfinished"))
    session = talk(workspace, *(f"prompt number {number}" for number in range(15)), title="All of it")
    as_json = workspace.get(f"/sessions/{session}/export?format=json")
    assert as_json["session"]["title"] == "All of it"
    assert as_json["messages"] == workspace.messages(session) and len(as_json["messages"]) == 30
    answer = workspace.request("GET", f"/sessions/{session}/export?format=markdown")
    text = str(answer.body)
    assert text.startswith("# All of it\n") and text.count("\n## User\n") == 15
    assert text.count("```\nunfinished\n```\n") == 15, "a block that was left open does not swallow the next message"
    workspace.request("GET", f"/sessions/{session}/export?format=pdf").refused(400, "invalid_request")
    workspace.request("GET", "/sessions/nobody/export").refused(404, "session_not_found")


def gated(request: Recorded) -> Reply:
    return Reply(text="said", gates={0: request.prompt.split()[-1]})


def activity(server: Server) -> Stream:
    return Stream(server.port, "/v1/activity", {"Authorization": f"Bearer {server.token}"})


def test_runs_of_all_workspaces_are_listed_with_their_place(server: Server, model: FakeModel, tmp_path: Path) -> None:
    model.on(gated)
    here = server.workspace()
    (tmp_path / "other").mkdir()
    other = server.workspace(tmp_path / "other")
    here.prompt(here.session(), "x go", run_id="here")
    other.prompt(other.session(), "x stay", run_id="there")
    until(lambda: len(server.request("GET", "/v1/runs?state=active").ok()) == 2)
    model.release("go")
    here.ended("here")
    runs = server.request("GET", "/v1/runs").ok()
    assert [(run["run_id"], run["workspace_id"], run["state"]) for run in runs] == [
        ("there", other.id, "active"),
        ("here", here.id, "completed"),
    ]
    assert [run["run_id"] for run in server.request("GET", "/v1/runs?state=active").ok()] == ["there"]
    assert [run["run_id"] for run in server.request("GET", "/v1/runs?limit=1").ok()] == ["there"]
    server.request("GET", "/v1/runs?state=odd").refused(400, "invalid_request")
    model.release("stay")
    other.ended("there")


def test_activity_begins_with_what_is_open_and_goes_on_with_what_happens(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(gated)
    session = workspace.session()
    workspace.prompt(session, f"{'long ' * 500}go", run_id="first")
    until(lambda: workspace.run("first")["state"] == "active")
    stream = activity(server)
    try:
        present, run = stream.wait_for(lambda events: events[:2] if len(events) >= 2 else None)
        assert (present.type, present.payload) == ("present", {"runs": 1, "asks": 0})
        assert (run.type, run.payload["run_id"], run.payload["state"]) == ("run", "first", "active")
        assert len(run.payload["prompt"]) == 500
        model.release("go")
        stream.terminal("first")
        workspace.prompt(session, "y next", run_id="second")
        stream.wait_for(lambda events: [e for e in events if e.payload.get("state") == "active"][1:])
        model.release("next")
        stream.terminal("second")
        assert not [e for e in stream.events if e.type in ("message", "message_delta", "session")]
        states = [e.payload["state"] for e in stream.events if e.type == "run" and e.payload["run_id"] == "second"]
        assert states[-1] == "completed" and len(states) == len(set(states)), "each state once"
    finally:
        stream.close()


def test_activity_claims_nothing_and_ends_with_the_server(tmp_path: Path, model: FakeModel) -> None:
    with running(tmp_path, provider_config(model.url)) as server:
        stream = activity(server)
        stream.wait_for(lambda events: events)
        assert server.request("GET", "/v1/workspaces").ok() == []
        server.request("POST", "/v1/activity").refused(405, "method_not_allowed")
        server.request("POST", "/v1/control", {"command": "shutdown_if_idle"}).ok()
        assert server.wait() == 0
        stream.close()
