"""A provider that says too much, over real HTTP: its run ends, its connection is closed, and nobody else notices."""

from __future__ import annotations

import json

import pytest

from covey.lifecycle import history
from covey.lifecycle.reply import MAX_CALLS, MAX_CHARACTERS
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace

pytestmark = pytest.mark.borrows_server

PIECE = 10_000
PIECES = 20_000
"""200 MB of text, if anybody took it."""
MOST_SENT = 32 * 1024 * 1024
"""The bound, and what sockets on both sides may hold."""


def answer_of(workspace: Workspace, session_id: str) -> dict[str, object]:
    found = workspace.messages(session_id)
    return next(message for message in found if message["role"] == "assistant")


@pytest.mark.parametrize("what", ["text", "reasoning", "input"])
def test_an_endless_answer_is_cut_off_and_its_connection_closed(
    model: FakeModel, server: Server, workspace: Workspace, what: str
) -> None:
    deltas = {
        "text": {"content": "x" * PIECE},
        "reasoning": {"reasoning_content": "x" * PIECE},
        "input": {"tool_calls": [{"index": 0, "id": "c0", "function": {"name": "view", "arguments": "x" * PIECE}}]},
    }
    event = "data: " + json.dumps({"choices": [{"index": 0, "delta": deltas[what]}]}) + "\n\n"
    model.on(lambda _: Reply(raw=(event,) * PIECES, ending="end"))
    session_id = workspace.session()
    run = workspace.ended(workspace.prompt(session_id, "go")["run_id"])
    assert run["state"] == "failed"
    assert "the answer was cut off at 8,388,608 characters" in run["error"]
    model.wait_for(lambda: model.requests[0].closed_early_at is not None)
    assert model.requests[0].sent * PIECE < MOST_SENT
    assert len(model.requests) == 1, "it is not asked again"
    answer = answer_of(workspace, session_id)
    assert MAX_CHARACTERS - 2 * PIECE < len(json.dumps(answer)) < MAX_CHARACTERS + 2 * PIECE
    assert server.request("GET", "/v1/health").ok() == {"status": "ok"}


def test_20_000_calls_in_one_answer_are_128_with_one_result_each(model: FakeModel, workspace: Workspace) -> None:
    calls = tuple(Call(name="view", input={"file_path": f"no-{number}.txt"}, pieces=1) for number in range(20_000))

    def reply(request: Recorded) -> Reply:
        return Reply(text="", tools=calls) if request.call_number == 0 else Reply(text="I see.")

    model.on(reply)
    session_id = workspace.session()
    run = workspace.ended(workspace.prompt(session_id, "go")["run_id"])
    assert (run["state"], run["text"]) == ("completed", "I see.")
    parts = [part for message in workspace.messages(session_id) for part in message["parts"]]
    made = [part["data"]["id"] for part in parts if part["type"] == "tool_call"]
    results = [part["data"] for part in parts if part["type"] == "tool_result"]
    assert len(made) == MAX_CALLS
    assert sorted(made) == sorted(result["tool_call_id"] for result in results), "they may end in any order"
    note = history.dropped_calls(20_000 - MAX_CALLS)
    assert [result["tool_call_id"] for result in results if note in result["content"]] == [made[-1]]
    told = json.dumps(model.requests[1].body)
    assert told.count('"tool_call_id"') == MAX_CALLS and note in told
