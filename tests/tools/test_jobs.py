"""Background jobs: what they give, whom they belong to, and that nothing of them is left where nothing may be."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from covey.machine.names import workspace_tag
from covey.tools import jobs as jobs_module
from covey.tools import owned_process
from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput
from covey.tools.bash import BashParams, bash_tool
from covey.tools.job_kill import JobKillParams, job_kill_tool
from covey.tools.job_output import JobOutputParams, job_output_tool
from covey.tools.jobs import Jobs, kill_left_jobs
from covey.tools.processes import LocalProcesses, kill_tagged
from tests.support.machine import TREE, carriers, has_pid, is_alive, pid_in, until

pytestmark = pytest.mark.anyio

on_both_loops = pytest.mark.parametrize(
    "anyio_backend",
    [("asyncio", {"use_uvloop": False}), ("asyncio", {"use_uvloop": True})],
    ids=["asyncio", "uvloop"],
)


@dataclass(frozen=True)
class Desk:
    """A session with the three tools."""

    jobs: Jobs
    context: ToolContext

    async def start(self, command: str) -> str:
        bash = bash_tool(LocalProcesses(), self.jobs)
        output = await bash.run(BashParams(command=command, background=True), self.context)
        assert "job_output" in output.content
        job_id: str = output.metadata["job_id"]
        return job_id

    async def look(self, job_id: str, wait_s: float = 0) -> str:
        output = await job_output_tool(self.jobs).run(JobOutputParams(job_id=job_id, wait_s=wait_s), self.context)
        return output.content

    async def read_until(self, job_id: str, text: str) -> str:
        seen = ""
        async with asyncio.timeout(60):
            while text not in seen:
                seen += await self.look(job_id, 20)
        return seen

    async def kill(self, job_id: str) -> ToolOutput:
        return await job_kill_tool(self.jobs).run(JobKillParams(job_id=job_id), self.context)

    def other_session(self) -> Desk:
        return Desk(self.jobs, replace(self.context, session_id="s2"))


@pytest.fixture
async def desk(context: ToolContext, tag: str) -> AsyncIterator[Desk]:
    """The run has a tag of its own, of the same form as in the engine. At the end no job and no file is left."""
    files = len(os.listdir("/proc/self/fd"))
    jobs = Jobs(LocalProcesses(), tag)
    yield Desk(jobs, replace(context, process_tag=f"{tag}-r1"))
    await jobs.close()
    assert carriers(tag) == []
    assert len(os.listdir("/proc/self/fd")) <= files


@on_both_loops
async def test_a_job_starts_at_once_and_tells_only_what_is_new(desk: Desk, root: Path) -> None:
    job_id = await desk.start("echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 3")
    assert job_id == "job-1"
    seen = await desk.read_until(job_id, "one\n")
    assert seen.endswith("(echo one; until [ -e go ]; do sleep 0.01; done; echo two; ex...): running")
    assert (await desk.look(job_id)).startswith("(no new output)\n\njob-1 ")
    (root / "go").touch()
    assert "one\n" not in await desk.read_until(job_id, "exit code 3")
    assert (await desk.look(job_id, 60)).endswith(": exit code 3"), "of an ended job nobody waits for news"


@on_both_loops
async def test_waiting_ends_with_the_job_even_if_it_says_nothing(desk: Desk, root: Path) -> None:
    job_id = await desk.start("until [ -e go ]; do sleep 0.01; done")
    waiting = asyncio.ensure_future(desk.look(job_id, 60))
    await asyncio.sleep(0)
    (root / "go").touch()
    async with asyncio.timeout(60):
        assert (await waiting).endswith(": exit code 0")


# ── commands that take longer than they are waited for ──


@on_both_loops
async def test_a_command_that_takes_longer_goes_on_as_a_job(desk: Desk, root: Path) -> None:
    bash = bash_tool(LocalProcesses(), desk.jobs)
    waits = "until [ -e go ]; do sleep 0.01; done; echo two; exit 3"
    moved = await bash.run(BashParams(command=waits, timeout_s=0.05), desk.context)
    assert "Not finished after 0.05 s: it goes on as job-1." in moved.content
    assert not moved.is_error and moved.metadata["job_id"] == "job-1"
    assert desk.jobs.get("s1", "job-1").is_running
    (root / "go").touch()
    assert "two\n" in await desk.read_until("job-1", "exit code 3")


async def test_what_was_shown_of_a_moved_command_is_not_shown_again(desk: Desk, root: Path) -> None:
    bash = bash_tool(LocalProcesses(), desk.jobs)
    command = "echo one; touch begun; until [ -e go ]; do sleep 0.01; done; echo two"
    work = asyncio.ensure_future(bash.run(BashParams(command=command, timeout_s=1.5), desk.context))
    await until(lambda: (root / "begun").exists())
    moved = await work
    assert moved.content.startswith("one\n")
    (root / "go").touch()
    assert "one\n" not in await desk.read_until("job-1", "exit code 0")


async def test_a_cancelled_call_leaves_nothing_running(desk: Desk, root: Path) -> None:
    bash = bash_tool(LocalProcesses(), desk.jobs)
    work = asyncio.ensure_future(bash.run(BashParams(command="touch begun; sleep 60"), desk.context))
    await until(lambda: (root / "begun").exists())
    work.cancel()
    await asyncio.wait({work})
    assert work.cancelled() and carriers(desk.context.process_tag) == []
    assert desk.jobs.all() == []


async def test_where_no_further_job_may_run_the_command_is_ended(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "RUNNING_LIMIT", 0)
    bash = bash_tool(LocalProcesses(), desk.jobs)
    ended = await bash.run(BashParams(command="sleep 60", timeout_s=0.05), desk.context)
    assert ended.is_error and "were ended" in ended.content
    assert carriers(desk.context.process_tag) == []


async def test_people_who_look_take_nothing_from_the_model(desk: Desk) -> None:
    job_id = await desk.start("echo one; exit 4")
    await until(lambda: not desk.jobs.running)
    job = desk.jobs.find(job_id)
    assert job and job.tail == "one\n"
    assert "one\n" in await desk.look(job_id)
    assert job.tail == "one\n"


async def test_waiting_has_a_bound(desk: Desk) -> None:
    job_id = await desk.start("sleep 60")
    assert (await desk.look(job_id, 0.05)).endswith(": running")
    with pytest.raises(ToolFailed, match="`float` <= 60"):
        job_output_tool(desk.jobs).decode('{"job_id": "job-1", "wait_s": 61}')


async def test_a_flood_that_nobody_looks_at_is_bounded(desk: Desk) -> None:
    job_id = await desk.start("seq 1 1000000")
    await until(lambda: not desk.jobs.get("s1", job_id).is_running)
    content = await desk.look(job_id)
    assert content.startswith("1\n2\n") and "999999\n1000000\n\njob-1" in content
    assert "bytes are left out here" in content
    assert len(content) < 31_000


@on_both_loops
async def test_killing_ends_the_whole_tree_before_it_answers(desk: Desk, root: Path) -> None:
    job_id = await desk.start(f"echo begun; {TREE}")
    await until((root / "ready").exists)
    output = await desk.kill(job_id)
    assert output.content == f"begun\n\n{job_id} (echo begun; {TREE[:48]}...): ended by job_kill"
    assert output.metadata == {"job_id": job_id, "is_running": False, "exit_code": None}
    assert carriers(desk.context.process_tag) == []
    assert not is_alive(pid_in(root / "pid"))
    assert "had already ended: ended by job_kill" in (await desk.kill(job_id)).content


async def test_a_stubborn_job_is_killed(desk: Desk, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned_process, "GRACE_S", 0.3)
    job_id = await desk.start("trap '' TERM; echo $$ > pid; while :; do sleep 0.01; done")
    await until(lambda: has_pid(root / "pid"))
    await desk.kill(job_id)
    assert not is_alive(pid_in(root / "pid"))


async def test_what_a_job_leaves_behind_ends_with_it(desk: Desk, root: Path) -> None:
    job_id = await desk.start("setsid sleep 60 > /dev/null 2>&1 & echo $! > pid; exit 0")
    await desk.read_until(job_id, "exit code 0")
    assert not is_alive(pid_in(root / "pid"))


async def test_a_signal_is_told_by_its_name(desk: Desk) -> None:
    job_id = await desk.start("kill -9 $$")
    assert "exit code 137 (ended by SIGKILL)" in await desk.read_until(job_id, "exit code")


# ── whom it belongs to ──


async def test_a_job_belongs_to_its_session(desk: Desk) -> None:
    mine, other = await desk.start("sleep 60"), desk.other_session()
    for ask in (other.look, other.kill):
        with pytest.raises(ToolFailed, match=f"{mine} belongs to another session.*This session has no jobs"):
            await ask(mine)
    theirs = await other.start("sleep 61")
    with pytest.raises(ToolFailed, match=rf"There is no job-9: .*Jobs of this session: {theirs} \(sleep 61\)\."):
        await other.look("job-9")
    assert desk.jobs.get("s1", mine).is_running


async def test_there_is_a_bound_for_those_that_run(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "RUNNING_LIMIT", 2)
    first = await desk.start("sleep 60")
    await desk.other_session().start("sleep 60")
    with pytest.raises(ToolFailed, match=rf"2 jobs are running.*job_kill\. Jobs of this session: {first} \(sleep 60\)"):
        await desk.start("sleep 60")
    await desk.kill(first)
    await desk.start("sleep 60")


async def test_of_those_that_ended_the_oldest_are_forgotten(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "ENDED_KEPT", 2)
    running = await desk.start("sleep 60")
    for _ in range(4):
        await desk.read_until(await desk.start("true"), "exit code 0")
    await desk.start("true")
    with pytest.raises(ToolFailed, match="it never was, or it ended long ago"):
        await desk.look("job-2")
    await desk.look("job-5")
    assert desk.jobs.get("s1", running).is_running


@on_both_loops
async def test_what_cannot_start_leaves_no_job(desk: Desk) -> None:
    with pytest.raises(ToolFailed, match="could not be started"):
        await desk.start("echo \0")
    with pytest.raises(ToolFailed, match="This session has no jobs"):
        await desk.look("job-1")


def test_nobody_is_asked_about_looking_and_ending(context: ToolContext, tag: str) -> None:
    jobs = Jobs(LocalProcesses(), tag)
    look, end = JobOutputParams(job_id="job-1"), JobKillParams(job_id="job-1")
    assert job_output_tool(jobs).intent(look, context).harmless
    assert job_kill_tool(jobs).intent(end, context).harmless


@pytest.mark.parametrize("make", [job_output_tool, job_kill_tool])
def test_a_model_can_read_what_the_tools_do(make: Callable[[Jobs], Tool[Any]], tag: str) -> None:
    assert len(make(Jobs(LocalProcesses(), tag)).description()) > 100


# ── its life ──


async def test_the_end_of_a_run_leaves_its_jobs_alone(desk: Desk, root: Path) -> None:
    job_id = await desk.start("echo $$ > pid; exec sleep 60")
    await until(lambda: has_pid(root / "pid"))
    assert kill_tagged(desk.context.process_tag) == 0
    assert desk.jobs.get("s1", job_id).is_running and is_alive(pid_in(root / "pid"))


async def test_a_cancel_of_whoever_looks_leaves_the_job_alone(desk: Desk) -> None:
    job_id = await desk.start("sleep 60")
    looking = asyncio.ensure_future(desk.look(job_id, 60))
    await asyncio.sleep(0)
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    assert desk.jobs.get("s1", job_id).is_running


async def test_a_cancel_at_the_very_start_leaves_nothing_behind(desk: Desk) -> None:
    for moment in range(3):
        starting = asyncio.ensure_future(desk.start("sleep 60"))
        for _ in range(moment):
            await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait([starting])
        if starting.cancelled():
            assert carriers(desk.context.process_tag.removesuffix("-r1")) == []
        else:
            await desk.kill(starting.result())


async def test_the_end_of_a_session_ends_its_jobs_and_no_others(desk: Desk, root: Path) -> None:
    mine, theirs = await desk.start("echo $$ > pid; exec sleep 60"), await desk.other_session().start("sleep 60")
    await until(lambda: has_pid(root / "pid"))
    await desk.jobs.end_session("s1")
    assert not is_alive(pid_in(root / "pid"))
    assert desk.jobs.get("s2", theirs).is_running
    with pytest.raises(ToolFailed, match=f"There is no {mine}"):
        desk.jobs.get("s1", mine)


@on_both_loops
async def test_closing_ends_all_and_starts_no_more(desk: Desk, root: Path, tag: str) -> None:
    await desk.start(TREE)
    await desk.other_session().start("sleep 60")
    await until((root / "ready").exists)
    await desk.jobs.close()
    assert carriers(tag) == []
    with pytest.raises(ToolFailed, match="closing"):
        await desk.start("sleep 60")


def test_the_end_of_the_event_loop_leaves_nothing(root: Path, context: ToolContext, tag: str) -> None:
    async def leave() -> None:
        await Desk(Jobs(LocalProcesses(), tag), context).start(TREE)
        await until((root / "ready").exists)

    asyncio.run(leave())
    assert carriers(tag) == []


SERVER = """
import asyncio, os, sys
from pathlib import Path
from covey.machine.names import workspace_tag
from covey.tools.jobs import Jobs
from covey.tools.processes import LocalProcesses
async def main(root, workspace_id, command):
    jobs = Jobs(LocalProcesses(), workspace_tag(workspace_id))
    await jobs.start("s1", command, Path(root), dict(os.environ))
    await asyncio.sleep(60)
asyncio.run(main(*sys.argv[1:]))
"""


async def test_after_a_crash_of_the_server_the_next_start_ends_its_jobs(root: Path, tag: str) -> None:
    workspace_id = tag.removeprefix("covey-")
    assert workspace_tag(workspace_id) == tag
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(root), workspace_id, TREE])
    await until((root / "ready").exists)
    server.send_signal(signal.SIGKILL)
    server.wait()
    assert is_alive(pid_in(root / "pid"))
    assert kill_left_jobs(["another", f"{workspace_id}0", workspace_id[:-1]]) == 0
    assert is_alive(pid_in(root / "pid"))
    assert kill_left_jobs(["another", workspace_id]) >= 2
    assert not is_alive(pid_in(root / "pid"))
    assert kill_left_jobs([]) == 0


async def test_the_jobs_of_a_workspace_are_told_from_its_runs(tag: str) -> None:
    run = subprocess.Popen(["sleep", "60"], env={**os.environ, "COVEY_PROCESS_TAG": f"{tag}-r1/c1/1"})
    try:
        assert kill_left_jobs([tag.removeprefix("covey-")]) == 0
        assert run.poll() is None
    finally:
        run.kill()
        run.wait()


async def test_a_command_that_became_a_job_counts_from_its_beginning(desk: Desk) -> None:
    bash = bash_tool(LocalProcesses(), desk.jobs)
    before = asyncio.get_running_loop().time()
    await bash.run(BashParams(command="sleep 600", timeout_s=0.2), desk.context)
    (job,) = desk.jobs.all()
    assert before <= job.started <= asyncio.get_running_loop().time() - 0.2
