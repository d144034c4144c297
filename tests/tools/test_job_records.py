"""What is kept of background jobs that have ended, for people and models who look later."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

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
