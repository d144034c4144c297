"""Many watchers, slow ones and ones that come and go: nobody slows another, and nothing is left behind (R16)."""

from __future__ import annotations

import http.client
import json
import socket
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from covey.protocol.sse import FrameDecoder
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, outline, text_of, until
from tests.support.stream import Seen, Stream, transcript

MIB = 1024 * 1024
LINE = "{n} sixty characters of text, as many models send at once.. \n"


def stalled(workspace: Workspace) -> http.client.HTTPResponse:
    """A client that has opened its stream, and then reads nothing."""
    connection = http.client.HTTPConnection("127.0.0.1", workspace.server.port, timeout=60)
    connection.sock = socket.socket()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sock.connect(("127.0.0.1", workspace.server.port))
    headers = {"Authorization": f"Bearer {workspace.server.token}", "Connection": "close"}
    connection.request("GET", f"{workspace.path}/events?client_id={uuid.uuid4()}&deltas=1", headers=headers)
    return connection.getresponse()


def read_on(response: http.client.HTTPResponse) -> list[Seen]:
    """All that the stream still gives until it ends."""
    decoder = FrameDecoder()
    events = []
    while chunk := response.read1(MIB):
        for frame in decoder.feed(chunk):
            value = json.loads(frame.data)
            events.append(Seen(frame.id, value["type"], value["payload"]["type"], value["payload"]["payload"]))
    response.close()
    return events


@pytest.mark.timeout(300)
def test_scenario_22_a_client_stops_reading_while_50000_deltas_stream(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(lambda request: Reply(text=LINE, chunks=50_000, delay_ms=0.02))
    session = workspace.session()
    reader = workspace.stream(client_id=str(uuid.uuid4()))
    idle = stalled(workspace)
    before = server.resident_bytes()
    for run_id in ("r1", "r2"):
        workspace.prompt(session, "hello", run_id=run_id)
        reader.terminal(run_id, timeout=100)
    text = "".join(LINE.replace("{n}", str(n)) for n in range(50_000))
    assert not reader.ended
    assert [text_of(m) for m in transcript(reader.events).values() if m["role"] == "assistant"] == [text, text]
    assert server.resident_bytes() - before < 150 * MIB
    missed = read_on(idle)
    assert "r2" not in {e.payload["run_id"] for e in missed if e.type == "run_complete"}
    last_id = next((e.id for e in reversed(missed) if e.id), reader.durable[0].id)
    resumed = workspace.stream(last_event_id=last_id)
    resumed.terminal("r2", timeout=60)
    messages = transcript([e for e in [*missed, *resumed.events] if e.type == "message"])
    assert [text_of(m) for m in messages.values() if m["role"] == "assistant"] == [text, text]


def test_r16_a_client_that_does_not_read_is_not_waited_for(workspace: Workspace, model: FakeModel) -> None:
    """Ten of them: a server that waited would do so for half a minute, until it gives them up."""
    model.on(lambda request: Reply(text=LINE, chunks=20_000))
    session = workspace.session()
    reader = workspace.stream()
    idle = [stalled(workspace) for _ in range(10)]
    workspace.prompt(session, "hello", run_id="r1")
    assert reader.terminal("r1", timeout=60)["text"].count("\n") == 20_000
    run = workspace.run("r1")
    assert run["ended_at"] - run["started_at"] < 25
    for response in idle:
        response.close()
    until(lambda: workspace.server.metric("event_streams_open") == 1)


def test_r16_nothing_is_left_of_clients_that_came_and_went(server: Server, workspace: Workspace) -> None:
    """E11: three hundred connects and disconnects, half of them without a goodbye."""
    session = workspace.session()

    def visit(number: int) -> None:
        stream = workspace.stream(client_id=str(uuid.uuid4()), deltas=bool(number % 2))
        if number % 3 == 0:
            workspace.prompt(session, "hello", mode="own_turn")
        stream.close()

    def settle() -> tuple[int, int]:
        until(lambda: server.metric("event_streams_open") == 0 and not workspace.get("/agent")["is_busy"])
        return server.descriptors(), server.resident_bytes()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(visit, range(60)))
        descriptors, memory = settle()
        list(pool.map(visit, range(300)))
    settle()
    until(lambda: server.descriptors() <= descriptors + 4)  # the server has yet to see who hung up last
    assert server.resident_bytes() <= memory + 16 * MIB


def test_r16_resuming_through_large_events_costs_bounded_memory(server: Server, workspace: Workspace) -> None:
    """Each event that tells of a run carries its prompt: all of them together are some 100 MiB."""
    first = workspace.stream()
    prompt = "x" * (2 * MIB)
    run_ids = [workspace.prompt(workspace.session(), prompt)["run_id"] for _ in range(12)]
    for run_id in run_ids:
        first.terminal(run_id, timeout=60)
    start = first.durable[0].id
    first.close()
    before = server.metric("process_resident_memory_peak_bytes")
    resumed = workspace.stream(last_event_id=start)
    for run_id in run_ids:
        resumed.terminal(run_id, timeout=60)
    assert server.metric("process_resident_memory_peak_bytes") - before < 50 * MIB


def test_r16_fifty_watchers_all_see_the_end(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(text=LINE, chunks=500))
    session = workspace.session()
    streams = [workspace.stream(client_id=str(uuid.uuid4()), deltas=bool(n % 2)) for n in range(50)]
    workspace.prompt(session, "hello", run_id="r1")
    ends = [stream.terminal("r1") for stream in streams]
    assert ends == [ends[0]] * 50
    stored = workspace.messages(session)
    for stream in streams:
        assert list(transcript(stream.events).values()) == stored


def asking(request: Recorded) -> Reply:
    """A tool call that needs a permission, and then an answer."""
    call = Call(name="bash", input={"command": "echo done > done.txt"})
    return Reply(text="", tools=(call,)) if request.call_number == 0 else Reply(text="finished")


def request_seen(stream: Stream) -> Any:
    return stream.wait_for(lambda seen: [e.payload for e in seen if e.type == "permission_request"])[0]


def grant(workspace: Workspace, permission: Any, action: str) -> bool:
    body = {"permission": {"id": permission["id"]}, "action": action}
    return bool(workspace.request("POST", "/permissions/grant", body).ok()["resolved"])


@pytest.mark.parametrize("action", ["allow", "deny"])
def test_scenario_25_a_permission_outlives_the_client_that_saw_it(
    server: Server, workspace: Workspace, model: FakeModel, action: str
) -> None:
    model.on(asking)
    session = workspace.session()
    first = workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    permission = request_seen(first)
    first.close()
    later = server.workspace()
    second = later.stream()
    assert request_seen(second) == permission
    assert later.get("/permissions") == [permission]
    assert (permission["session_id"], permission["run_id"]) == (session, "r1")
    assert permission["params"]["command"] == "echo done > done.txt"
    assert later.run("r1")["waiting_on"] == "permission"
    assert grant(later, permission, action) is True
    assert grant(workspace, permission, "allow") is False
    assert second.terminal("r1")["text"] == "finished"
    (notice,) = [e.payload for e in second.of_type("permission_notification")]
    assert (notice["granted"], notice["denied"]) == (action == "allow", action == "deny")
    assert (server.project / "done.txt").exists() == (action == "allow")
    assert outline(later.messages(session)) == ["hello", "assistant tool_use", "tool", "assistant end_turn"]
    late = later.stream()
    workspace.prompt(workspace.session(), "another", run_id="r2")
    request_seen(late)
    assert later.get("/permissions")[0]["id"] != permission["id"]
    later.close()


def test_scenario_25_many_answer_at_once_and_the_first_one_wins(workspace: Workspace, model: FakeModel) -> None:
    model.on(asking)
    stream = workspace.stream()
    workspace.prompt(workspace.session(), "hello", run_id="r1")
    permission = request_seen(stream)
    with ThreadPoolExecutor(8) as pool:
        actions = ["allow", "deny"] * 4
        resolved = list(pool.map(lambda action: grant(workspace, permission, action), actions))
    assert resolved.count(True) == 1
    stream.terminal("r1")
    _, notice = [e.payload for e in stream.of_type("permission_notification")]
    assert notice["granted"] == (actions[resolved.index(True)] == "allow")


def test_scenario_25_a_cancel_closes_the_request_for_everybody(workspace: Workspace, model: FakeModel) -> None:
    """A16: a later answer is refused, not taken."""
    model.on(asking)
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    permission = request_seen(stream)
    workspace.cancel(session)
    assert stream.terminal("r1")["cancelled"] is True
    assert [e.payload["denied"] for e in stream.of_type("permission_notification")] == [False, True]
    assert grant(workspace, permission, "allow") is False
    assert workspace.get("/permissions") == []
    assert not (workspace.server.project / "done.txt").exists()
