"""The scenarios of the life of a run, against a real server process."""

from __future__ import annotations

from tests.support.fake_model import FakeModel, Reply
from tests.support.server import Workspace


def finish_of(message: dict[str, object]) -> str:
    parts = message["parts"]
    assert isinstance(parts, list)
    last = parts[-1]
    return str(last["data"]["reason"]) if last["type"] == "finish" else ""


def test_scenario_01_one_prompts_another_cancels(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(text="word ", chunks=3, ending="silence"))
    session = workspace.session()
    a = workspace.stream()
    other = workspace.server.workspace()
    b = other.stream()
    run = workspace.prompt(session, "write a long text")
    b.wait_for(lambda seen: [e for e in seen if e.type == "message_delta"])
    receipt = other.cancel(session)
    assert [covered["run_id"] for covered in receipt["covered"]] == [run["run_id"]]
    for stream in (a, b):
        terminal = stream.terminal(run["run_id"])
        assert terminal["cancelled"] is True
        assert "error" not in terminal
        finished = [e.payload for e in stream.of_type("message") if e.payload["role"] == "assistant"][-1]
        assert finish_of(finished) == "canceled"
        assert not [e for e in stream.of_type("agent_event") if e.payload["type"] == "error"]
    assert [e for e in a.events if e.id] == [e for e in b.events if e.id]
    other.close()


def test_scenario_03_cancel_while_idle_does_not_poison_the_next_prompt(workspace: Workspace) -> None:
    session = workspace.session()
    assert workspace.cancel(session)["covered"] == []
    run = workspace.prompt(session, "hello")
    assert workspace.ended(run["run_id"])["state"] == "completed"
    assert finish_of(workspace.messages(session)[-1]) == "end_turn"
