"""C: terminal events, and what a client may conclude from them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from covey.cli import exits
from covey.client import prompt
from covey.client.client import Client
from covey.protocol.errors import NotFound
from covey.protocol.paths import Address
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import RunComplete
from covey.tools.base import ToolOutput
from tests.cli.conftest import Home
from tests.peer_failures.command import covey, finish
from tests.peer_failures.conftest import SILENCE, NewRunId, ask, bash
from tests.peer_failures.lanes import busy
from tests.peer_failures.schedules import in_every_order, opened
from tests.sim.shell import Shell
from tests.support.engine import Engine, Gate, call, running
from tests.support.fake_model import FakeModel
from tests.support.fault_proxy import FaultProxy, Link, Plan, Way
from tests.support.server import Server, Workspace, finish_of

FAILURE: dict[str, Any] = {"status": 400, "body": "{}"}


def test_c1_a_run_that_fails_before_its_first_model_call_ends_and_the_command_fails(
    server: Server, tmp_path: Path, new_run_id: NewRunId
) -> None:
    (tmp_path / "covey.toml").write_text('[models]\nlarge = "nobody/missing"\n')
    assert finish(covey(server, "trust", str(tmp_path)))[0] == exits.OK, "else the choice would not count"
    run_id = new_run_id()
    code, out, err = finish(covey(server, "run", "--run-id", run_id, "hello", cwd=tmp_path))
    assert (code, out) == (exits.FAILED, "")
    assert "missing" in err
    assert server.workspace(tmp_path).ended(run_id)["state"] == "failed"


class Unexpected(BaseException):
    """Nothing that an `except Exception` catches."""


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["model", "tool"])
async def test_c2_whatever_a_turn_dies_of_there_is_a_terminal_event(tmp_path: Path, where: str) -> None:
    async with running(tmp_path) as engine:

        async def act() -> ToolOutput:
            raise Unexpected("in a tool")

        engine.tool.act = act
        engine.model.answer(*(call() if where == "tool" else ("half ", Unexpected("in a model"))))
        await engine.post("a", "a")
        await engine.post("b", "b")
        assert (await engine.ended("a")).error == f"internal error: Unexpected: in a {where}"
        assert (await engine.ended("b")).state == "completed"
        assert set(engine.terminals()) == {"a", "b"}


@pytest.mark.parametrize(
    ("reply", "state"), [({}, "completed"), (FAILURE, "failed"), (SILENCE, "cancelled")], ids=lambda value: str(value)
)
def test_c3_record_list_and_stream_agree_on_the_end(
    workspace: Workspace, new_run_id: NewRunId, reply: dict[str, Any], state: str
) -> None:
    session, run_id = workspace.session(), new_run_id()
    stream = workspace.stream(session_id=session)
    workspace.prompt(session, ask("hello", reply), run_id=run_id)
    if state == "cancelled":
        stream.wait_delta()
        workspace.cancel(session)
    terminal = stream.terminal(run_id)
    run = workspace.run(run_id)
    assert workspace.get(f"/runs?session_id={session}") == [run]
    assert workspace.get(f"/agent/sessions/{session}")["is_busy"] is False
    told = [e.payload for e in stream.of_type("run") if e.payload["run_id"] == run_id]
    assert (run["state"], told[-1]) == (state, run)
    assert (terminal.get("error"), terminal["message_id"]) == (run.get("error"), run["message_id"])
    assert terminal.get("cancelled", False) is (state == "cancelled")


# ── clients that did not see the end ──


@pytest.fixture
def proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    """Ends every event stream soon after its head; everything else passes."""
    monkeypatch.setattr(prompt, "TAIL_S", 0.1)  # the stream will not bring the end after all

    def decide(link: Link) -> Plan:
        return Plan(down=Way(after=300, fault="cut")) if b"/events?" in link.head else Plan()

    with FaultProxy(server.port, decide) as made:
        yield made


async def answer_of(server: Server, port: int, workspace: Workspace, request: PostPrompt) -> RunComplete:
    async with Client(Address(host="127.0.0.1", port=port), token=server.token) as client, asyncio.timeout(60):
        return await prompt.run_prompt(client, workspace.id, request)


@pytest.mark.anyio
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_c4_a_client_whose_stream_always_ends_reports_what_really_happened(
    server: Server, workspace: Workspace, proxy: FaultProxy, new_run_id: NewRunId, end: str
) -> None:
    reply = {"completed": {"text": "done"}, "failed": FAILURE, "cancelled": SILENCE}[end]
    session, run_id = workspace.session(), new_run_id()
    stream = workspace.stream(session_id=session)
    request = PostPrompt(session_id=session, prompt=ask("hello", reply), run_id=run_id)
    answering = asyncio.create_task(answer_of(server, proxy.port, workspace, request))
    if end == "cancelled":
        await asyncio.to_thread(stream.wait_delta)
        workspace.cancel(session)
    terminal = await answering
    truth = await asyncio.to_thread(stream.terminal, run_id)
    assert (terminal.text, terminal.error) == (truth.get("text"), truth.get("error"))
    assert (terminal.cancelled, terminal.interrupted) == (end == "cancelled", False)


async def folded_and_cancelled(workspace: Workspace, model: FakeModel, session: str, new_run_id: NewRunId) -> str:
    """A run that was folded into another one, which was then cancelled: both have ended."""
    host, folded, gate = new_run_id(), new_run_id(), new_run_id()
    stream = workspace.stream(session_id=session)
    workspace.prompt(session, ask("host", {**bash("true"), "gates": {"0": gate}}), run_id=host)
    workspace.prompt(session, ask("more", SILENCE), run_id=folded, mode="fold")
    model.release(gate)
    await asyncio.to_thread(stream.wait_state, folded, "folded")
    workspace.cancel_run(host)
    assert (await asyncio.to_thread(stream.terminal, folded))["cancelled"] is True
    return folded


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["completed", "folded and cancelled"])
async def test_c5_who_comes_after_the_end_still_learns_it(
    server: Server, workspace: Workspace, model: FakeModel, new_run_id: NewRunId, how: str
) -> None:
    session = workspace.session()
    before = workspace.stream(session_id=session)
    request = PostPrompt(session_id=session, prompt="hello", run_id=new_run_id())
    if how == "completed":
        workspace.prompt(session, "hello", run_id=request.run_id)
        workspace.ended(request.run_id)
    else:
        folded = await folded_and_cancelled(workspace, model, session, new_run_id)
        request = PostPrompt(session_id=session, prompt=ask("more", SILENCE), run_id=folded, mode="fold")
    truth = before.terminal(request.run_id)
    late = workspace.stream(session_id=session, last_event_id=before.durable[0].id)
    assert late.terminal(request.run_id) == truth
    answer = await answer_of(server, server.port, workspace, request)
    assert (answer.cancelled, answer.text) == (truth.get("cancelled", False), truth.get("text"))


@pytest.mark.parametrize("deltas", [True, False])
def test_c6_everything_of_a_run_is_told_before_its_terminal_event(
    workspace: Workspace, new_run_id: NewRunId, deltas: bool
) -> None:
    session, run_id = workspace.session(), new_run_id()
    stream = workspace.stream(session_id=session, deltas=deltas)
    workspace.prompt(session, ask("hello", bash("echo done"), {"text": "word ", "chunks": 50}), run_id=run_id)
    stream.terminal(run_id)
    workspace.prompt(session, "next", run_id=(following := new_run_id()))
    stream.terminal(following)
    mine = [event.type for event in stream.events if event.payload.get("run_id") == run_id]
    assert mine.index("run_complete") == len(mine) - 1
    assert mine.count("message") > 3


def test_c7_who_has_seen_the_end_is_not_told_that_the_session_is_busy(
    workspace: Workspace, new_run_id: NewRunId
) -> None:
    session = workspace.session()
    stream = workspace.stream(session_id=session)
    for _ in range(10):
        run_id = new_run_id()
        assert workspace.prompt(session, "hello", run_id=run_id)["state"] == "active"
        stream.terminal(run_id)


def test_c8_a_silent_run_says_what_it_waits_for_and_since_when(workspace: Workspace, new_run_id: NewRunId) -> None:
    session, run_id = workspace.session(), new_run_id()
    stream = workspace.stream(session_id=session)
    workspace.prompt(session, ask("hello", SILENCE), run_id=run_id)
    stream.wait_delta()
    run = workspace.run(run_id)
    assert run["waiting_on"] == "model"
    assert run["started_at"] < run["last_progress_at"]
    workspace.cancel(session)
    assert "waiting_on" not in workspace.ended(run_id)


async def ends_in_every_way(directory: Path) -> list[tuple[Engine, RunComplete]]:
    """A run that completed, one that failed, one that was cancelled, and one that a crash cut off."""
    async with busy(directory, "b", "c") as (engine, gate):
        copy = engine.disk.copy()
        engine.model.answer("x", ValueError("broken"))
        engine.model.answer("y", (last := Gate()))
        gate.open()
        await last.reached()
        await engine.cancel()
        ends = [(engine, engine.terminals()[(await engine.ended(run_id)).run_id]) for run_id in "abc"]
    async with running(directory, store=copy) as again:
        await again.ended("a")
        return [*ends, (again, again.terminals()["a"])]


@pytest.mark.anyio
async def test_c9_every_terminal_event_has_the_same_shape(tmp_path: Path) -> None:
    ends = await ends_in_every_way(tmp_path)
    kinds = [(terminal.cancelled, terminal.interrupted, bool(terminal.error)) for _, terminal in ends]
    assert kinds == [(False, False, False), (False, False, True), (True, False, False), (False, True, True)]
    for engine, terminal in ends:
        fields = msgspec.to_builtins(terminal)
        assert {"session_id", "run_id", "message_id"} <= set(fields)
        assert msgspec.convert(fields, RunComplete) == terminal
        (answer,) = [message for message in engine.messages() if message.id == terminal.message_id]
        assert finish_of(msgspec.to_builtins(answer))


def test_c10_a_command_that_started_its_server_is_gone_with_its_last_word(tmp_path: Path) -> None:
    """The server lives on, but holds no pipe of the command: whoever reads to the end of it gets there."""
    home = Home(tmp_path)
    try:
        done = home.covey("run", "-q", "hello")
        assert (done.returncode, done.stdout) == (0, "You said: hello\n")
        assert home.pid()
    finally:
        home.close()


@pytest.mark.larger
def test_c11_of_many_who_end_a_run_at_once_one_does() -> None:
    async def scenario(shell: Shell) -> None:
        session = await opened(shell)
        await shell.post(session, "tool", run_id="a")
        enders = (shell.cancel_run("a"), shell.cancel(session), shell.workspace.sessions.delete(session))
        for error in await asyncio.gather(*enders, return_exceptions=True):
            assert error is None or isinstance(error, NotFound), "the session was deleted before it was cancelled"
        await shell.settle()

    in_every_order(scenario)


@pytest.mark.anyio
@pytest.mark.parametrize("what", ["model", "system_prompt"])
async def test_c12_a_start_that_raises_leaves_no_run_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    async with running(tmp_path) as engine:
        monkeypatch.setattr(engine.workspace._parts.agent, what, lambda *args, **options: [][1])
        await engine.post("a", "a")
        assert (await engine.ended("a")).error == "internal error: IndexError: list index out of range"
        assert engine.store.open_runs("w") == []
        monkeypatch.undo()
