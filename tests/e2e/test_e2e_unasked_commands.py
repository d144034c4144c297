"""What a model runs without being asked about, through a real server: nothing that a hostile project could use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.test_e2e_always import answer_all
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server
from tests.tools.test_git_guard import bare_repository


def asks_for(model: FakeModel, *commands: str) -> None:
    """The model runs these, one after the other, and is done."""

    def reply(request: Recorded) -> Reply:
        if request.call_number < len(commands):
            return Reply(text="", tools=(Call(name="bash", input={"command": commands[request.call_number]}),))
        return Reply(text="finished")

    model.on(reply)


HOSTILE = (
    "for v in 'a[$(touch ran)]'; do for x in $((v)); do :; done; done",
    "for v in 'a[$(touch ran)]'; do [[ v -eq 1 ]]; done",
    "./cd .",
    "find '{system(\"touch ran\")}' -exec awk 'BEGIN{}' \\;",
    "cat <<E\n\\\nE\ntouch ran\nE",
)


@pytest.mark.parametrize("command", HOSTILE)
def test_a_line_that_would_run_something_is_asked_about(
    server: Server, model: FakeModel, tmp_path: Path, command: str
) -> None:
    root = tmp_path / "hostile"
    root.mkdir()
    (root / '{system("touch ran")}').touch()
    (root / "cd").write_text("#!/bin/sh\ntouch ran\n")
    (root / "cd").chmod(0o755)
    asks_for(model, "ls", command)
    asked = answer_all(server.workspace(root), "look around", "deny")
    assert [one["description"] for one in asked] == [" ".join(command.split())]
    assert not (root / "ran").exists()


def test_git_status_in_a_directory_that_a_clone_brought_along_is_asked_about_and_runs_nothing_even_if_allowed(
    server: Server, model: FakeModel, tmp_path: Path
) -> None:
    root = bare_repository(tmp_path / "clone" / "sub")
    asks_for(model, "git status")
    asked = answer_all(server.workspace(root), "what has changed?", "allow")
    assert [one["description"] for one in asked] == ["git status"]
    assert "a clone can have brought along" in asked[0]["reason"]
    assert not (root / "ran").exists()
