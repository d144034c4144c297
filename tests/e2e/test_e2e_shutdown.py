"""Stopping in order (R13): refuse, cancel, wait, write, release; and what a second signal leaves to the next start."""

from __future__ import annotations

import signal
import time
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.support import oracle
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, provider_config, running, until

STUBBORN = Call(name="bash", input={"command": "trap '' TERM; echo > started; while :; do sleep 0.1; done"})


def stubborn(request: Recorded) -> Reply:
    """A tool that does not stop when it is told to."""
    return Reply(text="", tools=(STUBBORN,)) if request.call_number == 0 else Reply()


class Closing:
    """A server that was told to stop. Its stubborn tool holds it up for two seconds, in which a test may look at it."""

    def __init__(self, server: Server) -> None:
        self._began = time.monotonic()
        server.signal(signal.SIGTERM)

    @property
    def is_certain(self) -> bool:
        """It must still be there. A test that was held up for longer may have missed it, which is nobody's fault."""
        return time.monotonic() - self._began < 1.5


def rows(server: Server) -> dict[str, tuple[str, str]]:
    """From the store: each run, its state and by what it was cancelled."""
    (record,) = oracle.read(server.data_dir)
    return {run_id: (run["state"], run.get("cancelled_by", "")) for run_id, run in record.runs.items()}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_r13_a_signal_ends_everything_in_order(
    server: Server, workspace: Workspace, model: FakeModel, number: signal.Signals
) -> None:
    model.on(lambda request: Reply(text="some ", chunks=5, ending="silence"))
    one, two = workspace.session(), workspace.session()
    streams = [workspace.stream() for _ in range(3)]
    workspace.prompt(one, "active", run_id="a1")
    workspace.prompt(one, "queued", run_id="q1")
    workspace.prompt(one, "queued too", run_id="q2")
    workspace.prompt(two, "active", run_id="a2")
    for stream in streams:
        stream.wait_for(lambda seen: len({e.payload["run_id"] for e in seen if e.type == "message_delta"}) == 2)
    server.signal(number)
    assert server.wait() == 0
    assert rows(server) == dict.fromkeys(("a1", "q1", "q2", "a2"), ("cancelled", "shutdown"))
    for stream in streams:
        stream.wait_end()
        assert {e.payload["run_id"] for e in stream.of_type("run_complete")} == {"a1", "q1", "q2", "a2"}
        assert not stream.errors


def test_r13_a_shutdown_request_does_the_same(server: Server, workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(gates={0: "never"}))
    workspace.prompt(workspace.session(), "hello", run_id="r1")
    server.request("POST", "/v1/control", {"command": "shutdown"}).ok()
    assert server.wait() == 0
    assert rows(server) == {"r1": ("cancelled", "shutdown")}


def test_scenario_17_a_closing_workspace_refuses_and_writes_the_last_words(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(stubborn)
    workspace.request("POST", "/permissions/skip", {"skip": True}).ok()
    session = workspace.session()
    stream = workspace.stream()
    workspace.prompt(session, "hello", run_id="r1")
    until((server.project / "started").exists)
    closing = Closing(server)
    body = {"session_id": session, "prompt": "late", "run_id": "r2"}
    create = {"path": str(server.directory), "client_id": workspace.client_id}
    try:
        until(lambda: workspace.run("r1").get("cancelled_by") == "shutdown")
        workspace.request("POST", "/agent", body).refused(409, "workspace_closing")
        server.request("POST", "/v1/workspaces", create).refused(503, "shutting_down")
    except (ConnectionError, HTTPException):
        assert not closing.is_certain
    assert server.wait() == 0
    assert stream.terminal("r1")["cancelled"] is True
    (record,) = oracle.read(server.data_dir)
    assert "r2" not in record.runs
    assert [message["role"] for message in record.messages.values()] == ["user", "assistant", "tool"]


def test_scenario_24_shutdown_between_accept_and_enter(server: Server, workspace: Workspace, model: FakeModel) -> None:
    session = workspace.session()
    stream = workspace.stream()
    with server.blocked_store():
        prompt = workspace.begin_prompt(session, "hello", run_id="r1")
        server.signal(signal.SIGTERM)
        until(lambda: workspace.run("r1").get("cancelled_by") == "shutdown")
    assert prompt.answer().status == 202
    assert stream.terminal("r1")["cancelled"] is True
    assert server.wait() == 0
    assert rows(server) == {"r1": ("cancelled", "shutdown")}
    (record,) = oracle.read(server.data_dir)
    assert [message["role"] for message in record.messages.values()] == ["user", "assistant"]
    assert not model.requests


def test_r13_a_second_signal_leaves_at_once_and_the_next_start_heals(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    model.on(stubborn)
    workspace.request("POST", "/permissions/skip", {"skip": True}).ok()
    session = workspace.session()
    workspace.prompt(session, "hello", run_id="r1")
    workspace.prompt(session, "next", run_id="r2")
    until((server.project / "started").exists)
    closing = Closing(server)
    until(lambda: rows(server)["r1"][1] == "shutdown")  # on disk: what only memory knew may become `interrupted`
    server.signal(signal.SIGTERM)
    in_time = closing.is_certain
    assert server.wait() == 128 + signal.SIGTERM or not in_time
    server.start()
    assert workspace.ended("r1")["state"] == "cancelled"
    assert workspace.ended("r2")["state"] == "cancelled"
    assert [m["role"] for m in workspace.messages(session)] == ["user", "assistant", "tool"]


def test_r13_requests_that_wait_do_not_delay_the_end(server: Server, workspace: Workspace, model: FakeModel) -> None:
    model.on(lambda request: Reply(gates={0: "never"}))
    workspace.prompt(workspace.session(), "hello", run_id="r1")
    waiting = workspace.begin("GET", "/runs/r1?wait=60")
    until(lambda: workspace.run("r1").get("waiting_on") == "model")
    server.signal(signal.SIGTERM)
    assert waiting.answer().ok()["state"] == "cancelled"
    assert server.wait() == 0


def test_r13_a_client_that_does_not_read_does_not_delay_the_end(server: Server, workspace: Workspace) -> None:
    """F6: neither a stream that nobody reads nor a connection on which nothing was asked."""
    idle = server.begin("GET", "/v1/health")
    deaf = workspace.begin("GET", f"/events?client_id={workspace.client_id}")
    until(deaf.is_answered)
    assert server.stop() == 0
    idle.abandon()


def test_r13_two_servers_never_share_a_data_directory(server: Server, tmp_path: Path) -> None:
    second = Server(tmp_path, server.config.read_text())
    with pytest.raises(AssertionError, match=r"uses .* already"):
        second.start()
    second.close()
    assert server.request("GET", "/v1/health").ok() == {"status": "ok"}


@pytest.mark.parametrize("wrapper", [("env", "--default-signal=HUP"), ("env", "--ignore-signal=HUP")])
def test_r13_a_terminal_that_is_closed_ends_it_in_order_unless_it_was_told_to_stay(
    tmp_path: Path, model: FakeModel, wrapper: tuple[str, ...]
) -> None:
    with running(tmp_path, provider_config(model.url)) as server:
        server.stop()
        server.wrapper = wrapper
        server.start()
        for _ in range(2):
            server.signal(signal.SIGHUP)
        if "default" in wrapper[1]:
            assert server.wait() == 0
        else:
            assert server.request("GET", "/v1/health").ok() == {"status": "ok"}
