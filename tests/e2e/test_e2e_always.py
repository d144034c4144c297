"""An answer that holds for ever holds in the directory in which it was given, and in no other."""

from __future__ import annotations

import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace

PRICES = "price = 1\n"
NEW_PRICES = "price = 2\n"


def edits(request: Recorded) -> Reply:
    calls = [
        Call(name="view", input={"file_path": "src/prices.py"}),
        Call(name="edit", input={"file_path": "src/prices.py", "old_string": PRICES, "new_string": NEW_PRICES}),
        Call(name="bash", input={"command": "make"}),
    ]
    return Reply(text="", tools=(calls[request.call_number],)) if request.call_number < 3 else Reply(text="finished")


def with_prices(directory: Path) -> Path:
    (directory / "src").mkdir(parents=True)
    (directory / "src" / "prices.py").write_text(PRICES)
    (directory / "Makefile").write_text("all:\n\ttouch made\n")
    return directory


def answer_all(workspace: Workspace, prompt: str, action: str) -> list[Any]:
    """Run a prompt to its end, give this answer to all that it asks for, and tell what that was."""
    asked: list[Any] = []
    with closing(workspace.stream()) as stream:
        run_id = workspace.prompt(workspace.session(), prompt)["run_id"]
        while True:
            seen = stream.wait_for(
                lambda events: (
                    [e.payload for e in events if e.type == "permission_request"][len(asked) :]
                    or [e for e in events if e.type == "run_complete" and e.payload["run_id"] == run_id]
                )
            )
            if not isinstance(seen[0], dict):
                return asked
            asked.append(seen[0])
            body = {"permission": {"id": seen[0]["id"]}, "action": action}
            assert workspace.request("POST", "/permissions/grant", body).ok()["resolved"]


@pytest.fixture
def asking_model(model: FakeModel) -> FakeModel:
    model.on(edits)
    return model


@pytest.mark.usefixtures("asking_model")
def test_always_in_one_directory_is_asked_about_in_another(server: Server, tmp_path: Path) -> None:
    here, elsewhere = with_prices(tmp_path / "here"), with_prices(tmp_path / "elsewhere")
    first = server.workspace(here)
    second = server.workspace(elsewhere)  # open already when the answer is given
    asked = answer_all(first, "change the price", "allow_always")
    assert [(one["path"], one["rules"]) for one in asked] == [
        (str(here), ["edit:src/prices.py"]),
        (str(here), ["bash:make"]),
    ]
    assert (here / "src/prices.py").read_text() == NEW_PRICES and (here / "made").exists()

    (here / "src/prices.py").write_text(PRICES)
    assert answer_all(first, "again", "deny") == [], "where it was said, nobody is asked again"
    assert (here / "src/prices.py").read_text() == NEW_PRICES

    second.request("POST", "/agent/update").ok()  # also after it has read the file
    asked = answer_all(second, "change the price", "deny")
    assert [one["rules"] for one in asked] == [["edit:src/prices.py"], ["bash:make"]]
    assert (elsewhere / "src/prices.py").read_text() == PRICES and not (elsewhere / "made").exists()
    written = tomllib.loads((server.directory / "config/covey/config.toml").read_text())
    assert written == {"projects": {str(here): {"permissions": {"allow": ["edit:src/prices.py", "bash:make"]}}}}
    first.close()
    second.close()


@pytest.mark.usefixtures("asking_model")
def test_always_is_still_there_for_another_server_and_by_another_name(server: Server, tmp_path: Path) -> None:
    here = with_prices(tmp_path / "here")
    (tmp_path / "link").symlink_to(here)
    workspace = server.workspace(tmp_path / "link")
    assert len(answer_all(workspace, "change the price", "allow_always")) == 2
    workspace.close()
    assert server.stop() == 0
    server.start()
    (here / "src/prices.py").write_text(PRICES)
    again = server.workspace(here)
    assert answer_all(again, "again", "deny") == []
    again.close()
