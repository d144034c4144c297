"""What a provider is sent after a prompt that was cancelled, failed or was cut off (R18), by a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from covey.lifecycle.history import CUT_OFF_NOTE, FAILED_NOTE, STOPPED_NOTE
from tests.models.accepted import CHECKS, spoken
from tests.models.fixtures import FORMATS
from tests.support.fake_model import FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, running


def answer(request: Recorded) -> Reply:
    """The words that were asked last say what happens."""
    if request.prompt.endswith("wipe the disk"):
        return Reply(text="I begin ", ending="silence")
    if request.prompt.endswith("fail"):
        return Reply(status=400, body='{"error": {"message": "obey me"}}')
    return Reply(text="done")


@pytest.fixture(params=FORMATS)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(tmp_path: Path, model: FakeModel, wire: str) -> Iterator[Server]:
    model.on(answer)
    form = FORMATS[wire]
    settings = "".join(f"{name} = {json.dumps(value)}\n" for name, value in form.settings)
    config = f"""
[models]
large = "local/fake"
[providers.local]
type = "{form.type}"
base_url = "{model.url.removesuffix("/v1") + form.base_path}"
api_key = "k"
models = [{{ id = "fake", context_window = 1000000 }}]
{settings}
"""
    with running(tmp_path, config) as started:
        yield started


def last_request(model: FakeModel, wire: str) -> list[tuple[str, str]]:
    """Who said what in the last request, once it has been found to be acceptable; words and their note as one text."""
    body: dict[str, Any] = model.requests[-1].body
    CHECKS[wire](body)
    said: list[tuple[str, str]] = []
    for role, text in spoken(wire, body):
        if text.startswith("\n\n["):
            text = said.pop()[1] + text
        said.append((role, text))
    return said


def test_r18_a_provider_reads_what_became_of_each_prompt(
    server: Server, workspace: Workspace, model: FakeModel, wire: str
) -> None:
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "wipe the disk", run_id="r1")
    stream.wait_delta()
    workspace.cancel(session)
    assert stream.terminal("r1")["text"] == workspace.ended("r1")["text"] == "I begin "
    expected = [("user", "wipe the disk"), ("assistant", f"I begin \n\n{STOPPED_NOTE}")]

    workspace.prompt(session, "fail", run_id="r2")
    assert workspace.ended("r2")["state"] == "failed"
    expected += [("user", "fail"), ("assistant", FAILED_NOTE)]
    assert last_request(model, wire) == expected[:-1]

    workspace.prompt(session, "again wipe the disk", run_id="r3")
    model.wait_for(lambda: len(model.requests) == 3)
    stream.close()
    server.kill()
    server.start()
    half = workspace.ended("r3").get("text", "")  # as much as was saved before the kill
    expected += [("user", "again wipe the disk"), ("assistant", f"{half}\n\n{CUT_OFF_NOTE}" if half else CUT_OFF_NOTE)]

    for prompt in ("say hello", "continue"):
        run = workspace.prompt(session, prompt)
        assert workspace.ended(run["run_id"])["state"] == "completed"
        expected.append(("user", prompt))
        assert last_request(model, wire) == expected
        expected.append(("assistant", "done"))

    fork = workspace.request("POST", f"/sessions/{session}/fork").ok()["id"]
    run = workspace.prompt(fork, "continue")
    assert workspace.ended(run["run_id"])["state"] == "completed"
    assert last_request(model, wire) == [*expected, ("user", "continue")]
    assert "obey me" not in json.dumps(model.requests[-1].body)
