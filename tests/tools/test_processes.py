"""Commands on the real machine: what they give, and that nothing of them is left, however they end."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from covey.tools import owned_process, process_table, processes
from covey.tools.output import Output, Spill
from covey.tools.processes import Completed, LocalProcesses, kill_tagged
from tests.support.machine import TREE, WAIT_FOR, carriers, has_pid, is_alive, pid_in, until

pytestmark = pytest.mark.anyio


on_both_loops = pytest.mark.parametrize(
    "anyio_backend",
    [("asyncio", {"use_uvloop": False}), ("asyncio", {"use_uvloop": True})],
    ids=["asyncio", "uvloop"],
)


@dataclass(frozen=True)
class Machine:
    root: Path
    tag: str
    local: LocalProcesses

    async def run(self, command: str | list[str], *, timeout_s: float = 30, limit: int = 10_000) -> Completed:
        env = {"PATH": os.environ["PATH"]}
        return await self.local.run_command(
            command, cwd=self.root, env=env, tag=f"{self.tag}/c1", timeout_s=timeout_s, output_limit=limit
        )

    async def run_out(self, command: str) -> Completed:
        """Run until the time is over: a second, or more where that was over before the command had touched `begun`."""
        for timeout_s in (1, 5, 25):
            completed = await self.run(command, timeout_s=timeout_s)
            if (self.root / "begun").exists():
                return completed
        raise AssertionError("the machine is too busy to run anything")

    def start(self, command: str, *, timeout_s: float = 30) -> asyncio.Task[Completed]:
        return asyncio.get_running_loop().create_task(self.run(command, timeout_s=timeout_s))


@pytest.fixture
async def machine(root: Path, tag: str) -> AsyncIterator[Machine]:
    """Checks at the end that neither a process nor a file descriptor is left."""
    before = set(os.listdir("/proc/self/fd"))
    yield Machine(root, tag, LocalProcesses())
    assert len(os.listdir("/proc/self/fd")) <= len(before)


# ── what a command gives ──


@on_both_loops
async def test_output_of_both_streams_comes_in_order_with_the_exit_code(machine: Machine) -> None:
    completed = await machine.run("echo one; echo two >&2; echo three; exit 3")
    assert completed == Completed(3, "one\ntwo\nthree\n")


async def test_a_list_is_run_without_a_shell(machine: Machine) -> None:
    assert (await machine.run(["echo", "$HOME;", "*"])).output == "$HOME; *\n"


async def test_it_runs_where_it_is_told_with_the_environment_it_is_given(machine: Machine) -> None:
    completed = await machine.run("pwd; env")
    lines = completed.output.splitlines()
    assert lines[0] == str(machine.root)
    assert any(re.fullmatch(rf"COVEY_PROCESS_TAG={machine.tag}/c1/[0-9a-f]{{8}}-1", line) for line in lines)
    assert "PYTEST_CURRENT_TEST" not in completed.output


@on_both_loops
async def test_reading_input_gives_its_end_at_once(machine: Machine) -> None:
    completed = await machine.run("cat; read answer || echo nobody there; test -t 0 || echo no terminal")
    assert completed.output == "nobody there\nno terminal\n"


async def test_a_signal_is_a_negative_exit_code(machine: Machine) -> None:
    assert (await machine.run("kill -9 $$")).exit_code == -9


@on_both_loops
async def test_what_cannot_be_started_raises_and_leaks_nothing(machine: Machine) -> None:
    with pytest.raises(OSError):
        await machine.run(["/no/such/program"])
    with pytest.raises(ValueError):
        await machine.run("echo \0")


@on_both_loops
async def test_a_flood_is_fast_and_its_ends_are_kept(machine: Machine) -> None:
    completed = await machine.run("echo first; yes | head -c 100M; echo last", limit=1000, timeout_s=60)
    assert not completed.timed_out
    assert completed.output.startswith("first\ny\n")
    assert completed.output.endswith("y\nlast\n")
    assert completed.truncated_bytes == 100 * 1024 * 1024 + len("first\nlast\n") - 1000
    assert f"{completed.truncated_bytes} bytes are left out" in completed.output
    assert len(completed.output) < 1100


async def test_bytes_that_are_no_text_are_replaced(machine: Machine) -> None:
    assert (await machine.run(r"printf 'a\377b'")).output == "a�b"


# ── nothing is left when it ends by itself ──

LEFT_BEHIND = {
    "holding the pipe": "sleep 60 & echo $! > pid",
    "in the background": "sleep 60 > /dev/null 2>&1 & echo $! > pid",
    "after hangup": "nohup sleep 60 > /dev/null 2>&1 & echo $! > pid; disown",
    "in its own session": "setsid sh -c 'echo $$ > pid; exec sleep 60' > /dev/null 2>&1 & wait_for pid",
    "forked twice": "(setsid sh -c 'sleep 60 & echo $! > pid' > /dev/null 2>&1 &); wait_for pid",
    "without our tag": "env -i sleep 60 > /dev/null 2>&1 & echo $! > pid",
    "without our tag, in a group of its own": "set -m; env -i sleep 60 > /dev/null 2>&1 & echo $! > pid",
    "ignoring TERM": "(trap '' TERM; exec setsid sleep 60) > /dev/null 2>&1 & echo $! > pid",
}


@pytest.mark.parametrize("way", LEFT_BEHIND)
async def test_what_a_command_leaves_behind_is_ended(
    machine: Machine, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned_process, "GRACE_S", 0.3)
    completed = await machine.run(WAIT_FOR + LEFT_BEHIND[way] + "; echo done", timeout_s=30)
    assert (completed.exit_code, completed.output, completed.timed_out) == (0, "done\n", False)
    assert not is_alive(pid_in(machine.root / "pid"))
    assert carriers(machine.tag) == []


@on_both_loops
async def test_a_daemon_that_is_just_being_born_is_found(machine: Machine) -> None:
    # Twice forking, in a session of its own, in the middle of exec: whatever moment the search happens to meet.
    for _ in range(40):
        await machine.run("(setsid sh -c 'sleep 60 & exit' > /dev/null 2>&1 &)")
        assert carriers(machine.tag) == []


@on_both_loops
async def test_a_grandchild_with_the_pipe_delays_the_result_by_a_bound_only(machine: Machine) -> None:
    began = time.monotonic()
    completed = await machine.run("sleep 60 & echo done")
    assert completed.output == "done\n"
    assert processes.DRAIN_S <= time.monotonic() - began < 50


async def test_output_that_comes_shortly_after_the_exit_is_kept(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "DRAIN_S", 30)  # on a busy machine, what is to be short may be long
    completed = await machine.run("(sleep 0.05; echo late) & echo early")
    assert completed.output == "early\nlate\n"


async def test_calls_of_one_id_do_not_end_each_other(machine: Machine) -> None:
    other = machine.start("echo $$ > pid; until [ -e go ]; do sleep 0.01; done; echo finished")
    await until(lambda: has_pid(machine.root / "pid"))
    await machine.run("sleep 60 > /dev/null 2>&1 &")
    (machine.root / "go").touch()
    assert (await other).output == "finished\n"


@on_both_loops
async def test_children_of_others_keep_their_life_and_their_exit_code(machine: Machine) -> None:
    bystander = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    process = await asyncio.create_subprocess_exec("sh", "-c", "until [ -e go ]; do sleep 0.01; done; exit 7",
                                                   cwd=machine.root)  # fmt: skip
    await machine.run("setsid sleep 60 > /dev/null 2>&1 & touch go")
    assert await process.wait() == 7
    assert bystander.returncode is None
    bystander.kill()
    assert await bystander.wait() == -9


# ── nothing is left when the time is over ──


@on_both_loops
async def test_a_timeout_keeps_the_output_so_far(machine: Machine) -> None:
    completed = await machine.run_out("echo begun; touch begun; sleep 60")
    assert completed == Completed(None, "begun\n", 0, timed_out=True)


async def test_a_timeout_lets_the_command_clean_up(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned_process, "GRACE_S", 30)
    command = "trap 'echo tidy; touch tidied; exit' TERM; echo ready; touch begun; while :; do sleep 0.01; done"
    completed = await machine.run_out(command)
    assert completed.output.startswith("ready\n")
    assert "tidy\n" in completed.output
    assert (machine.root / "tidied").exists()


async def test_programs_that_clean_up_are_not_ended_before_the_grace_is_over(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The clean-up takes longer than several looks for processes that are left.
    monkeypatch.setattr(owned_process, "GRACE_S", 30)
    command = "trap 'sleep 0.5 && touch tidied; exit' TERM; touch begun; while :; do sleep 0.01; done"
    await machine.run_out(command)
    assert (machine.root / "tidied").exists()


@on_both_loops
async def test_what_ignores_term_is_killed_after_the_grace(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned_process, "GRACE_S", 0.3)
    began = time.monotonic()
    completed = await machine.run_out("trap '' TERM; echo stubborn; touch begun; while :; do sleep 0.01; done")
    assert completed.timed_out and completed.output == "stubborn\n"
    assert time.monotonic() - began >= 1.3


async def test_a_timeout_reaches_descendants_without_a_tag(machine: Machine) -> None:
    command = (
        "env -i setsid sh -c 'echo $$ > pid; exec sleep 60' > /dev/null 2>&1 & wait_for pid; touch begun; sleep 60"
    )
    await machine.run_out(WAIT_FOR + command)
    assert not is_alive(pid_in(machine.root / "pid"))


@on_both_loops
async def test_a_time_out_in_the_moment_of_the_exit_is_one_or_the_other(machine: Machine) -> None:
    # The loop is busy while both come: it learns of them at the same time, whatever the machine is doing.
    began = time.monotonic()
    task = machine.start("echo out; echo $$ > pid; until [ -e go ]; do sleep 0.01; done", timeout_s=2.5)
    await until(lambda: has_pid(machine.root / "pid"))
    (machine.root / "go").touch()
    while is_alive(pid_in(machine.root / "pid")) or time.monotonic() - began < 2.6:
        time.sleep(0.01)
    assert await task in (Completed(0, "out\n"), Completed(None, "out\n", timed_out=True))


async def test_a_signal_of_somebody_else_is_not_taken_for_a_time_out(machine: Machine) -> None:
    task = machine.start("echo out; echo $$ > pid; exec sleep 60")
    await until(lambda: has_pid(machine.root / "pid"))
    os.kill(pid_in(machine.root / "pid"), signal.SIGTERM)
    assert await task == Completed(-signal.SIGTERM, "out\n")


# ── a long output is kept in a file ──


@on_both_loops
async def test_a_flood_is_kept_whole_in_order_while_the_loop_goes_on(machine: Machine, tmp_path: Path) -> None:
    spill = Spill(tmp_path / "spill", "flood")
    output = Output(1000, spill)
    env = {"PATH": os.environ["PATH"]}
    completed = await machine.local.run_command(
        "seq 1 1000000", cwd=machine.root, env=env, tag=machine.tag, timeout_s=60, output=output
    )
    assert completed.exit_code == 0 and completed.truncated_bytes > 6_000_000
    assert spill.path and spill.path.read_text() == "".join(f"{number}\n" for number in range(1, 1_000_001))


async def test_a_cancel_in_a_flood_closes_the_file_and_leaves_nothing(machine: Machine, tmp_path: Path) -> None:
    spill = Spill(tmp_path / "spill", "flood")
    env = {"PATH": os.environ["PATH"]}
    task = asyncio.ensure_future(
        machine.local.run_command(
            "yes", cwd=machine.root, env=env, tag=machine.tag, timeout_s=60, output=Output(1000, spill)
        )
    )
    await until(lambda: spill.path is not None)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert carriers(machine.tag) == []


# ── nothing is left when it is cancelled ──


@on_both_loops
async def test_a_cancel_ends_the_whole_tree_before_it_goes_on(machine: Machine) -> None:
    task = machine.start(TREE)
    await until((machine.root / "ready").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert carriers(machine.tag) == []
    assert not is_alive(pid_in(machine.root / "pid"))


@on_both_loops
async def test_more_cancels_do_not_cut_the_ending_short(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned_process, "GRACE_S", 0.3)
    task = machine.start("trap '' TERM; echo $$ > pid; while :; do sleep 0.01; done")
    await until(lambda: has_pid(machine.root / "pid"))
    while not task.done():
        task.cancel()
        await asyncio.sleep(0.01)
    assert task.cancelled()
    assert not is_alive(pid_in(machine.root / "pid"))


@on_both_loops
async def test_a_cancel_before_the_first_step_starts_nothing(machine: Machine) -> None:
    task = machine.start("touch started")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not (machine.root / "started").exists()


@on_both_loops
async def test_a_cancel_at_any_moment_leaves_nothing(machine: Machine) -> None:
    for moment in range(40):
        task = machine.start("(setsid sh -c 'sleep 60 & exit' > /dev/null 2>&1 &); sleep 0.02; sleep 60 & exit")
        for _ in range(moment):
            await asyncio.sleep(0.0005 * (moment % 4))
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() or task.result().exit_code == 0
        assert carriers(machine.tag) == []


async def test_a_timeout_around_the_call_is_told_from_a_cancel(machine: Machine) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await machine.run("sleep 60")
    assert carriers(machine.tag) == []


def test_the_end_of_the_event_loop_leaves_nothing(root: Path, tag: str) -> None:
    async def leave() -> None:
        machine = Machine(root, tag, LocalProcesses())
        leave.task = machine.start(TREE)  # type: ignore[attr-defined]
        await until((root / "ready").exists)

    asyncio.run(leave())
    assert carriers(tag) == []


# ── on lesser systems ──


@on_both_loops
async def test_without_process_handles_exits_are_noticed_and_trees_ended(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert (await machine.run("echo hello; exit 4")) == Completed(4, "hello\n")
    assert (await machine.run(TREE, timeout_s=1)).timed_out


@pytest.mark.parametrize("stubborn", [False, True])
async def test_without_a_process_table_the_group_is_ended(
    machine: Machine, stubborn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_table, "AVAILABLE", False)
    monkeypatch.setattr(owned_process, "GRACE_S", 0.3)
    assert (await machine.run("sleep 60 & echo $! > pid; exit 4")).exit_code == 4
    await until(lambda: not is_alive(pid_in(machine.root / "pid")))
    trap = "trap '' TERM;" if stubborn else ""
    assert (await machine.run(f"{trap} sleep 60 & echo $! > pid; sleep 60", timeout_s=1)).timed_out
    await until(lambda: not is_alive(pid_in(machine.root / "pid")))
    assert kill_tagged(machine.tag) == 0
