"""The event stream as clients see it: one order for all, resuming without a hole, gaps that are told (R9, R16)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, provider_config, running, text_of
from tests.support.stream import Seen, Stream, transcript

pytestmark = pytest.mark.borrows_server

WORDS = "{n} wörds 🐦 "


def spoken(count: int) -> str:
    return "".join(WORDS.replace("{n}", str(n)) for n in range(count))


def numbers(events: list[Seen]) -> list[int]:
    return [int(event.id.partition(".")[2]) for event in events]


def told(count: int) -> Callable[[list[Seen]], bool]:
    """Whether so many chunks of the answer have been streamed."""
    return lambda seen: "".join(e.payload["delta"] for e in seen if e.type == "message_delta") == spoken(count)


def grown(seen: list[Seen], count: int) -> bool:
    """Whether a message with so many chunks of the answer was sent as a whole."""
    return any(e.type == "message" and text_of(e.payload) == spoken(count) for e in seen)


def rich(request: Recorded) -> Reply:
    """Thoughts, a tool call in pieces, and then text."""
    if request.call_number == 0:
        call = Call(name="view", input={"file_path": "nö such file 🐦"}, pieces=7)
        return Reply(reasoning="I should look — first 🤔", text="Let me see. ", tools=(call,))
    return Reply(text=WORDS, chunks=30)


def test_r9_all_clients_get_the_same_bytes(workspace: Workspace, model: FakeModel) -> None:
    model.on(rich)
    session = workspace.session()
    streams = [workspace.stream(client_id=str(uuid.uuid4())) for _ in range(4)]
    for run_id in ("r1", "r2"):
        workspace.prompt(session, run_id, run_id=run_id)
    parts = []
    for stream in streams:
        stream.terminal("r2")
        raw = bytes(stream.raw)
        parts.append(raw[raw.index(b"id: ") : raw.index(b'{"type":"run_complete"', raw.index(b'"run_id":"r2"'))])
    assert parts[0].count(b"\n\n") > 20
    assert parts == [parts[0]] * 4


def test_r9_a_stream_tells_everything_that_the_store_has(workspace: Workspace, model: FakeModel) -> None:
    model.on(rich)
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    stream.terminal("r1")
    assert bytes(stream.raw).startswith(b"retry: 1000\n\n")
    assert list(transcript(stream.events).values()) == workspace.messages(session)
    parts = [part["type"] for part in workspace.messages(session)[1]["parts"]]
    assert parts == ["reasoning", "text", "tool_call", "finish"]
    assert {e.payload["kind"] for e in stream.of_type("message_delta")} == {"reasoning", "text", "tool_input"}
    assert numbers(stream.durable) == list(range(2, len(stream.durable) + 2))


@pytest.mark.parametrize("in_query", [False, True], ids=["header", "query"])
def test_scenario_23_resuming_in_the_middle_of_an_answer(
    workspace: Workspace, model: FakeModel, in_query: bool
) -> None:
    model.on(lambda request: Reply(text=WORDS, chunks=60, gates={20: "on", 40: "end"}))
    session = workspace.session()
    first = workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    first.wait_for(told(20))
    first.close()
    model.release("on")
    witness = workspace.stream()
    witness.wait_for(lambda seen: any(text_of(m) == spoken(40) for m in transcript(seen).values()))
    second = workspace.stream(last_event_id=first.last_id, id_in_query=in_query)
    second.wait_for(lambda seen: any(text_of(m) == spoken(40) for m in transcript(seen).values()))
    model.release("end")
    second.terminal("r1")
    stored = workspace.messages(session)
    assert text_of(stored[-1]) == spoken(60)
    assert list(transcript([*first.events, *second.events]).values()) == stored
    ids = numbers([*first.durable, *second.durable])
    assert ids == list(range(ids[0], ids[0] + len(ids)))


def test_scenario_23_resuming_from_every_event_there_ever_was(workspace: Workspace, model: FakeModel) -> None:
    model.on(rich)
    session = workspace.session()
    whole = workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    whole.terminal("r1")
    for index, event in enumerate(whole.durable):
        resumed = workspace.stream(last_event_id=event.id)
        rest = whole.durable[index + 1 :]
        if rest:
            resumed.wait_for(lambda seen, last=rest[-1]: last in seen)  # type: ignore[misc] # it has its default
        assert resumed.durable == rest
        resumed.close()


@pytest.mark.parametrize("last_id", ["nonsense", "1.1", "{epoch}.999999", "{epoch}.-1", "{epoch}.1e3", "9" * 400])
def test_r16_an_unknown_id_is_told_as_a_gap_and_the_stream_goes_on(workspace: Workspace, last_id: str) -> None:
    session = workspace.session()
    before = workspace.stream()
    workspace.prompt(session, "one", run_id="r1")
    before.terminal("r1")
    epoch = before.last_id.partition(".")[0]
    stream = workspace.stream(last_event_id=last_id.replace("{epoch}", epoch))
    first = stream.wait_for(lambda seen: [e for e in seen if e.type != "presence"])[0]
    assert (first.type, first.id) == ("gap", "")
    assert first.payload["resume_from"] == before.last_id
    workspace.prompt(session, "two", run_id="r2")
    assert stream.terminal("r2")["text"]
    resumed = workspace.stream(last_event_id=first.payload["resume_from"])
    assert resumed.terminal("r2")["text"]
    assert not resumed.of_type("gap")


@pytest.fixture
def forgetful(tmp_path: Path, model: FakeModel) -> Iterator[Workspace]:
    """A workspace that keeps few events."""
    with running(tmp_path, provider_config(model.url, "[limits]\nevents_kept = 50")) as server:
        workspace = server.workspace()
        yield workspace
        workspace.close()


def test_r16_an_id_that_is_too_old_is_told_as_a_gap(forgetful: Workspace) -> None:
    session = forgetful.session()
    stream = forgetful.stream()
    forgetful.request("PUT", f"/sessions/{session}", {"title": "first"}).ok()
    old = stream.wait_for(lambda seen: [e.id for e in seen if e.id])[0]
    pending = []
    for number in range(1100):
        pending.append(forgetful.begin("PUT", f"/sessions/{session}", {"title": str(number)}))
        if len(pending) == 50:
            while pending:
                pending.pop().answer().ok()
    stream.wait_for(lambda seen: len([e for e in seen if e.id]) == 1101)
    late = forgetful.stream(last_event_id=old)
    assert late.wait_for(lambda seen: [e for e in seen if e.type != "presence"])[0].type == "gap"
    recent = stream.durable[-10]
    resumed = forgetful.stream(last_event_id=recent.id)
    resumed.wait_for(lambda seen: len([e for e in seen if e.id]) == 9)
    assert resumed.durable == stream.durable[-9:]
    assert numbers(stream.durable) == list(range(2, 1103))


def test_r16_a_stream_of_one_session(workspace: Workspace) -> None:
    one, two = workspace.session(), workspace.session()
    everything = workspace.stream()
    narrow = workspace.stream(session_id=one)
    for run_id, session in (("r1", one), ("r2", two), ("r3", one)):
        workspace.prompt(session, run_id, run_id=run_id)
        everything.terminal(run_id)
    workspace.request("POST", "/permissions/skip", {"skip": True}).ok()
    narrow.wait_for(lambda seen: [e for e in seen if e.type == "config_changed"])
    everything.wait_for(lambda seen: [e for e in seen if e.type == "config_changed"])
    mine = [e for e in everything.durable if e.payload.get("session_id", e.payload.get("id")) in (one, None)]
    assert narrow.durable == mine
    assert all(e.payload["session_id"] == one for e in narrow.of_type("message_delta"))
    resumed = workspace.stream(session_id=one, last_event_id=narrow.durable[0].id)
    resumed.wait_for(lambda seen: [e for e in seen if e.type == "config_changed"])
    assert resumed.durable == narrow.durable[1:]


def test_r16_without_deltas_text_grows_as_whole_messages(workspace: Workspace, model: FakeModel) -> None:
    """What a v1 client expects: never a delta, each message longer than the last, not more often than each 33 ms."""
    model.on(lambda request: Reply(text=WORDS, chunks=300, delay_ms=1, gates={100: "on", 200: "end"}))
    session = workspace.session()
    old, new = workspace.stream(deltas=False), workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    for count, gate in ((100, "on"), (200, "end")):  # else a server that is held up may get the whole text at once
        old.wait_for(lambda seen, count=count: grown(seen, count))  # type: ignore[misc] # it has its default
        model.release(gate)
    assert old.terminal("r1") == new.terminal("r1")
    assert not old.of_type("message_delta")
    texts = [text_of(e.payload) for e in old.of_type("message") if e.payload["role"] == "assistant"]
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
    assert texts[-1] == spoken(300)
    run = workspace.run("r1")
    assert 3 <= len(texts) <= (run["ended_at"] - run["started_at"]) / 0.033 + 4
    assert old.durable == new.durable


def test_r16_a_late_joiner_gets_the_answer_in_progress(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(text=WORDS, chunks=20, gates={10: "on"}))
    session = workspace.session()
    early = workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    early.wait_for(told(10))
    for deltas in (True, False):
        late = workspace.stream(deltas=deltas)
        late.wait_for(lambda seen: any(text_of(m) == spoken(10) for m in transcript(seen).values()))
    assert text_of(workspace.messages(session)[-1]) == spoken(10)
    model.release("on")
    late.terminal("r1")
    assert text_of(list(transcript(late.events).values())[-1]) == spoken(20)


def test_r16_a_large_prompt_disconnects_nobody(workspace: Workspace) -> None:
    session = workspace.session()
    streams: list[Stream] = [workspace.stream(), workspace.stream(deltas=False)]
    prompt = "x" * (12 * 1024 * 1024)
    workspace.prompt(session, prompt, run_id="r1")
    for stream in streams:
        assert stream.terminal("r1", timeout=60)["text"]
        assert not stream.ended
    resumed = workspace.stream(last_event_id=re.sub(r"\d+$", "1", streams[0].last_id))
    assert resumed.terminal("r1", timeout=60)["text"]


@pytest.mark.heavy  # it waits; what is sent is in tests/server/test_event_stream_route.py
def test_r16_a_quiet_stream_is_kept_alive(server: Server, workspace: Workspace) -> None:
    stream = workspace.stream()
    stream.wait_for(lambda seen: b": keep-alive\n\n" in stream.raw or stream.ended, timeout=60)
    assert not stream.ended
