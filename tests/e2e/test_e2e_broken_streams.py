"""An answer that breaks off, with the whole server around it: what clients see, and kill -9 in the pause."""

from __future__ import annotations

from tests.support.fake_model import Call, FakeModel, Reply
from tests.support.server import Server, Workspace, outline, text_of
from tests.support.stream import Seen, transcript


def retries(seen: list[Seen]) -> list[Seen]:
    return [e for e in seen if e.type == "agent_event" and e.payload["type"] == "retry"]


def test_r8_a_step_that_breaks_off_is_taken_back_and_tried_again(workspace: Workspace, model: FakeModel) -> None:
    """Its first step is whole and stays; the second breaks off in the middle of a call, and comes whole then."""
    look = Call(name="ls", input={})
    replies = [
        Reply(text="First. ", tools=(look,)),
        Reply(text="I loo", tools=(look,), ending="cut"),
        Reply(text="I see."),
    ]
    model.on(lambda request: replies[len(model.requests) - 1])
    session, stream = workspace.session(), workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    assert stream.terminal("r1")["text"] == "I see."
    (retry,) = retries(stream.events)
    assert "cut off" in retry.payload["reason"] and retry.payload["attempt"] == 1
    assert len(stream.of_type("run_complete")) == 1 and not stream.errors
    messages = workspace.messages(session)
    assert outline(messages) == ["hello", "assistant tool_use", "tool", "assistant end_turn"]
    assert model.requests[1].body == model.requests[2].body
    broken = messages[-1]["id"]
    after = stream.events[stream.events.index(retry) :]
    first = next(e for e in after if e.type == "message" and e.payload["id"] == broken)
    assert first.payload["parts"] == [], "the step begins with a whole message that takes its parts back"
    assert transcript(stream.events)[broken] == messages[-1]


def test_r15_kill_in_the_pause_before_a_step_is_tried_again(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(lambda request: Reply(text="half", ending="cut") if request.prompt == "r1" else Reply())
    session, stream = workspace.session(), workspace.stream()
    workspace.prompt(session, "r1", run_id="r1")
    stream.wait_for(lambda seen: len(retries(seen)) == 2)  # the pauses grow: this one has a second
    server.kill()
    asked = len(model.requests)
    server.start()
    run = workspace.ended("r1")
    assert run["state"] == "interrupted"
    (answer,) = [m for m in workspace.messages(session) if m["role"] == "assistant"]
    assert text_of(answer) in ("half", "") and answer["parts"][-1]["data"]["reason"] == "error"
    workspace.prompt(session, "r2", run_id="r2")
    assert workspace.ended("r2")["state"] == "completed"
    assert len(model.requests) == asked + 1, "what was interrupted is not asked for again"
