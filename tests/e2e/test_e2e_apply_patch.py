"""Patches with a real server: who gets the tool, what is asked, what is refused, and that all of it can be undone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, provider_config, running

GPT = "fake/gpt-6"
RULES = '[permissions]\ndeny = ["edit:precious.txt"]\n'
PATCH = """*** Begin Patch
*** Update File: a.txt
-one
+1
*** Update File: b.txt
*** Move to: c.txt
-two
+2
*** Delete File: d.txt
*** End Patch"""
BEFORE = {"a.txt": "one\n", "b.txt": "two\n", "d.txt": "four\n", "precious.txt": "mine\n"}
AFTER = {"a.txt": "1\n", "c.txt": "2\n", "precious.txt": "mine\n"}


@pytest.fixture
def server(tmp_path: Path, model: FakeModel) -> Iterator[Server]:
    with running(tmp_path, provider_config(model.url, RULES)) as started:
        started.project.mkdir(exist_ok=True)
        for name, text in BEFORE.items():
            (started.project / name).write_text(text)
        yield started


def files(server: Server) -> dict[str, str]:
    return {path.name: path.read_text() for path in server.project.iterdir()}


def patching(patch: str) -> Any:
    """View everything, then apply the patch, then say so."""
    look = tuple(Call(name="view", input={"file_path": name}, id=f"view-{name}") for name in BEFORE)
    replies = [Reply(text="", tools=look), Reply(text="", tools=(Call(name="apply_patch", input={"patch": patch}),))]

    def answer(request: Recorded) -> Reply:
        return replies[request.call_number] if request.call_number < len(replies) else Reply(text="done")

    return answer


def tools_of(request: Recorded) -> set[str]:
    return {tool["function"]["name"] for tool in request.body["tools"]}


def result_of(workspace: Workspace, session: str) -> Any:
    return [part["data"] for m in workspace.messages(session) for part in m["parts"] if m["role"] == "tool"][-1]


def test_each_family_of_models_gets_the_tool_that_it_knows(workspace: Workspace, model: FakeModel) -> None:
    session = workspace.session()
    for run_id, name in (("gpt", GPT), ("other", "fake/claude-sonnet-5-5")):
        workspace.prompt(session, run_id, run_id=run_id, model=name)
        workspace.ended(run_id)
    gpt, other = model.requests
    assert {"apply_patch", "write"} <= tools_of(gpt) and not {"edit", "multiedit"} & tools_of(gpt)
    assert {"edit", "multiedit", "write"} <= tools_of(other) and "apply_patch" not in tools_of(other)
    system = [str(request.body["messages"][0]["content"]) for request in (gpt, other)]
    assert "Change files with apply_patch" in system[0] and "Change files with edit" not in system[0]
    assert "Change files with edit" in system[1] and "apply_patch" not in system[1]


def test_a_patch_is_asked_about_with_its_diff_and_can_be_undone(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(patching(PATCH))
    session, stream = workspace.session(), workspace.stream()
    workspace.prompt(session, "go", run_id="r1", model=GPT)
    request = stream.wait_for(lambda seen: [e.payload for e in seen if e.type == "permission_request"])[0]
    assert request["tool_name"] == "apply_patch" and request["description"] == "Patch a.txt, b.txt, c.txt and 1 more"
    assert all(line in request["params"]["diff"] for line in ("-one\n+1\n", "+++ c.txt", "-four\n"))
    assert request["rules"] == ["edit:a.txt", "edit:b.txt", "write:c.txt", "edit:d.txt"]
    assert files(server) == BEFORE
    grant = {"permission": {"id": request["id"]}, "action": "allow"}
    assert workspace.request("POST", "/permissions/grant", grant).ok()["resolved"]
    assert stream.terminal("r1")["text"] == "done"
    assert files(server) == AFTER
    changed = [(e.change, Path(e.payload["path"]).name) for e in stream.of_type("file")]
    assert changed == [("updated", "a.txt"), ("created", "c.txt"), ("deleted", "b.txt"), ("deleted", "d.txt")]
    workspace.request("POST", f"/sessions/{session}/undo").ok()
    assert files(server) == BEFORE


def test_a_patch_with_one_file_that_a_rule_denies_changes_nothing(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    """Whoever wrote the rule for edit need not know that there is another tool."""
    denied = PATCH.replace("*** Delete File: d.txt", "*** Delete File: precious.txt")
    model.on(patching(denied))
    session = workspace.session()
    workspace.prompt(session, "go", run_id="r1", model=GPT, yolo=True)
    workspace.ended("r1")
    result = result_of(workspace, session)
    assert result["is_error"] and "edit:precious.txt forbids it" in result["content"]
    assert files(server) == BEFORE


def test_s11_a_patch_does_not_follow_a_path_that_became_a_link(
    server: Server, workspace: Workspace, model: FakeModel, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    docs = server.project / "docs"
    docs.mkdir()
    model.on(patching("*** Begin Patch\n*** Update File: a.txt\n-one\n*** Add File: docs/x\n+x\n*** End Patch"))
    session, stream = workspace.session(), workspace.stream()
    workspace.prompt(session, "go", run_id="r1", model=GPT)
    request = stream.wait_for(lambda seen: [e.payload for e in seen if e.type == "permission_request"])[0]
    docs.rmdir()
    docs.symlink_to(elsewhere)
    grant = {"permission": {"id": request["id"]}, "action": "allow"}
    workspace.request("POST", "/permissions/grant", grant).ok()
    workspace.ended("r1")
    assert result_of(workspace, session)["content"].startswith("Nothing was done: the path leads elsewhere")
    assert not list(elsewhere.iterdir()) and (server.project / "a.txt").read_text() == "one\n"
