"""Covey's own clients at a cluster: they go on by themselves when an owner goes, at whichever node they are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.support.cluster import Cluster, Node
from tests.support.fake_model import FakeModel, Reply
from tests.support.server import until


def _run(server: Cluster, node: Node, session: str, prompt: str) -> subprocess.Popen[str]:
    """`covey run` that speaks to this node alone."""
    command = [sys.executable, "-m", "covey", "run", "-s", session, prompt, "--host", f"tcp://127.0.0.1:{node.port}"]
    env = {**os.environ, "COVEY_TOKEN": server.token, "HOME": str(server.directory)}
    nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
    return subprocess.Popen(
        command, stdin=nothing, stdout=pipe, stderr=pipe, text=True, env=env, cwd=server.project, start_new_session=True
    )


@pytest.mark.parametrize("how", ["killed", "leaves"])
def test_covey_run_goes_on_when_the_owner_is_gone(server: Cluster, model: FakeModel, how: str) -> None:
    """Killed: the run that was active is told as interrupted, what waits is run by the next owner. Leaves: nothing."""
    workspace = server.workspace()
    session, owner = workspace.session(), server.owner(workspace.id)
    first, second = server.others(workspace.id)
    half = Reply(text="half ", ending="silence") if how == "killed" else Reply(text="whole ", gates={1: "go"})
    model.on(lambda request: half if request.prompt == "one" else Reply(text="the other answer"))
    runs = [_run(server, first, session, "one")]
    model.wait_for(lambda: len(model.requests) == 1)
    runs.append(_run(server, second, session, "two"))
    until(lambda: len(workspace.get("/runs")) == 2)
    if how == "killed":
        owner.kill()
    else:
        owner.signal(signal.SIGTERM)
        until(lambda: owner.request("GET", "/v1/ready").status == 503)
        model.release("go")
    said = [run.communicate(timeout=60) for run in runs]
    assert [run.returncode for run in runs] == [5 if how == "killed" else 0, 0], said
    assert (said[0][0].startswith("half" if how == "killed" else "whole"), said[1][0]) == (True, "the other answer\n")
    if how == "leaves":
        assert owner.wait() == 0
    workspace.close()


def test_a_program_goes_on_at_the_node_that_it_speaks_to(server: Cluster, model: FakeModel) -> None:
    """`covey.connect`: a prompt that is posted while the workspace has no owner is taken by the next one."""
    workspace = server.workspace()
    other = server.others(workspace.id)[0]
    code = f"""
import asyncio, sys, covey
async def main():
    async with covey.connect({str(server.project)!r}, host="tcp://127.0.0.1:{other.port}") as client:
        print((await client.ask("first")).text, flush=True)
        sys.stdin.readline()
        print((await client.ask("second")).text, flush=True)
asyncio.run(main())
"""
    model.on(lambda request: Reply(text=f"to {request.prompt}"))
    env = {**os.environ, "COVEY_TOKEN": server.token, "HOME": str(server.directory)}
    program = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    )
    assert program.stdin and program.stdout
    assert program.stdout.readline() == "to first\n"
    server.owner(workspace.id).kill()
    said, _ = program.communicate("\n", timeout=60)
    assert (said, program.returncode) == ("to second\n", 0)
    workspace.close()
