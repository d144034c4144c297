"""What was allowed is what is done: a path that leads elsewhere by the time somebody answers is not touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace


def once(name: str, **given: str) -> object:
    def answer(request: Recorded) -> Reply:
        is_first = all(message["role"] != "tool" for message in request.body["messages"])
        return Reply(text="", tools=(Call(name=name, input=given),)) if is_first else Reply(text="done")

    return answer


def result_of(workspace: Workspace, session: str) -> str:
    (message,) = (m for m in workspace.messages(session) if m["role"] == "tool")
    return str(message["parts"][0]["data"]["content"])


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "notes.md").write_text("precious\n")
    return place


def allowed(workspace: Workspace, session: str, swap: object) -> None:
    """Ask, swap something while the question stands, then allow it."""
    stream = workspace.stream()
    workspace.prompt(session, "go", run_id="r1")
    request = stream.wait_for(lambda events: [e.payload for e in events if e.type == "permission_request"])[0]
    swap()  # type: ignore[operator]
    grant = {"permission": {"id": request["id"]}, "action": "allow"}
    assert workspace.request("POST", "/permissions/grant", grant).ok()["resolved"]
    workspace.ended("r1")


def test_s11_a_write_does_not_follow_a_directory_that_became_a_link(
    server: Server, workspace: Workspace, model: FakeModel, elsewhere: Path
) -> None:
    docs = server.project / "docs"
    docs.mkdir(parents=True)
    model.on(once("write", file_path="docs/new.md", content="mine\n"))  # type: ignore[arg-type]
    session = workspace.session()

    def swap() -> None:
        docs.rmdir()
        docs.symlink_to(elsewhere)

    allowed(workspace, session, swap)
    assert not (elsewhere / "new.md").exists()
    assert result_of(workspace, session).startswith("Nothing was done: the path leads elsewhere")


def test_s11_a_link_that_was_turned_is_not_read(
    server: Server, workspace: Workspace, model: FakeModel, elsewhere: Path, tmp_path: Path
) -> None:
    asked = tmp_path / "ok.txt"
    asked.write_text("fine\n")
    server.project.mkdir(exist_ok=True)
    link = server.project / "link.txt"
    link.symlink_to(asked)
    model.on(once("view", file_path="link.txt"))  # type: ignore[arg-type]
    session = workspace.session()

    def swap() -> None:
        link.unlink()
        link.symlink_to(elsewhere / "notes.md")

    allowed(workspace, session, swap)
    assert "precious" not in result_of(workspace, session)
