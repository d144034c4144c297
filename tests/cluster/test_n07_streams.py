"""N7: streams resume at any node by their last event id; ids go on across owners."""

from __future__ import annotations

from tests.support.cluster import Cluster
from tests.support.fake_model import FakeModel, Reply
from tests.support.server import Workspace, text_of, until
from tests.support.stream import Seen, Stream, transcript


def _stream_at(server: Cluster, number: int, workspace: Workspace, last_id: str = "") -> Stream:
    headers = {"Authorization": f"Bearer {server.token}"}
    if last_id:
        headers["Last-Event-ID"] = last_id
    path = f"{workspace.path}/events?client_id={workspace.client_id}&deltas=1"
    stream = Stream(server.nodes[number % len(server.nodes)].port, path, headers)
    workspace._streams.append(stream)
    return stream


def test_n7_all_nodes_give_the_same_events_in_the_same_order(
    server: Cluster, workspace: Workspace, model: FakeModel
) -> None:
    model.on(lambda request: Reply(text="word {n} ", chunks=50, delay_ms=1))
    streams = [_stream_at(server, number, workspace) for number in range(3)]
    session = workspace.session()
    for number in range(3):
        workspace.prompt(session, f"p{number}", run_id=f"r{number}")
    for stream in streams:
        stream.terminal("r2")
    logs = [[(event.id, event.type, event.payload) for event in stream.durable] for stream in streams]
    assert logs[0] == logs[1] == logs[2]


def test_n7_a_stream_goes_on_at_another_node_for_every_event(
    server: Cluster, workspace: Workspace, model: FakeModel
) -> None:
    """The reader changes its node each time that it has been given something with an id."""
    model.on(lambda request: Reply(text="word {n} ", chunks=40, delay_ms=5))
    whole = workspace.stream()
    session = workspace.session()
    last_id = whole.wait_for(lambda events: next((event.id for event in events if event.id), ""))
    seen: list[Seen] = []
    workspace.prompt(session, "hello", run_id="r1")
    for number in range(200):
        stream = _stream_at(server, number, workspace, last_id)
        stream.wait_for(lambda events: [event for event in events if event.id])
        stream.close()
        seen += stream.events
        last_id = stream.last_id or last_id
        if any(event.type == "run_complete" for event in seen):
            break
    whole.terminal("r1")
    numbers = [int(event.id.split(".")[1]) for event in seen if event.id]
    assert numbers == sorted(set(numbers))
    known = {event.id: event.payload for event in whole.durable}
    assert all(known[event.id] == event.payload for event in seen if event.id)


def test_n7_a_stream_resumes_across_owners(server: Cluster, workspace: Workspace, model: FakeModel) -> None:
    """The owner is killed: streams through other nodes end by themselves, and go on by their id at the next owner."""
    model.on(lambda request: Reply(text="half ", ending="silence") if request.prompt == "one" else Reply(text="done"))
    session = workspace.session()
    owner = server.owner(workspace.id)
    number = next(index for index, node in enumerate(server.nodes) if node is not owner)
    stream = _stream_at(server, number, workspace)
    workspace.prompt(session, "one", run_id="one")
    workspace.prompt(session, "two", run_id="two")
    stream.wait_delta()
    owner.kill()
    stream.wait_end()
    resumed = _stream_at(server, number, workspace, stream.last_id)
    assert resumed.terminal("one")["interrupted"] is True
    assert resumed.terminal("two")["text"] == "done"
    numbers = [int(event.id.split(".")[1]) for event in (*stream.durable, *resumed.durable)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert not [event for event in resumed.events if event.type == "gap"]
    stored = {message["id"]: text_of(message) for message in workspace.messages(session)}
    told = {name: text_of(message) for name, message in transcript([*stream.events, *resumed.events]).items()}
    assert told == stored
    assert server.owner(workspace.id) is not owner


def test_n7_what_goes_through_a_node_that_leaves_ends_in_order(
    server: Cluster, workspace: Workspace, model: FakeModel
) -> None:
    """Streams and requests that wait at it: both go on at another one. Nothing is torn down by force."""
    model.on(lambda request: Reply(gates={0: "never"}))
    session = workspace.session()
    leaving = server.others(workspace.id)[0]
    stream = _stream_at(server, server.nodes.index(leaving), workspace)
    workspace.prompt(session, "hello", run_id="r1")
    model.wait_for(lambda: len(model.requests) == 1)
    waiting = leaving.begin("GET", f"{workspace.path}/runs/r1?wait=60")
    known = len(leaving.log())
    until(lambda: leaving.metric("requests_passed_on_total") or not waiting.is_answered())
    server.leave(leaving)
    stream.wait_end()
    waiting.answer().refused(503, "shutting_down")
    assert leaving.wait() == 0
    said = leaving.log()[known:]
    assert "Traceback" not in said and "Cancel" not in said, said
    workspace.cancel(session)
    assert _stream_at(server, server.nodes.index(server.others(workspace.id)[0]), workspace, stream.last_id).terminal(
        "r1"
    )["cancelled"]
