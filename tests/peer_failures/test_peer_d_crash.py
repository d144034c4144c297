"""D: crashes, restarts, and two who want to own the same thing. A real server is restarted in test_peer_restart.py."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from covey.lifecycle.history import CUT_OFF_NOTE
from tests.peer_failures.conftest import NewRunId
from tests.peer_failures.lanes import busy, in_a_tool, states
from tests.peer_failures.schedules import opened, with_a_crash_at_every_step
from tests.sim.loop import run_schedule, run_to_crash
from tests.sim.shell import Shell
from tests.sim.shell_scenarios import after_crash
from tests.support.effort import bound
from tests.support.engine import Gate, running
from tests.support.server import Server, Workspace


async def a_bit_of_everything(shell: Shell) -> None:
    """A turn with a tool and a prompt that is folded into it, one that waits, and one that is cancelled."""
    session = await opened(shell)
    await shell.post(session, "tool", run_id="host")
    await asyncio.gather(
        shell.post(session, "folded", run_id="folded", mode="fold"),
        shell.post(session, "next", run_id="next"),
        shell.post(session, "dropped", run_id="dropped"),
    )
    await shell.cancel_run("dropped")
    await shell.settle()


def test_d1_killed_at_any_instant_every_accepted_run_has_one_end() -> None:
    with_a_crash_at_every_step(a_bit_of_everything)


@pytest.mark.anyio
async def test_d2_a_session_that_was_killed_in_a_tool_call_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        await in_a_tool(engine, gate)
        copy = engine.disk.copy()
        gate.open()
    async with running(tmp_path, store=copy) as again:
        await again.post("b", "b")
        assert await states(again, "ab") == ["interrupted", "completed"]
        prompt, asking, result, note, following = again.model.requests[0].messages
        assert (prompt.text, note.text, following.text) == ("a", CUT_OFF_NOTE, "b")
        assert [call.id for call in asking.tool_calls] == [r.tool_call_id for r in result.tool_results] == ["c1"]
        assert result.run_id == asking.run_id == "a"


def recovered(life_steps: int, recovery_steps: int) -> dict[str, str] | None:
    """Kill the first life, and its recovery too: how the runs ended that were active. None: it was not cut off."""
    shell = Shell()
    assert run_to_crash(partial(a_bit_of_everything, shell), (), life_steps)
    active = [row.run.run_id for row in shell.store.open_runs("w") if row.run.state == "active"]
    if recovery_steps and not run_to_crash(partial(after_crash, shell), (), recovery_steps):
        return None
    failure = run_schedule(partial(after_crash, shell), ()).failure
    assert failure is None, f"killed after {life_steps}, then after {recovery_steps} steps: {failure!r}"
    return {run_id: run.run.state for run_id in active if (run := shell.store.run("w", run_id))}


@pytest.mark.larger
def test_d3_a_recovery_that_is_itself_cut_off_is_done_again_with_the_same_end() -> None:
    ends: set[str] = set()
    for life_steps in bound((40,), (20, 40, 60)):
        whole = recovered(life_steps, 0)
        assert whole is not None
        ends.update(whole.values())
        recovery_steps = 1
        while (cut := recovered(life_steps, recovery_steps)) is not None:
            assert cut == whole
            recovery_steps += 1
        assert recovery_steps > 10
    assert ends == {"interrupted"}


@pytest.mark.anyio
async def test_d4_a_run_that_is_active_in_the_store_only_stands_in_nobodys_way(tmp_path: Path) -> None:
    async with busy(tmp_path) as (engine, gate):
        copy = engine.disk.copy()
        gate.open()
    async with running(tmp_path, store=copy) as again:
        assert (await again.post("b", "b")).state in ("queued", "active")
        assert await states(again, "ab") == ["interrupted", "completed"]


@pytest.mark.anyio
async def test_d5_a_clock_that_jumps_neither_ends_nor_doubles_a_run(tmp_path: Path) -> None:
    async with busy(tmp_path, "b") as (engine, gate):
        world = engine.shared.world
        world.now = lambda: time.time() - 86_400
        await engine.post("c", "c")
        world.now = lambda: time.time() + 86_400
        gate.open()
        assert await states(engine, "abc") == ["completed"] * 3
        world.now = time.time
        await engine.post("d", "d")
        assert await states(engine, "d") == ["completed"]
        ids = [message.id for message in engine.messages()]
        assert ids == sorted(set(ids))


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    server.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.signal(signal.SIGCONT)


def test_d5_a_server_that_was_frozen_goes_on_where_it_was(
    server: Server, workspace: Workspace, new_run_id: NewRunId
) -> None:
    session, run_id = workspace.session(), new_run_id()
    stream = workspace.stream(session_id=session)
    with frozen(server):
        pending = workspace.begin("POST", "/agent", {"session_id": session, "prompt": "hello", "run_id": run_id})
        assert not pending.is_answered()
    assert pending.answer().status == 202
    assert stream.terminal(run_id)["text"]


def refusal(server: Server, directory: Path) -> str:
    """What a second server says that is to serve the same data."""
    second = Server(directory, server.config.read_text())
    second.data_dir = server.data_dir
    with pytest.raises(AssertionError, match="covey"):
        second.start()
    assert second.wait() != 0
    second.close()
    return second.log()


def test_d6_a_second_server_on_the_same_data_is_refused(server: Server, tmp_path: Path) -> None:
    assert f"pid {server.pid}" in refusal(server, tmp_path)


def test_d7_an_owner_that_is_stalled_is_still_the_owner(server: Server, tmp_path: Path) -> None:
    """Nobody takes over from a process that lives, so there is nobody whose late writes would have to be fenced off."""
    with frozen(server):
        assert f"pid {server.pid}" in refusal(server, tmp_path)


def test_d8_a_lock_whose_pid_belongs_to_somebody_else_by_now_keeps_nobody_out(tmp_path: Path) -> None:
    server = Server(tmp_path, "")
    server.data_dir.mkdir()
    (server.data_dir / "server.lock").write_text(json.dumps({"pid": os.getpid(), "address": "unix:///gone"}))
    server.start()
    assert server.stop() == 0
    server.close()


@pytest.mark.anyio
async def test_d10_the_id_of_a_deleted_session_is_never_used_again(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        moment = time.time()
        engine.shared.world.now = lambda: moment
        deleted = []
        for _ in range(20):
            deleted.append((await engine.workspace.sessions.create("")).id)
            await engine.workspace.sessions.delete(deleted[-1])
        assert len(set(deleted)) == 20


@pytest.mark.anyio
async def test_d10_nor_after_a_restart_with_the_clock_set_back(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        moment = time.time()
        engine.shared.world.now = lambda: moment
        deleted = (await engine.workspace.sessions.create("")).id
        await engine.workspace.sessions.delete(deleted)
        copy = engine.disk.copy()
    async with running(tmp_path, store=copy) as again:
        again.shared.world.now = lambda: moment - 0.001
        assert deleted not in [(await again.workspace.sessions.create("")).id for _ in range(20)]
