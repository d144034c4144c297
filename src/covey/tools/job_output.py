"""The job_output tool: what a background job has written since the last look, and whether it still runs."""

from __future__ import annotations

from typing import Annotated

import msgspec

from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools.base import Tool, ToolContext, ToolOutput, built_in
from covey.tools.bash import exit_text
from covey.tools.jobs import UNREAD_LIMIT, Job, Jobs, shown

MAX_WAIT_S = 60
KILLED = {
    "model": "ended by job_kill",
    "person": "ended by the user",
    "close": "ended when the server stopped, or nobody had needed the directory for long",
    "crash": "ended when the server was killed; what it wrote last is not kept",
}


class JobOutputParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    job_id: Annotated[str, msgspec.Meta(description="The id that bash gave, such as job-1.")]
    wait_s: Annotated[
        float,
        msgspec.Meta(ge=0, le=MAX_WAIT_S, description="Seconds to wait for news if there are none; at most 60."),
    ] = 0


def job_output_tool(jobs: Jobs) -> Tool[JobOutputParams]:
    return built_in(
        "job_output",
        Effect.TALKS,
        JobOutputParams,
        intent=_intent,
        run=lambda params, context: _run(params, context, jobs),
        independent=True,
        result_limit=UNREAD_LIMIT + 2_000,
    )


def _intent(params: JobOutputParams, context: ToolContext) -> Intent:
    return Intent("job_output", "read", params.job_id, harmless=True)


async def _run(params: JobOutputParams, context: ToolContext, jobs: Jobs) -> ToolOutput:
    job = jobs.get(context.session_id, params.job_id)
    if params.wait_s:
        await job.news_within(params.wait_s)
    output = job.take().rstrip("\n") or "(no new output)"
    if not job.is_running:
        jobs.heard(job)
    return ToolOutput(
        f"{output}\n\n{job.id} ({shown(job.command)}): {state_of(job)}",
        metadata={"job_id": job.id, "is_running": job.is_running, "exit_code": job.exit_code},
    )


def state_of(job: Job) -> str:
    if job.is_running:
        return "running"
    if job.exit_code is None and job.was_killed:
        return KILLED[job.ended_by]
    return exit_text(job.exit_code)
