"""kill -9 and what the next start makes of it (R15): nothing that was answered with 202 is lost, nothing runs twice."""

from __future__ import annotations

import json
import threading
from http.client import HTTPException
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.support import oracle
from tests.support.fake_model import Call, FakeModel, Reply
from tests.support.server import Answer, Server, Workspace, outline, text_of, until
from tests.support.stream import transcript


def forget_last_event(server: Server, run_id: str) -> None:
    """Make the store what it was one change earlier: a kill between two commits leaves exactly that."""
    connection = apsw.Connection(str(server.data_dir / "covey.db"))
    seq, encoded = connection.execute("SELECT seq, encoded FROM events ORDER BY seq DESC LIMIT 1").get
    assert json.loads(encoded)["payload"]["payload"]["run_id"] == run_id
    told = [json.loads(row[0])["payload"]["payload"] for row in connection.execute("SELECT encoded FROM events")]
    before = [value for value in told if value.get("run_id") == run_id and "state" in value][-2]
    with connection:
        connection.execute("DELETE FROM events WHERE seq = ?", (seq,))
        connection.execute(
            "UPDATE runs SET state = ?, value = ? WHERE run_id = ?",
            (before["state"], json.dumps(before).encode(), run_id),
        )
    connection.close()


def test_scenario_20_kill_with_one_active_two_queued_and_one_accepted(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(lambda request: Reply(text="half an answer ", ending="silence") if request.prompt == "r1" else Reply())
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "r1", run_id="r1")
    stream.wait_delta()  # all that r1 has to tell is told, so that what r4 tells is the last
    for run_id in ("r2", "r3", "r4"):
        workspace.prompt(session, run_id, run_id=run_id)
    stream.wait_state("r4", "queued")
    stream.close()
    server.kill()
    forget_last_event(server, "r4")
    server.start()
    ends = {run_id: workspace.ended(run_id) for run_id in ("r1", "r2", "r3", "r4")}
    assert [end["state"] for end in ends.values()] == ["interrupted", "completed", "completed", "completed"]
    assert "stopped" in ends["r1"]["error"]
    assert [run["seq"] for run in ends.values()] == [1, 2, 3, 4]
    assert [text for text in outline(workspace.messages(session)) if not text.startswith("assistant")] == [
        "r1", "r2", "r3", "r4",
    ]  # fmt: skip
    resumed = workspace.stream(last_event_id=stream.last_id)
    assert resumed.terminal("r1")["interrupted"] is True
    assert len(model.requests) == 4


def test_r15_text_that_was_streamed_survives_up_to_its_last_checkpoint(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(lambda request: Reply(text="{n} wörds 🐦 ", chunks=200, ending="silence"))
    session = workspace.session()
    workspace.prompt(session, "hello", run_id="r1")
    whole = "".join(f"{n} wörds 🐦 " for n in range(200))

    def saved() -> bool:
        """Whether all of it is on disk: the server may have read it in pieces, with a checkpoint between them."""
        (record,) = oracle.read(server.data_dir)
        return whole in ["".join(piece.text for piece in pieces) for pieces in record.tails.values()]

    until(saved)
    server.kill()
    server.start()
    run = workspace.ended("r1")
    answer = workspace.messages(session)[-1]
    assert (run["state"], run["text"]) == ("interrupted", whole)
    assert text_of(answer) == whole
    assert outline([answer]) == ["assistant error"]


def test_r15_a_tool_call_is_closed_and_its_processes_are_gone(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    command = "echo $$ > shell.pid; setsid sleep 1000 & echo $! > child.pid; wait"
    call = Call(name="bash", input={"command": command})
    model.on(lambda request: Reply(text="", tools=(call,)) if request.call_number == 0 else Reply())
    workspace.request("POST", "/permissions/skip", {"skip": True}).ok()
    session = workspace.session()
    workspace.prompt(session, "hello", run_id="r1")
    workspace.prompt(session, "again", run_id="r2", mode="own_turn")
    files = [server.project / name for name in ("shell.pid", "child.pid")]
    until(lambda: all(file.exists() and file.read_text().strip() for file in files))
    server.kill()
    model.on(lambda request: Reply())
    server.start()
    assert workspace.ended("r1")["state"] == "interrupted"
    assert workspace.ended("r2")["state"] == "completed"
    assert outline(workspace.messages(session)) == [
        "hello", "assistant error", "tool", "again", "assistant end_turn",
    ]  # fmt: skip
    until(lambda: not any(_is_alive(int(file.read_text())) for file in files))


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_r15_a_cancel_that_was_recorded_is_not_forgotten(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    """A22: the cancel was answered, then the server was killed before the tool had stopped."""
    call = Call(name="bash", input={"command": "trap '' TERM; echo > started; while :; do sleep 0.1; done"})
    model.on(lambda request: Reply(text="", tools=(call,)))
    workspace.request("POST", "/permissions/skip", {"skip": True}).ok()
    session = workspace.session()
    workspace.prompt(session, "hello", run_id="r1")
    workspace.prompt(session, "queued", run_id="r2")
    until((server.project / "started").exists)
    workspace.cancel(session)
    server.kill()
    server.start()
    for run_id in ("r1", "r2"):
        run = workspace.ended(run_id)
        assert (run["state"], run["cancelled_by"]) == ("cancelled", "session_cancel")
    assert len(model.requests) == 1


def test_r15_recovery_may_be_interrupted_and_repeated(server: Server, workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(gates={0: "go"}))
    session = workspace.session()
    for run_id in ("r1", "r2", "r3"):
        workspace.prompt(session, run_id, run_id=run_id)
    for _ in range(3):
        server.kill()
        server.start()
    model.release("go")
    states = [workspace.ended(run_id)["state"] for run_id in ("r1", "r2", "r3")]
    assert states[0] == "interrupted"
    assert set(states) <= {"interrupted", "completed"}


def test_r15_a_session_that_never_ran_is_there_after_a_kill(server: Server, workspace: Workspace) -> None:
    session = workspace.session("mine")
    server.kill()
    server.start()
    assert [found["title"] for found in workspace.get("/sessions")] == ["mine"]
    assert workspace.ended(workspace.prompt(session, "hello")["run_id"])["state"] == "completed"


def test_r15_a_stream_resumes_across_a_kill_and_misses_nothing(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(lambda request: Reply(text="word ", chunks=20, gates={10: "never"}))
    session = workspace.session()
    before = workspace.stream()
    workspace.prompt(session, "one", run_id="r1")
    workspace.prompt(session, "two", run_id="r2")
    before.wait_delta()
    server.kill()
    before.wait_end()
    model.on(lambda request: Reply(text="word ", chunks=20))
    server.start()
    after = workspace.stream(last_event_id=before.last_id)
    assert after.terminal("r1")["interrupted"] is True
    assert after.terminal("r2")["text"] == "word " * 20
    numbers = [int(e.id.partition(".")[2]) for e in (*before.durable, *after.durable)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    seen = transcript([*before.events, *after.events])
    assert list(seen.values()) == workspace.messages(session)


class Prompter(threading.Thread):
    """Posts prompts with ids of its own until the server is gone; remembers which were answered with 202."""

    def __init__(self, workspace: Workspace, session: str, name: str) -> None:
        super().__init__()
        self._workspace = workspace
        self._session = session
        self._prefix = name
        self.accepted: dict[str, int] = {}

    def run(self) -> None:
        for number in range(1000):
            run_id = f"{self._prefix}-{number}"
            body: dict[str, Any] = {"session_id": self._session, "prompt": run_id, "run_id": run_id}
            try:
                answer: Answer = self._workspace.request("POST", "/agent", body)
                if number % 5 == 4:
                    self._workspace.cancel(self._session)
            except (OSError, ValueError, HTTPException):
                return
            if answer.status == 202:
                self.accepted[run_id] = answer.body["seq"]


def test_r15_a_call_that_somebody_was_still_asked_about_is_said_not_to_have_run(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    calls = (Call(name="bash", input={"command": "touch made"}, id="c1"), Call(name="ls", input={}, id="c2"))
    model.on(lambda request: Reply(text="", tools=calls) if request.prompt == "go" else Reply())
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "go", run_id="r1")
    stream.wait_for(lambda seen: [e for e in seen if e.type == "permission_request"])
    stream.close()
    server.kill()
    server.start()
    assert workspace.ended("r1")["state"] == "interrupted"
    results = [part["data"] for said in workspace.messages(session) for part in said["parts"] if said["role"] == "tool"]
    assert [(result["tool_call_id"], result["content"]) for result in results] == [
        (call_id, "The run ended before the call began. It had no effects.") for call_id in ("c1", "c2")
    ]


@pytest.mark.parametrize("after", [5, 25, 60, 120])
def test_r15_a_kill_at_any_instant(server: Server, workspace: Workspace, model: FakeModel, after: int) -> None:
    """Three clients prompt and cancel as fast as they can; the server is killed after so many events."""
    prompters = [Prompter(workspace, workspace.session(), f"p{number}") for number in range(3)]
    stream = workspace.stream()
    for prompter in prompters:
        prompter.start()
    stream.wait_for(lambda seen: len([e for e in seen if e.id]) >= after)
    server.kill()
    for prompter in prompters:
        prompter.join()
    told = [e.payload["run_id"] for e in stream.of_type("run_complete")]
    server.start()
    for prompter in prompters:
        for run_id, seq in prompter.accepted.items():
            assert workspace.ended(run_id)["seq"] == seq
    (record,) = oracle.read(server.data_dir)
    for run_id in record.runs:  # also those whose 202 was on its way
        workspace.ended(run_id)
    (record,) = oracle.read(server.data_dir)
    ended = [e.payload["run_id"] for e in record.events if e.type == "run_complete"]
    assert ended[: len(told)] == told
    assert len(set(ended)) == len(ended) == len(record.runs)
