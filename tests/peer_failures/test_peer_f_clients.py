"""F: clients that leave, and servers that shut down."""

from __future__ import annotations

import asyncio
import gc
import signal
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from covey.cli import exits
from covey.client.client import Client
from covey.client.errors import ConnectionLost
from covey.protocol.errors import Conflict, NotFound
from covey.protocol.paths import Address
from covey.store.sqlite import SqliteStore
from tests.peer_failures.command import covey, finish
from tests.peer_failures.conftest import CONFIG, SILENCE, NewRunId, ask, bash
from tests.peer_failures.lanes import busy
from tests.peer_failures.schedules import at_every_step, in_every_order, later, opened, state_of
from tests.sim.shell import Shell
from tests.support import oracle
from tests.support.engine import running
from tests.support.fake_model import FakeModel
from tests.support.fault_proxy import FaultProxy, Plan, Way
from tests.support.server import STOP_S, Server, Workspace, until
from tests.support.server import running as serving
from tests.support.stream import Stream


def test_f1_who_posted_a_prompt_may_go_away_at_any_await() -> None:
    async def scenario(shell: Shell, step: int) -> None:
        session = await opened(shell)
        posting = asyncio.create_task(shell.post(session, "hello", run_id="a"))
        await later(step, asyncio.sleep(0))
        posting.cancel()
        await asyncio.wait({posting})
        try:
            run = await shell.workspace.runs.get("a", wait_s=60)
        except NotFound:
            assert step == 0, "it was posted, and is gone"
        else:
            assert run.state == "completed"
        await shell.settle()

    at_every_step(scenario)


def test_f2_ctrl_c_cancels_the_run_of_this_command_and_waits_for_its_end(
    server: Server, workspace: Workspace, new_run_id: NewRunId
) -> None:
    run_id = new_run_id()
    command = covey(server, "run", "-q", "--run-id", run_id, ask("hello", SILENCE))
    assert command.stdout
    assert command.stdout.read(5) == "half "
    command.send_signal(signal.SIGINT)
    assert finish(command)[0] == exits.STOPPED
    assert workspace.run(run_id)["state"] == "cancelled"


def test_f2_a_command_that_only_starts_a_run_leaves_it_running(
    server: Server, workspace: Workspace, new_run_id: NewRunId
) -> None:
    run_id = new_run_id()
    code, out, _ = finish(covey(server, "run", "--detach", "--run-id", run_id, ask("hello", SILENCE)))
    assert (code, out) == (exits.OK, f"{run_id}\n")
    assert workspace.run(run_id)["state"] == "active"
    workspace.cancel_run(run_id)
    workspace.ended(run_id)


# ── shutdown ──


@dataclass(frozen=True)
class Terminated:
    """What a server left behind that was told to stop with one run active and two queued, and a client attached."""

    seconds: float
    states: dict[str, tuple[str, str]]
    """By run: how it ended, and by what, as the disk has it."""
    told: list[str]


@pytest.fixture(scope="module")
def terminated(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[Terminated]:
    with serving(tmp_path_factory.mktemp("terminated"), CONFIG.format(url=model.url)) as server:
        workspace = server.workspace()
        session, stream = workspace.session(), workspace.stream()
        for run_id, prompt in (("a", ask("a", SILENCE)), ("b", "b"), ("c", "c")):
            workspace.prompt(session, prompt, run_id=run_id)
        stream.wait_delta()
        began = time.monotonic()
        assert server.stop() == 0
        seconds = time.monotonic() - began
        stream.wait_end()
        (record,) = oracle.read(server.data_dir)
        states = {run_id: (run["state"], run["cancelled_by"]) for run_id, run in record.runs.items()}
        told = [event.payload["run_id"] for event in stream.of_type("run_complete")]
        workspace.close()
        yield Terminated(seconds, states, told)


def test_f3_after_a_shutdown_the_fate_of_every_run_is_on_disk(terminated: Terminated) -> None:
    assert terminated.states == dict.fromkeys("abc", ("cancelled", "shutdown"))
    assert sorted(terminated.told) == ["a", "b", "c"]


@pytest.mark.larger
def test_f4_a_cancel_that_meets_the_shutdown_is_a_cancel() -> None:
    async def scenario(shell: Shell) -> None:
        session = await opened(shell)
        await shell.post(session, "tool", run_id="a")
        clients = (shell.cancel_run("a"), shell.post(session, "late", run_id="b"), shell.workspace.close(5.0))
        for result in await asyncio.gather(*clients, return_exceptions=True):
            assert not isinstance(result, Exception) or isinstance(result, Conflict), result
        assert await state_of(shell, "a") == "cancelled"
        assert shell.store.open_runs("w") == []
        shell.check()

    in_every_order(scenario)


def test_f5_the_second_signal_ends_the_server_and_the_next_start_ends_the_runs(
    tmp_path: Path, model: FakeModel
) -> None:
    with serving(tmp_path, CONFIG.format(url=model.url)) as server:
        workspace = server.workspace()
        session = workspace.session()
        stubborn = bash("trap '' TERM; echo > started; while :; do sleep 0.1; done")
        workspace.prompt(session, ask("a", stubborn), run_id="a")
        workspace.prompt(session, "b", run_id="b")
        until((server.project / "started").exists)
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        until(lambda: "cancelled_by" in oracle.read(server.data_dir)[0].runs["a"])  # on disk, not only in memory
        server.signal(signal.SIGTERM)
        in_time = time.monotonic() - began < 1.5  # for two seconds the tool may ignore that it is to end
        assert server.wait() == 128 + signal.SIGTERM or not in_time
        server.start()
        assert [workspace.ended(run_id)["state"] for run_id in "ab"] == ["cancelled"] * 2


def test_f6_a_shutdown_does_not_wait_for_clients_that_watch(terminated: Terminated) -> None:
    assert terminated.seconds < STOP_S / 2


# ── waiting, asking, watching ──


@pytest.mark.anyio
async def test_f7_who_waits_for_an_answer_and_loses_the_connection_is_told_at_once(
    server: Server, workspace: Workspace, new_run_id: NewRunId
) -> None:
    session, run_id = workspace.session(), new_run_id()
    workspace.prompt(session, ask("hello", SILENCE), run_id=run_id)
    with FaultProxy(server.port, lambda link: Plan(up=Way(after=len(link.head), fault="cut"))) as proxy:
        async with Client(Address(host="127.0.0.1", port=proxy.port), token=server.token) as client:
            with pytest.raises(ConnectionLost):
                await asyncio.wait_for(client.run(workspace.id, run_id, wait=60), 30)
    workspace.cancel(session)
    workspace.ended(run_id)


@pytest.mark.anyio
async def test_f7_of_those_who_waited_and_left_nothing_is_kept(tmp_path: Path) -> None:
    async with busy(tmp_path) as (engine, gate):
        waiting = [asyncio.create_task(engine.workspace.runs.get("a", 60)) for _ in range(10)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        gate.open()
        await engine.ended("a")
        assert engine.workspace.runs._waiters._waiters == {}


def request_seen(stream: Stream) -> Any:
    return stream.wait_for(lambda seen: [e.payload for e in seen if e.type == "permission_request"])[0]


def test_f8_a_request_outlives_the_client_that_saw_it(
    workspace: Workspace, colleague: Workspace, new_run_id: NewRunId
) -> None:
    session, run_id = workspace.session(), new_run_id()
    first = workspace.stream(session_id=session)
    write = {"text": "", "tools": [{"name": "write", "input": {"file_path": f"{run_id}.txt", "content": "x"}}]}
    workspace.prompt(session, ask("hello", write, {"text": "done"}), run_id=run_id)
    request = request_seen(first)
    first.close()
    second = colleague.stream(session_id=session)
    assert request_seen(second) == request
    answer = {"permission": {"id": request["id"]}, "action": "allow"}
    assert colleague.request("POST", "/permissions/grant", answer).ok() == {"resolved": True}
    assert second.terminal(run_id)["text"] == "done"
    assert (workspace.server.project / f"{run_id}.txt").read_text() == "x"


@pytest.mark.anyio
async def test_f9_a_long_history_is_not_kept_in_memory_for_those_who_watch(tmp_path: Path) -> None:
    async with running(tmp_path, store=SqliteStore(tmp_path / "covey.db")) as engine:
        watching = engine.workspace._parts.feed.subscribe(deltas=True)
        tracemalloc.start()
        for number in range(8):
            engine.model.answer(*["x" * 1000] * 100)
            await engine.post("long", str(number))
            await engine.ended(str(number))
        while watching.take():
            pass
        await engine.workspace.sessions.create("with the next event, the log forgets what was read")
        await asyncio.sleep(0)
        engine.events.clear()
        engine.model.requests.clear()
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert sum(len(message.text) for message in engine.messages()) > 800_000
        assert kept < 200_000
        watching.close()
