"""What is kept of background jobs, for people and models who look later."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from covey.engine.commands.jobs import WorkspaceJobs
from covey.tools import jobs as jobs_module
from covey.tools.base import ToolContext
from covey.tools.job_records import JobRecord, JobRecords
from covey.tools.jobs import Jobs
from covey.tools.processes import LocalProcesses
from tests.tools.test_jobs import Desk

pytestmark = pytest.mark.anyio


async def test_how_a_job_ended_and_its_output_are_there_when_the_workspace_is_opened_again(
    context: ToolContext, tag: str, tmp_path: Path
) -> None:
    records = JobRecords(tmp_path / "kept")
    before = Desk(Jobs(LocalProcesses(), tag), context)
    await before.jobs.restore(records)
    ended = await before.start("echo one; exit 3")
    job = before.jobs.get(context.session_id, ended)
    async with asyncio.timeout(60):
        while job.is_running:
            await job.news_within(60)
            job._news.clear()
    left = await before.start("echo two; sleep 600")
    await before.jobs.close()

    after = Desk(Jobs(LocalProcesses(), tag), context)
    await after.jobs.restore(records)
    assert [(job.id, job.exit_code, job.ended_by) for job in after.jobs.all()] == [
        (ended, 3, "itself"),
        (left, None, "close"),
    ]
    assert after.jobs.all()[0].tail == "one\n"
    assert [job.id for job in after.jobs.unheard(context.session_id)] == [ended, left]
    assert (await after.look(ended, 60)).startswith("one\n\njob-1 ")
    assert (await after.look(ended)).startswith("(no new output)")
    assert "ended when the server stopped" in await after.look(left)
    assert await after.start("true") == "job-3", "a name was given out twice"
    await after.jobs.close()

    later = Jobs(LocalProcesses(), tag)
    await later.restore(records)
    assert [job.id for job in later.unheard(context.session_id)] == ["job-3"], "the model is told once"
    await later.end_session(context.session_id)
    await later.close()
    assert records.read() == []


async def test_a_job_that_was_lost_with_a_killed_server_is_known_told_once_and_keeps_its_name(
    context: ToolContext, tag: str, tmp_path: Path
) -> None:
    records, killed = JobRecords(tmp_path / "kept"), Desk(Jobs(LocalProcesses(), tag), context)
    await killed.jobs.restore(records)
    lost = await killed.start("sleep 600")
    await asyncio.wait(killed.jobs._saving, timeout=60)
    assert [(record.id, record.ended_at) for record in records.read()] == [(lost, 0)]
    left = JobRecords(tmp_path / "left")  # what a server finds that starts after a kill -9
    shutil.copytree(tmp_path / "kept", tmp_path / "left")
    await killed.jobs.close()

    after = Desk(Jobs(LocalProcesses(), tag), context)
    await after.jobs.restore(left)
    assert [(job.id, job.is_running, job.ended_by) for job in after.jobs.all()] == [(lost, False, "crash")]
    assert WorkspaceJobs(after.jobs, lambda: None).look(lost).state == "closed"
    assert [job.id for job in after.jobs.unheard(context.session_id)] == [lost]
    assert "ended when the server was killed" in await after.look(lost)
    assert await after.other_session().start("sleep 600") == "job-2", "a name was given out twice"
    await after.jobs.close()

    later = Jobs(LocalProcesses(), tag)
    await later.restore(left)
    assert later.unheard(context.session_id) == [], "the model is told once"
    assert [(job.id, job.ended_by) for job in later.all()] == [(lost, "crash"), ("job-2", "close")]
    await later.close()


async def test_the_start_of_a_job_is_never_written_over_its_end(context: ToolContext, tag: str, tmp_path: Path) -> None:
    records, desk = JobRecords(tmp_path / "kept"), Desk(Jobs(LocalProcesses(), tag), context)
    await desk.jobs.restore(records)
    for _ in range(5):
        await desk.kill(await desk.start("sleep 600"))
    await desk.jobs.close()
    assert [record.ended_by for record in records.read() if record.ended_at] == ["model"] * 5


async def test_only_the_latest_that_ended_are_kept(
    context: ToolContext, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "ENDED_KEPT", 2)
    records, desk = JobRecords(tmp_path / "kept"), Desk(Jobs(LocalProcesses(), tag), context)
    await desk.jobs.restore(records)
    for _ in range(4):
        await desk.kill(await desk.start("sleep 600"))
    await desk.start("sleep 600")
    await desk.jobs.close()
    assert [record.id for record in records.read()] == ["job-3", "job-4", "job-5"]


async def test_what_cannot_be_read_of_an_ended_job_costs_nobody_the_others(
    context: ToolContext, tag: str, tmp_path: Path
) -> None:
    (tmp_path / "job-1.json").write_text("{")
    records = JobRecords(tmp_path)
    records.write(JobRecord("job-2", "s", "true", 1.0, 2.0, 0))
    assert [record.id for record in records.read()] == ["job-2"]
