"""Processes that live on: their pipes, their bounds, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from covey.machine.names import TAG_VARIABLE
from covey.tools import owned_process, process_table
from covey.tools.child import ERRORS_KEPT, ChildBroken, LiveChild
from covey.tools.environment import extension_environment
from covey.tools.processes import LocalProcesses, kill_tagged

pytestmark = pytest.mark.anyio
TAG = f"covey-child-test-{os.getpid()}"
ENV = {"PATH": os.environ["PATH"]}


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(owned_process, "GRACE_S", 0.3)
    yield
    left = process_table.tagged(TAG)
    kill_tagged(TAG)
    assert not left
    return None


def opened(code: str) -> LiveChild:
    return LocalProcesses().open([sys.executable, "-c", code], cwd=Path("/"), env=ENV, tag=TAG)


async def line_of(child: LiveChild) -> str:
    found = b""
    while not found.endswith(b"\n"):
        piece = await asyncio.wait_for(child.read(), 20)
        if not piece:
            break
        found += piece
    return found.decode().strip()


STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
FAMILY = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
                  "print('child', flush=True); time.sleep(60)"], start_new_session=True)
"""


async def test_what_is_written_is_read_and_the_three_pipes_are_apart() -> None:
    child = opened(
        "import sys\nfor l in sys.stdin: print(l.upper().strip(), flush=True); print('log', file=sys.stderr)"
    )
    child.write(b"one\n")
    assert await line_of(child) == "ONE"
    child.write(b"two\n")
    assert await line_of(child) == "TWO"
    await child.end()
    assert child.errors == "log\nlog\n" and child.exit_code == 0
    assert await child.read() == b""
    with pytest.raises(ChildBroken):
        child.write(b"three\n")


async def test_one_that_does_not_read_is_broken_after_a_bound() -> None:
    child = opened("import time; print('up', flush=True); time.sleep(60)")
    assert await line_of(child) == "up"
    with pytest.raises(ChildBroken, match="does not read"):
        for _ in range(40):
            child.write(b"x" * 1024 * 1024)
    await child.end(0)


async def test_of_its_errors_the_end_is_kept() -> None:
    child = opened("import sys\nfor i in range(100000): print(i, file=sys.stderr)\nprint('done', flush=True)")
    assert await line_of(child) == "done"
    await child.end()
    assert len(child.errors) <= ERRORS_KEPT and child.errors.endswith("99999\n")


async def test_m10_what_ignores_the_end_of_input_and_term_is_gone_and_so_is_a_child_in_another_session() -> None:
    child = opened(f"{STUBBORN}{FAMILY}\nimport time\ntime.sleep(60)")
    assert await line_of(child) == "child"
    await child.end(0.05)
    assert not process_table.tagged(TAG)


async def test_m10_what_left_at_the_end_of_input_and_left_a_child_behind_leaves_none() -> None:
    child = opened(f"{FAMILY}\nimport sys\nsys.stdin.read()")
    assert await line_of(child) == "child"
    child.close_input()
    await asyncio.wait_for(child.exited, 20)
    assert process_table.tagged(TAG)
    await child.end()
    assert not process_table.tagged(TAG)


async def test_whoever_waits_for_the_end_may_be_cancelled_and_it_ends_all_the_same() -> None:
    child = opened(f"{STUBBORN}import time\nprint('up', flush=True)\ntime.sleep(60)")
    assert await line_of(child) == "up"
    waiting = asyncio.create_task(child.end())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await child.end()
    assert not process_table.tagged(TAG)


async def test_a_program_that_is_not_there_is_an_error_and_leaves_no_descriptor_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    processes = LocalProcesses()
    for _ in range(20):
        with pytest.raises(FileNotFoundError):
            processes.open(["no-such-program-here"], cwd=Path("/"), env=ENV, tag=TAG)
    assert len(os.listdir("/proc/self/fd")) <= before + 2


async def test_m11_what_a_killed_server_left_behind_is_found_by_its_tag(tmp_path: Path) -> None:
    program = f"{STUBBORN}import time; print('up', flush=True); time.sleep(60)"
    script = f"""
import asyncio, os
from pathlib import Path
from covey.tools.processes import LocalProcesses
async def main():
    child = LocalProcesses().open([{sys.executable!r}, "-c", {program!r}],
        cwd=Path("/"), env={{"PATH": os.environ["PATH"]}}, tag={TAG!r})
    await child.read()
    print("ready", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    server = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert server.stdout and server.stdout.readline() == b"ready\n"
    server.send_signal(signal.SIGKILL)
    server.wait()
    server.stdout.close()
    assert process_table.tagged(TAG)
    assert await asyncio.to_thread(kill_tagged, TAG) == 1
    assert not process_table.tagged(TAG)


async def test_a_cancel_at_every_moment_of_a_conversation_leaves_no_process() -> None:
    """The work is stopped after 0, 1, 2, … turns of the loop: before the start, and while it waits for an answer."""

    async def work() -> None:
        child = opened("import time; time.sleep(60)")
        try:
            child.write(b"hello\n")
            await child.read()
        finally:
            await child.end(0)

    for turns in range(6):
        task = asyncio.create_task(work())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not process_table.tagged(TAG)


def test_x7_an_extension_gets_a_short_list_of_variables_and_no_key() -> None:
    inherited = {
        "HOME": "/h",
        "PATH": "/bin",
        "LANG": "de",
        "LC_TIME": "C",
        "AWS_SECRET": "s",
        "OPENAI_API_KEY": "k",
        "COVEY_TOKEN": "t",
        "MY_KEY": "m",
    }
    named = {"GITHUB_TOKEN": "g", "MY_KEY": "m", "COVEY_TOKEN": "t"}
    found = extension_environment(inherited, named, keys={"OPENAI_API_KEY", "MY_KEY"})
    ours = {name for name in found if not name.startswith("GIT_CONFIG_")}
    assert ours == {"HOME", "PATH", "LANG", "LC_TIME", "GITHUB_TOKEN"} and TAG_VARIABLE not in found
    assert "m" in extension_environment(inherited, named, {"MY_KEY"}, passed=("MY_KEY",)).values()


async def test_m10_where_one_look_takes_all_of_the_time_what_ignores_term_is_killed_all_the_same() -> None:
    """On a machine that is very busy: the grace and the time to kill are over before anything was sent twice."""
    child = opened(f"{STUBBORN}import time; print('up', flush=True); time.sleep(60)")
    assert await line_of(child) == "up"
    looks = itertools.count(1)
    hours = itertools.count(0, 3600)

    def find() -> set[process_table.Process]:
        next(looks)
        return process_table.tagged(TAG)

    clock = SimpleNamespace(monotonic=lambda: float(next(hours)), sleep=time.sleep)
    with mock.patch("covey.tools.owned_process.time", clock):
        assert await asyncio.to_thread(owned_process.end_all, find) == 1
    assert not process_table.tagged(TAG) and next(looks) <= owned_process.KILLS + 3
    await child.end(0)
