"""Processes are found again by their tag, also after a crash, and nobody else's is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from covey.tools import owned_process, process_table
from covey.tools.processes import kill_tagged
from tests.support.machine import TREE, is_alive, pid_in, until


def start_tagged(tag: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"], env={"PATH": os.environ["PATH"], "COVEY_PROCESS_TAG": tag}, **options)


def test_only_processes_of_the_run_are_ended(tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned_process, "GRACE_S", 30)  # none of them needs a harder signal, however busy the machine is
    ours = [start_tagged(tag), start_tagged(f"{tag}/c1/1"), start_tagged(f"{tag}/c2/2", start_new_session=True)]
    others = [start_tagged(f"{tag}0/c1/1"), start_tagged(f"{tag}.b/c1/1"), subprocess.Popen(["sleep", "60"])]
    try:
        assert kill_tagged(tag) == 3
        assert [process.wait(60) for process in ours] == [-signal.SIGTERM] * 3
        assert [process.poll() for process in others] == [None] * 3
        assert kill_tagged(tag) == 0
    finally:
        for process in ours + others:
            process.kill()
            process.wait()


def test_pids_that_may_have_started_again_at_the_bottom_are_all_looked_at(
    tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    low, leader = start_tagged(tag), start_tagged(tag)
    try:
        assert leader.pid in {process.pid for process in process_table.tagged(tag, leader=leader.pid)}
        monkeypatch.setattr(process_table, "_PIDS_PER_S", 10**12)
        assert {process.pid for process in process_table.tagged(tag, leader=leader.pid)} == {low.pid, leader.pid}
    finally:
        for process in (low, leader):
            process.kill()
            process.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_a_process_of_another_user_is_not_touched(tag: str) -> None:
    process = start_tagged(tag, user=65534)
    try:
        assert kill_tagged(tag) == 0
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_an_empty_tag_is_refused() -> None:
    with pytest.raises(ValueError):
        kill_tagged("")


def test_a_pid_that_belongs_to_somebody_else_by_now_is_not_signalled() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        found = process_table.Process(process.pid, process_table.start_time(process.pid))
        process_table.send([found._replace(start=found.start - 1)], signal.SIGKILL)
        process_table.send([process_table.Process(2**22 + 1, 1)], signal.SIGKILL)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        process_table.send([found], signal.SIGKILL)
        assert process.wait(60) == -9
    finally:
        process.kill()
        process.wait()


SERVER = """
import asyncio, os, sys
from pathlib import Path
from covey.tools.processes import LocalProcesses
root, tag, command = sys.argv[1:]
asyncio.run(LocalProcesses().run_command(
    command, cwd=Path(root), env=dict(os.environ), tag=tag, timeout_s=60, output_limit=1000))
"""


@pytest.mark.anyio
async def test_after_a_crash_of_the_server_its_processes_are_found(root: Path, tag: str) -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(root), f"{tag}/c1", TREE])
    await until((root / "ready").exists)
    server.kill()
    server.wait()
    assert is_alive(pid_in(root / "pid"))
    assert kill_tagged(tag) >= 2
    assert not is_alive(pid_in(root / "pid"))


def test_the_input_of_the_server_is_not_that_of_its_commands(root: Path, tag: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(root), f"{tag}/c1", "cat; touch ended"], stdin=subprocess.PIPE
    ) as server:
        assert server.wait(60) == 0
    assert (root / "ended").exists()
