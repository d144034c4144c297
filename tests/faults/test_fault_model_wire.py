"""Between server and model: an answer that breaks at any byte is asked for again. One that breaks each time fails its
run with a clear text, and nothing else."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.watching import place
from tests.support.fake_model import FakeModel, Recorded, Reply
from tests.support.fault_proxy import Fault, FaultProxy, Link, Plan, Way
from tests.support.server import Server, Workspace, outline, provider_config, running, text_of
from tests.support.stream import transcript

TEXT = "wörd {n} 😀 "
CHUNKS = 4
WHOLE = "".join(TEXT.replace("{n}", str(n)) for n in range(CHUNKS))
CLOSE = {"connection": "close"}
"""One answer for each connection: what happens to a connection then happens to one run."""
ATTEMPTS = 2
SETTINGS = f"max_attempts = {ATTEMPTS}\nidle_timeout_s = "
HASTY = "hasty/fake"
"""The same model behind a provider that does not wait long for it. Only who tests silence asks it: any answer of a busy
machine may take as long."""
CLEAR = re.compile(
    r"(fake|hasty): the model server .*(cut off|closed the connection|silent for|not HTTP|garbage|unknown form|reset)"
)
"""The words for people: who failed, and how."""


class Wire:
    """The proxy between server and model: the prompt says what happens to its connection."""

    def __init__(self, model: FakeModel) -> None:
        self.plans: dict[str, list[Plan]] = {}
        self.chunked = True
        model.on(self.answer)

    def answer(self, request: Recorded) -> Reply:
        return Reply(text=TEXT, chunks=CHUNKS, headers=CLOSE, chunked=self.chunked)

    def __call__(self, link: Link) -> Plan:
        """Of the prompts in a request the last one counts: those before it are history."""
        names = re.findall(r"<([\w-]+)>", link.head.decode("utf-8", "replace"))
        plans = self.plans.get(names[-1])
        return plans.pop(0) if plans else Plan()


@pytest.fixture(scope="module")
def proxy(model: FakeModel) -> Iterator[FaultProxy]:
    with FaultProxy(model.port) as made:
        yield made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, proxy: FaultProxy) -> Iterator[Server]:
    url = f"http://127.0.0.1:{proxy.port}/v1"
    hasty = f'[providers.hasty]\ntype = "openai-compatible"\nbase_url = "{url}"\n{SETTINGS}1.5'
    config = provider_config(url, hasty, provider=f"{SETTINGS}20")
    with running(tmp_path_factory.mktemp("model-wire"), config) as started:
        yield started


@pytest.fixture
def wire(proxy: FaultProxy, model: FakeModel) -> Wire:
    made = Wire(model)
    proxy.decide = made
    return made


@pytest.fixture
def workspace(server: Server, tmp_path: Path) -> Iterator[Workspace]:
    opened = place(server, tmp_path / "project")
    yield opened
    opened.close()


def raw_answer(model: FakeModel) -> bytes:
    """Every byte of an undisturbed answer."""
    body = b'{"messages": []}'
    with socket.create_connection(("127.0.0.1", model.port), timeout=10) as connection:
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        data = b""
        while not data.endswith(b"0\r\n\r\n") and (more := connection.recv(4096)):
            data += more
        return data


def post(workspace: Workspace, name: str, model: str = "") -> str:
    """A prompt, perhaps for another model, and another one behind it, in a session of their own."""
    session = workspace.session("named")  # no title is looked for, on a connection that is counted here
    workspace.prompt(session, f"<{name}>", run_id=name, model=model)
    workspace.prompt(session, f"<good-after-{name}>", run_id=f"good-after-{name}")
    return session


def check_failed(workspace: Workspace, session: str, name: str) -> Any:
    """The run failed with a clear text, its record is there, and the next one ran. Gives the half answer."""
    run = workspace.ended(name)
    assert run["state"] == "failed", run
    assert CLEAR.match(run["error"]), run["error"]
    good = workspace.ended(f"good-after-{name}")
    assert (good["state"], good["text"]) == ("completed", WHOLE)
    messages = workspace.messages(session)
    assert outline(messages) == [f"<{name}>", "assistant error", f"<good-after-{name}>", "assistant end_turn"]
    assert messages[1]["parts"][-1]["data"]["details"] == run["error"]
    assert WHOLE.startswith(text_of(messages[1]))
    return text_of(messages[1])


def down(after: int, fault: Fault) -> Plan:
    return Plan(down=Way(after=after, fault=fault))


@pytest.mark.parametrize(
    ("fault", "chunked"),
    [
        *((fault, chunked) for fault in ("cut", "reset", "half_close") for chunked in (True, False)),
        ("garbage", True),  # in a body without lengths, strange lines may be anything, and are passed over
    ],
)
def test_r8_an_answer_that_breaks_at_any_byte_fails_its_run_alone(
    workspace: Workspace, model: FakeModel, wire: Wire, fault: Fault, chunked: bool
) -> None:
    """Up to the word that ends it: behind that word the answer is whole, and the rest does not matter."""
    wire.chunked = chunked
    answer = raw_answer(model)
    finish = answer.index(b'"stop"')
    positions = [*range(1, finish, 67), finish]
    wire.plans = {f"{fault}-at-{n}": [down(n, fault)] * ATTEMPTS for n in positions}
    sessions = {name: post(workspace, name) for name in list(wire.plans)}
    halves = {check_failed(workspace, session, name) for name, session in sessions.items()}
    assert len(halves) == CHUNKS + 1, "text that arrived before the fault is kept"
    wire.plans = {f"late-{fault}-at-{n}": [down(n, fault)] for n in (answer.index(b"[DONE]"), len(answer) - 1)}
    for name in list(wire.plans):
        post(workspace, name)
        assert workspace.ended(name)["text"] == WHOLE
        assert workspace.ended(f"good-after-{name}")["text"] == WHOLE


def test_r8_an_answer_that_stalls_fails_its_run_alone(
    workspace: Workspace, model: FakeModel, wire: Wire, proxy: FaultProxy
) -> None:
    before = proxy.struck
    finish = raw_answer(model).index(b'"stop"')
    wire.plans = {f"stall-at-{n}": [down(n, "stall")] * ATTEMPTS for n in range(0, finish, 200)}
    sessions = {name: post(workspace, name, HASTY) for name in list(wire.plans)}
    for name, session in sessions.items():
        check_failed(workspace, session, name)
        assert "silent for 1.5 s" in workspace.run(name)["error"]
    assert proxy.struck == before + ATTEMPTS * len(sessions), "before the first byte of an answer too"


@pytest.mark.parametrize("fault", ["cut", "reset", "half_close"])
def test_r8_an_answer_that_breaks_once_is_taken_back_and_comes_whole(
    workspace: Workspace, model: FakeModel, wire: Wire, fault: Fault
) -> None:
    stream = workspace.stream()
    finish = raw_answer(model).index(b'"stop"')
    wire.plans = {f"{fault}-once-at-{n}": [down(n, fault)] for n in (*range(200, finish, 201), finish)}
    sessions = {name: post(workspace, name) for name in list(wire.plans)}
    for name, session in sessions.items():
        assert stream.terminal(name)["text"] == WHOLE
        assert text_of(workspace.messages(session)[1]) == WHOLE
        events = [e.payload for e in stream.of_type("agent_event") if e.payload["run_id"] == name]
        assert [event["type"] for event in events] == ["retry", "agent_finished"]
        assert len([e for e in stream.of_type("run_complete") if e.payload["run_id"] == name]) == 1
    heard = transcript(stream.events)
    stored = [message for session in sessions.values() for message in workspace.messages(session)[:2]]
    assert [heard[message["id"]] for message in stored] == stored, "who followed the deltas has the same"


@pytest.mark.parametrize("fault", ["cut", "reset", "half_close"])
def test_r8_a_request_of_which_no_answer_was_seen_is_asked_again(
    workspace: Workspace, wire: Wire, fault: Fault
) -> None:
    """Nothing was said yet, so nothing can be said twice. One terminal event, and the retry is reported."""
    stream = workspace.stream()
    wire.plans = {
        f"{fault}-unanswered": [down(0, fault)],
        f"{fault}-in-the-request": [Plan(up=Way(after=300, fault=fault))],
    }
    for name in list(wire.plans):
        post(workspace, name)
        assert stream.terminal(name)["text"] == WHOLE
        events = [e.payload for e in stream.of_type("agent_event") if e.payload["run_id"] == name]
        assert [event["type"] for event in events] == ["retry", "agent_finished"]
        assert CLEAR.match(events[0]["reason"])
        assert len([e for e in stream.of_type("run_complete") if e.payload["run_id"] == name]) == 1


def test_a_slow_network_is_not_a_broken_one(workspace: Workspace, wire: Wire) -> None:
    """Three bytes at a time, in the middle of characters and lines; or everything late."""
    wire.plans = {
        "drip": [Plan(down=Way(piece=3, delay_s=0.001))],
        "drip-up": [Plan(up=Way(piece=50, delay_s=0.001))],
        "late": [Plan(up=Way(delay_s=0.3), down=Way(delay_s=0.3))],
    }
    for name in list(wire.plans):
        post(workspace, name)
    for name in ("drip", "drip-up", "late"):
        run = workspace.ended(name)
        assert (run["state"], run["text"]) == ("completed", WHOLE)


def test_r5_a_cancel_reaches_a_run_whose_model_is_behind_a_dead_wire(
    workspace: Workspace, wire: Wire, proxy: FaultProxy
) -> None:
    before = proxy.struck
    wire.plans = {"dead": [down(400, "stall")]}
    session = post(workspace, "dead")
    proxy.wait_for(lambda: proxy.struck == before + 1)
    assert [run["run_id"] for run in workspace.cancel(session)["covered"]] == ["dead", "good-after-dead"]
    assert workspace.ended("dead")["state"] == "cancelled"
    assert workspace.ended("good-after-dead")["state"] == "cancelled"
    assert outline(workspace.messages(session)) == ["<dead>", "assistant canceled"]
