"""What a command prints, as clients of a real server see it while it runs, and what is left when it has ended."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from itertools import takewhile
from typing import Any

import pytest

from covey.protocol.events import ToolOutputDelta, decode_event
from covey.protocol.sse import FrameDecoder
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, provider_config
from tests.support.stream import Seen, Stream

pytestmark = pytest.mark.borrows_server

GATED = "mkfifo {gate}; printf 'wörd {gate}\\n'; read -r word < {gate}; printf \"got $word 👋\\n\""
"""Prints, waits until somebody writes to the fifo, and prints again."""


@pytest.fixture
def server_config(model: FakeModel) -> str:
    return provider_config(model.url, '[permissions]\nallow = ["bash"]\n')


def commands(request: Recorded) -> Reply:
    """The prompt is the input of a bash call."""
    if request.call_number == 0:
        return Reply(text="", tools=(Call(name="bash", input=json.loads(request.prompt)),))
    return Reply(text="done")


def start(workspace: Workspace, run_id: str, command: str, **fields: Any) -> str:
    session: str = workspace.session()
    workspace.prompt(session, json.dumps({"command": command, **fields}), run_id=run_id)
    return session


def outputs(seen: list[Seen], run_id: str) -> list[Any]:
    return [event.payload for event in seen if event.type == "tool_output" and event.payload["run_id"] == run_id]


def printed(seen: list[Seen], run_id: str = "r1") -> str:
    """What was sent of an output; every byte of the rest is accounted for."""
    text, end = "", 0
    for output in outputs(seen, run_id):
        assert output["offset"] == end + output.get("dropped", 0)
        end = output["offset"] + len(output["delta"].encode())
        text += output["delta"]
    return text


def shows(text: str, run_id: str = "r1") -> Callable[[list[Seen]], bool]:
    return lambda seen: printed(seen, run_id) == text


def let_go(server: Server, gate: str = "gate", word: str = "it") -> None:
    (server.project / gate).write_text(f"{word}\n")


def result_of(workspace: Workspace, session: str) -> str:
    parts = [part for message in workspace.messages(session) for part in message["parts"]]
    return "".join(part["data"]["content"] for part in parts if part["type"] == "tool_result")


def until_end(seen: list[Seen], run_id: str) -> list[Seen]:
    """What came before the terminal event."""
    return list(takewhile(lambda e: not (e.type == "run_complete" and e.payload["run_id"] == run_id), seen))


def test_every_client_sees_what_a_command_prints_while_it_waits(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(commands)
    streams = [workspace.stream(client_id=str(uuid.uuid4()), deltas=deltas) for deltas in (True, False)]
    session = start(workspace, "r1", GATED.format(gate="gate"))
    for stream in streams:
        stream.wait_for(shows("wörd gate\n"))
    narrowed = workspace.stream(client_id=str(uuid.uuid4()), session_id=session)
    resumed = workspace.stream(client_id=str(uuid.uuid4()), last_event_id=streams[0].durable[0].id)
    for late in (narrowed, resumed):
        late.wait_for(shows("wörd gate\n"))
    let_go(server)
    whole = "wörd gate\ngot it 👋\n"
    for stream in (*streams, narrowed, resumed):
        stream.terminal("r1")
        assert printed(stream.events) == whole
        assert all(event.id == "" and event.change == "updated" for event in stream.of_type("tool_output"))
        results = [e for e in stream.events if e.type == "message" and e.payload["role"] == "tool"]
        assert stream.events.index(results[0]) > stream.events.index(stream.of_type("tool_output")[-1])
    assert result_of(workspace, session) == f"{whole}\nexit code 0"
    answer = next(m for m in workspace.messages(session) if m["role"] == "assistant")
    call = next(part["data"]["id"] for part in answer["parts"] if part["type"] == "tool_call")
    for output in outputs(streams[0].events, "r1"):
        assert (output["session_id"], output["message_id"], output["tool_call_id"]) == (session, answer["id"], call)
    fresh = workspace.stream(client_id=str(uuid.uuid4()))
    workspace.session()
    fresh.wait_for(lambda seen: any(event.type == "session" for event in seen))
    assert not fresh.of_type("tool_output"), "the stored result is what counts now"


def test_our_own_client_reads_it(server: Server, workspace: Workspace, model: FakeModel) -> None:
    model.on(commands)
    stream = workspace.stream()
    start(workspace, "r1", "printf 'a\\0b\\033[1m\\r\\n'")
    stream.terminal("r1")
    raw = bytes(stream.raw)
    events = [decode_event(frame.data) for frame in FrameDecoder().feed(raw)]
    found = [event.payload for event in events if event and isinstance(event.payload, ToolOutputDelta)]
    assert "".join(output.delta for output in found) == "a\0b\x1b[1m\r\n"


def test_two_commands_at_the_same_time_are_kept_apart(server: Server, workspace: Workspace, model: FakeModel) -> None:
    model.on(commands)
    stream = workspace.stream()
    sessions = {run_id: start(workspace, run_id, GATED.format(gate=run_id)) for run_id in ("r1", "r2")}
    for run_id in sessions:
        stream.wait_for(shows(f"wörd {run_id}\n", run_id))
    for run_id in reversed(sessions):
        let_go(server, run_id, run_id)
    for run_id, session in sessions.items():
        stream.terminal(run_id)
        assert printed(stream.events, run_id) == f"wörd {run_id}\ngot {run_id} 👋\n"
        assert {output["session_id"] for output in outputs(stream.events, run_id)} == {session}


def test_r9_nothing_is_printed_after_the_end_of_a_run_that_was_cancelled(
    workspace: Workspace, model: FakeModel
) -> None:
    """A command that goes on printing while it is ended: what it says then is seen before the terminal event."""
    model.on(commands)
    stream = workspace.stream()
    session = start(workspace, "r1", "trap 'for i in 1 2 3; do echo bye; sleep 0.1; done; exit' TERM; yes")
    stream.wait_for(lambda seen: outputs(seen, "r1"))
    workspace.cancel(session)
    assert stream.terminal("r1")["cancelled"] is True
    workspace.prompt(session, json.dumps({"command": "echo next"}), run_id="r2")
    stream.terminal("r2")
    seen = list(stream.events)
    assert outputs(seen, "r1") == outputs(until_end(seen, "r1"), "r1")
    assert printed(seen, "r2") == "next\n"


def test_a_job_is_seen_for_the_call_that_started_it_until_it_ends(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(commands)
    stream = workspace.stream()
    session = start(workspace, "r1", GATED.format(gate="gate"), background=True)
    stream.terminal("r1")
    stream.wait_for(shows("wörd gate\n"))
    late = workspace.stream(client_id=str(uuid.uuid4()))
    late.wait_for(shows("wörd gate\n"))
    let_go(server)
    for watcher in (stream, late):
        watcher.wait_for(shows("wörd gate\ngot it 👋\n"))
    assert "Started job-1" in result_of(workspace, session)
    workspace.prompt(session, json.dumps({"command": "sleep 60", "background": True}), run_id="r2")
    stream.terminal("r2")
    workspace.request("DELETE", f"/sessions/{session}").ok()


def test_of_a_flood_the_end_is_seen_and_all_of_it_is_accounted_for(workspace: Workspace, model: FakeModel) -> None:
    model.on(commands)
    streams: list[Stream] = [workspace.stream(client_id=str(uuid.uuid4())) for _ in range(3)]
    start(workspace, "r1", "seq 1 2000000")
    size = sum(len(str(number)) + 1 for number in range(1, 2_000_001))
    for stream in streams:
        stream.terminal("r1")
        text, last = printed(stream.events), outputs(stream.events, "r1")[-1]
        assert last["offset"] + len(last["delta"]) == size
        assert text.endswith("1999999\n2000000\n")
        assert len(text) + sum(output.get("dropped", 0) for output in outputs(stream.events, "r1")) == size
        assert max(len(output["delta"]) for output in outputs(stream.events, "r1")) <= 64 * 1024
