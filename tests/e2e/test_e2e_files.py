"""Files and pages over the wire: found by a few letters, read by the rules of `view`, messages from the end."""

from __future__ import annotations

import pytest

from tests.support.fake_model import FakeModel, Reply
from tests.support.server import Server, Workspace

pytestmark = pytest.mark.borrows_server


@pytest.fixture
def project(server: Server, workspace: Workspace) -> Workspace:
    for name in ("src/main.py", "src/view/window.py", "docs/main.md", ".gitignore", "build/out.py", ".env", "bin.dat"):
        path = server.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name} ✓\n")
    (server.project / ".gitignore").write_text("build/\n")
    (server.project / "bin.dat").write_bytes(b"\0\1\2")
    return workspace


def test_files_are_found_by_a_few_letters_without_what_is_ignored(project: Workspace) -> None:
    found = project.get("/files?q=main")
    assert [file["path"] for file in found["files"]] == ["src/main.py", "docs/main.md"]
    assert "is_partial" not in found
    assert [file["path"] for file in project.get("/files?q=svw&limit=1")["files"]] == ["src/view/window.py"]
    assert not [file for file in project.get("/files?q=out")["files"] if file["path"].startswith("build")]


def test_a_file_is_read_by_the_rules_of_view(project: Workspace) -> None:
    content = project.get("/files/content?path=src/main.py")
    assert (content["path"], content["text"]) == ("src/main.py", "content of src/main.py ✓\n")
    assert content["size"] == len(content["text"].encode())
    project.request("GET", "/files/content?path=.env").refused(403, "secret_file")
    project.request("GET", "/files/content?path=../../etc/hostname").refused(403, "outside_workspace")
    project.request("GET", "/files/content?path=/etc/hostname").refused(403, "outside_workspace")
    project.request("GET", "/files/content?path=missing.py").refused(404, "file_not_found")
    project.request("GET", "/files/content?path=src").refused(404, "file_not_found")
    project.request("GET", "/files/content?path=bin.dat").refused(400, "binary_file")
    project.request("GET", "/files/content").refused(400, "invalid_request")


def test_messages_are_paged_from_the_end(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(text=f"about {request.prompt.split()[-1]}"))
    session = workspace.session()
    for number in range(5):
        workspace.prompt(session, f"n{number}", run_id=f"r{number}")
        workspace.ended(f"r{number}")
    everything = workspace.messages(session)
    last = workspace.get(f"/sessions/{session}/messages?before=&limit=4")
    assert last == everything[-4:]
    assert workspace.get(f"/sessions/{session}/messages?before={last[0]['id']}&limit=4") == everything[-8:-4]
    assert workspace.get(f"/sessions/{session}/messages?before={everything[0]['id']}&limit=4") == []
    workspace.request("GET", f"/sessions/{session}/messages?before=none").refused(404, "message_not_found")
    workspace.request("GET", f"/sessions/{session}/messages?before=&after=x").refused(400, "invalid_request")
