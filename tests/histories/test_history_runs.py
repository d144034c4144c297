"""Random histories of a real server: whatever clients send, every answer is one that the rules allow.

Several clients post, cancel, edit and delete in random order, sometimes at the same moment; the model answers each call
when the history says so. In the end it may answer all, every run ends, and the oracle judges what is left behind.
`COVEY_HISTORIES=50 pytest tests/histories/test_history_runs.py` looks at fifty times as many, and at ever new ones.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.histories.lane_spec import Request
from tests.histories.session_clients import COMMANDS, TOKEN, Clients, Command
from tests.support import oracle
from tests.support.effort import bound
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, provider_config, running

ROUNDS = int(os.environ.get("COVEY_HISTORIES", "0"))
HISTORIES, STEPS = bound(25, 60), 25
"""In one round, with one server."""
AT_ONCE = 3
"""Requests under way together: the orders in which they may have been served are all tried."""
GATES = (-1, 0, 1)
"""Where a reply waits: before its head, before its first word, behind it."""
PATIENT = "idle_timeout_s = 300"
"""A model that waits for the history has not fallen silent."""
SESSIONS = st.sampled_from((0, 0, 0, 1))


def answer(request: Recorded) -> Reply:
    """What the last prompt asks for, behind a gate of its own for each call."""
    token, script = TOKEN.findall(request.prompt)[-1]
    call = request.call_number
    gate = f"{token}/{call}"
    if script == "fail":
        return Reply(status=400, body='{"error": {"message": "as the history says"}}', gates={-1: gate})
    gates = {GATES[len(request.prompt) % 3]: gate}
    if script == "tool" and call == 0:
        return Reply(text="I look.", tools=(Call(name="view", input={"file_path": f"{token}.txt"}),), gates=gates)
    return Reply(text=f"{token} is answered. ", chunks=2, gates=gates)


class Histories(RuleBasedStateMachine):
    """One history, in a workspace of its own. `numbers` makes every name unique for the one model behind all."""

    def __init__(self, server: Server, model: FakeModel, numbers: Iterator[int]) -> None:
        super().__init__()
        self.server = server
        self.model = model
        directory = server.directory / f"project-{next(numbers)}"
        directory.mkdir()
        self.workspace = server.workspace(directory)
        self.stream = self.workspace.stream()
        self.sessions = [Clients(self.workspace.session(), name, numbers) for name in "AB"]
        self.is_broken = False

    # ── what happens ──

    @rule(session=SESSIONS, command=COMMANDS)
    def a_client(self, session: int, command: Command) -> None:
        clients = self.sessions[session]
        self.send(clients, clients.requests(command, self.sessions[1 - session]))

    @rule(session=SESSIONS, commands=st.lists(COMMANDS, min_size=2, max_size=AT_ONCE))
    def clients_at_once(self, session: int, commands: list[Command]) -> None:
        """Nobody asks whether the session is busy: it is, for a moment, when a run that has ended is posted again."""
        clients = self.sessions[session]
        useful = [command for command in commands if command.kind != "busy"]
        requests = [r for command in useful for r in clients.requests(command, self.sessions[1 - session])]
        self.send(clients, requests[:AT_ONCE])

    @rule(session=SESSIONS, pick=st.integers(0, 30), call=st.sampled_from((0, 0, 1)))
    def the_model_may_speak(self, session: int, pick: int, call: int) -> None:
        clients = self.sessions[session]
        if runs := list(clients.accepted):
            self.release(clients, runs[pick % len(runs)], call)

    def release(self, clients: Clients, run_id: str, call: int) -> None:
        token = clients.accepted[run_id].token
        clients.spec.released.add((token, call))
        self.model.release(f"{token}/{call}")

    def send(self, clients: Clients, requests: list[Request]) -> None:
        """Send all, then read all: the server has them at the same time."""
        try:
            pending = [self.workspace.begin(r.method, r.path, r.body) for r in requests]
            answered = [(r, sent.answer()) for r, sent in zip(requests, pending, strict=True)]
            if answered:
                clients.spec.observe(answered)
            for request, seen in answered:
                clients.remember(request, seen, alone=len(answered) == 1)
        except BaseException:
            self.is_broken = True
            raise

    # ── the end ──

    def teardown(self) -> None:
        """Nothing holds the model back any more: every accepted run ends, and as it was promised."""
        for clients in self.sessions:
            for run_id, call in itertools.product(clients.accepted, (0, 1)):
                self.release(clients, run_id, call)
        try:
            if not self.is_broken:
                for clients in self.sessions:
                    self.check_ends(clients)
                self.check_record()
        finally:
            self.workspace.close()
            self.server.request("DELETE", f"/v1/clients/{self.workspace.client_id}").ok()

    def check_ends(self, clients: Clients) -> None:
        runs = {run_id: self.workspace.ended(run_id) for run_id in clients.accepted}
        ends = frozenset((run_id, run["state"], run.get("folded_into", "")) for run_id, run in runs.items())
        reachable = clients.spec.reachable(clients.spec.possible)
        possible = {world.ended for world in reachable if not world.lane.runs}
        assert ends in possible, f"{sorted(ends)} is none of {[sorted(end) for end in possible]}"
        for run_id, run in runs.items():
            assert run["prompt"] in clients.texts[run_id]

    def check_record(self) -> None:
        """What the store and the stream tell of the history."""
        record = next(r for r in oracle.read(self.server.data_dir) if r.workspace_id == self.workspace.id)
        assert oracle.judge(record, all_ended=True) == []
        accepted = [run_id for clients in self.sessions for run_id in clients.accepted]
        assert sorted(record.runs) == sorted(accepted), "each accepted prompt is one run, and nothing else is"
        terminals = {e.payload["run_id"]: e.payload for e in record.events if e.type == "run_complete"}
        for clients in self.sessions:
            for run_id in clients.cancelled & clients.accepted.keys():
                assert terminals[run_id].get("cancelled") is True, f"{run_id} was reported as cancelled"
        self.check_what_was_published(record)

    def check_what_was_published(self, record: Any) -> None:
        last = record.events[-1].seq
        self.stream.wait_for(lambda seen: any(e.id.endswith(f".{last}") for e in seen if e.id))
        seen = [(e.type, e.change, e.payload) for e in self.stream.durable]
        assert seen == [(e.type, e.change, e.payload) for e in record.events][-len(seen) :]


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel(answer) as fake:
        yield fake


@pytest.fixture
def server(tmp_path: Path, model: FakeModel) -> Iterator[Server]:
    with running(tmp_path, provider_config(model.url, provider=PATIENT)) as started:
        yield started


@pytest.mark.larger
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(ROUNDS or 1))
def test_every_answer_and_every_end_is_one_that_the_rules_allow(server: Server, model: FakeModel, number: int) -> None:
    """The default round is always the same one. A failure is not made smaller: the server's timing is its own."""
    numbers = itertools.count()
    run_state_machine_as_test(
        lambda: Histories(server, model, numbers),  # type: ignore[arg-type] # whatever makes a machine will do
        settings=settings(
            max_examples=HISTORIES,
            stateful_step_count=STEPS,
            derandomize=not ROUNDS,
            deadline=None,
            database=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        ),
    )
