"""G: tools and the processes they start. G4 needs a killed server and is in test_peer_restart.py."""

from __future__ import annotations

import asyncio
import itertools
import os
from pathlib import Path

import pytest

from covey.tools.processes import Completed, LocalProcesses
from tests.peer_failures.conftest import NewRunId, ask, bash
from tests.peer_failures.lanes import in_a_tool
from tests.support.engine import Gate, running
from tests.support.machine import has_pid, is_alive, pid_in
from tests.support.server import Server, Workspace, until

calls = itertools.count(1)


async def run(command: str, directory: Path, *, timeout_s: float = 30) -> Completed:
    env, tag = {"PATH": os.environ["PATH"]}, f"peer-{os.getpid()}/{next(calls)}"
    return await LocalProcesses().run_command(
        command, cwd=directory, env=env, tag=tag, timeout_s=timeout_s, output_limit=1000
    )


@pytest.mark.parametrize("end", ["completed", "cancelled"])
def test_g1_when_a_run_has_ended_no_process_of_its_tools_is_alive(
    server: Server, workspace: Workspace, new_run_id: NewRunId, end: str
) -> None:
    session, run_id = workspace.session(), new_run_id()
    pids = [server.project / f"{run_id}.{name}" for name in ("child", "far", "grandchild")]
    child, far, grandchild = (file.name for file in pids)
    command = (
        f"sleep 1000 & echo $! > {child}; setsid sleep 1000 & echo $! > {far}; "
        f"(setsid sh -c 'sleep 1000 & echo $! > {grandchild}' &); until [ -s {grandchild} ]; do sleep 0.01; done; "
    )
    command += "sleep 1000" if end == "cancelled" else "true"
    workspace.prompt(session, ask("hello", bash(command), {"text": "done"}), run_id=run_id)
    if end == "cancelled":
        until(lambda: all(has_pid(file) for file in pids))
        workspace.cancel(session)
    assert workspace.ended(run_id)["state"] == end
    assert [file.name for file in pids if is_alive(pid_in(file))] == []


@pytest.mark.anyio
async def test_g2_a_grandchild_that_holds_the_output_does_not_hold_the_tool(tmp_path: Path) -> None:
    assert await run("(sleep 1000 &); echo done", tmp_path, timeout_s=60) == Completed(0, "done\n")


@pytest.mark.anyio
async def test_g3_a_time_out_in_the_moment_of_the_exit_keeps_the_output(tmp_path: Path) -> None:
    moments = [1.9 + hundredths / 100 for hundredths in range(0, 20, 4)]
    ends = await asyncio.gather(
        run("echo out; sleep 1000", tmp_path, timeout_s=moments[0]),
        *(run("echo out; sleep 2", tmp_path, timeout_s=moment) for moment in moments),
    )
    assert ends[0].timed_out
    for end in ends:
        assert (end.output, end.exit_code) == ("out\n", None if end.timed_out else 0)


@pytest.mark.anyio
async def test_g5_a_command_that_wants_input_is_told_that_there_is_none(tmp_path: Path) -> None:
    assert await run("cat; read line; echo $?", tmp_path) == Completed(0, "1\n")


@pytest.mark.anyio
async def test_g6_a_tool_is_not_lost_when_a_watcher_leaves_and_not_leaked_when_all_closes(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        watching, gates = engine.workspace._parts.feed.subscribe(deltas=True), (Gate(), Gate())
        await in_a_tool(engine, gates[0])
        watching.close()
        gates[0].open()
        assert (await engine.ended("a")).state == "completed"
        assert [result.content for message in engine.messages() for result in message.tool_results] == ["worked"]
        await in_a_tool(engine, gates[1], run_id="b")
        await engine.close()
        assert [task for task in asyncio.all_tasks() if task.get_name().startswith(("run ", "turn "))] == []
