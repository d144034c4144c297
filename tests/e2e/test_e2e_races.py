"""Many clients doing everything at once. No order is expected, only what must hold in every order."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, until
from tests.support.stream import Seen, transcript

OPERATIONS = 50
"""For each client: enough that prompts, cancels and edits meet in all states, few enough to take a second."""


def varied(request: Recorded) -> Reply:
    """Quick answers, slow ones, tool calls and failures, as the length of the conversation decides."""
    choice = len(request.body["messages"]) % 5
    if choice == 0 and request.call_number == 0:
        return Reply(text="", tools=(Call(name="view", input={"file_path": "nowhere"}),))
    if choice == 1:
        return Reply(text="slowly ", chunks=10, delay_ms=2)
    if choice == 2:
        return Reply(status=400, body="{}")
    return Reply(text="quick")


class Client(threading.Thread):
    """Does whatever comes to its mind, and remembers what it was told."""

    def __init__(self, workspace: Workspace, sessions: list[str], seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self._workspace = workspace
        self._sessions = sessions
        self.accepted: list[str] = []
        self.covered: set[str] = set()
        self.statuses: set[int] = set()

    def run(self) -> None:
        for _ in range(OPERATIONS):
            operation = self._random.choice(
                [self._prompt] * 6
                + [self._cancel, self._cancel_run, self._clear, self._remove, self._edit, self._repeat]
            )
            operation(self._random.choice(self._sessions))

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._workspace.request(method, path, body)
        self.statuses.add(answer.status)
        if isinstance(answer.body, dict) and answer.status == 200:
            self.covered |= {c["run_id"] for c in answer.body.get("covered", []) if c["state_found"] != "unknown"}
        return answer.body

    def _prompt(self, session: str) -> None:
        body: dict[str, Any] = {"session_id": session, "prompt": f"p{len(self.accepted)}"}
        if self._random.random() < 0.6:
            body["run_id"] = str(uuid.uuid4())
        self.accepted.append(self._ask("POST", "/agent", body)["run_id"])

    def _some_run(self) -> str:
        return self._random.choice(self.accepted[-4:] or [str(uuid.uuid4())])

    def _cancel(self, session: str) -> None:
        self._ask("POST", f"/agent/sessions/{session}/cancel")

    def _cancel_run(self, session: str) -> None:
        self._ask("POST", f"/runs/{self._some_run()}/cancel")

    def _clear(self, session: str) -> None:
        self._ask("POST", f"/agent/sessions/{session}/prompts/clear")

    def _remove(self, session: str) -> None:
        self._ask("DELETE", f"/agent/sessions/{session}/prompts/{self._some_run()}")

    def _edit(self, session: str) -> None:
        self._ask("PATCH", f"/agent/sessions/{session}/prompts/{self._some_run()}", {"prompt": "edited"})

    def _repeat(self, session: str) -> None:
        """Post a run id once more, whatever has become of it: most often with another content."""
        if self.accepted:
            self._ask("POST", "/agent", {"session_id": session, "prompt": "p0", "run_id": self._some_run()})


class Wanderer(threading.Thread):
    """Watches, is cut off again and again, and comes back with its last event id."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._workspace = workspace
        self._leave = threading.Event()
        self._first = workspace.stream(client_id=str(uuid.uuid4()))
        self.events: list[Seen] = []
        self.last_id = ""

    def run(self) -> None:
        stream = self._first
        while True:
            stream.wait_for(lambda seen: len(seen) > 30 or self._leave.is_set(), timeout=60)
            leaving = self._leave.is_set()
            if leaving:
                stream.wait_for(lambda seen: any(e.id == self.last_id for e in [*self.events, *seen]))
            stream.close()
            self.events += stream.events
            if leaving:
                return
            stream = self._workspace.stream(client_id=str(uuid.uuid4()), last_event_id=self.last_seen)

    @property
    def last_seen(self) -> str:
        return next((event.id for event in reversed(self.events) if event.id), "")

    def finish(self, last_id: str) -> list[Seen]:
        """Catch up to this event, and give all that was seen."""
        self.last_id = last_id
        self._leave.set()
        self._workspace.session()  # something to wake up to
        self.join(60)
        return [event for event in self.events if event.id]


@pytest.fixture
def wanderer(workspace: Workspace) -> Iterator[Wanderer]:
    thread = Wanderer(workspace)
    thread.start()
    yield thread
    if thread.is_alive():
        thread.finish(thread.last_seen)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_r4_everything_at_once(workspace: Workspace, wanderer: Wanderer, model: FakeModel, seed: int) -> None:
    model.on(varied)
    witness = workspace.stream(client_id=str(uuid.uuid4()))
    sessions = [workspace.session() for _ in range(2)]
    clients = [Client(workspace, sessions, seed * 100 + number) for number in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    ends = {run_id: workspace.ended(run_id) for client in clients for run_id in client.accepted}
    assert set.union(*(client.statuses for client in clients)) <= {200, 202, 404, 409}
    covered = set.union(*(client.covered for client in clients))
    for run_id, run in ends.items():
        host = ends[run["folded_into"]] if run["state"] == "folded" else run
        # A cancel of a folded run alone is told as covering nothing; one of its session reaches it through its host.
        assert (host["state"] == "cancelled") == (run_id in covered or host["run_id"] in covered), run
    for run_id in ends:
        witness.terminal(run_id)
    last_id = witness.last_id
    wandered = wanderer.finish(last_id)
    known = [event.id for event in wandered].index(last_id) + 1
    assert wandered[:known] == witness.durable[:known]
    seen = transcript(witness.events)
    for session in sessions:
        assert [m for m in seen.values() if m["session_id"] == session] == workspace.messages(session)


def test_r14_waiting_for_the_end_of_a_run(workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(text="done", gates={0: "go"}))
    workspace.prompt(workspace.session(), "hello", run_id="r1")
    assert workspace.run("r1", wait=0.05)["state"] == "active"
    waiting = [workspace.begin("GET", "/runs/r1?wait=60") for _ in range(30)]
    model.wait_for(lambda: len(model.requests) == 1)
    model.release("go")
    assert {request.answer().ok()["state"] for request in waiting} == {"completed"}


def test_r14_waiting_while_the_end_is_being_written(server: Server, workspace: Workspace, model: FakeModel) -> None:
    """The end is decided but not on disk: whoever waits gets the end, not a run that is open for ever."""
    model.on(lambda request: Reply(text="done", gates={0: "go"}))
    workspace.prompt(workspace.session(), "hello", run_id="r1")
    model.wait_for(lambda: len(model.requests) == 1)
    with server.blocked_store():
        model.release("go")
        until(lambda: server.open_runs("active") == 0)
        assert workspace.run("r1")["state"] == "active"
        waiting = workspace.begin("GET", "/runs/r1?wait=60")
    assert waiting.answer().ok()["text"] == "done"


def test_r17_sessions_workspaces_and_streams_come_and_go_under_load(server: Server, model: FakeModel) -> None:
    model.on(varied)

    def visit(number: int) -> None:
        workspace = server.workspace()
        stream = workspace.stream()
        session = workspace.session(f"visit {number}")
        run_ids = [workspace.prompt(session, text)["run_id"] for text in ("one", "two")]
        if number % 2:
            workspace.request("DELETE", f"/sessions/{session}").ok()
        for run_id in run_ids:
            stream.terminal(run_id)
        workspace.close()
        server.request("DELETE", f"/v1/clients/{workspace.client_id}").ok()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(visit, range(30)))
    until(lambda: server.metric("workspaces_open") == 0)
    assert len(server.workspace().get("/sessions")) == 15
