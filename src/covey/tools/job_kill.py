"""The job_kill tool: end a background job with all its processes."""

from __future__ import annotations

from typing import Annotated

import msgspec

from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools.base import Tool, ToolContext, ToolOutput, built_in
from covey.tools.job_output import state_of
from covey.tools.jobs import UNREAD_LIMIT, Jobs, shown


class JobKillParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    job_id: Annotated[str, msgspec.Meta(description="The id that bash gave, such as job-1.")]


def job_kill_tool(jobs: Jobs) -> Tool[JobKillParams]:
    return built_in(
        "job_kill",
        Effect.RUNS_COMMANDS,
        JobKillParams,
        intent=_intent,
        run=lambda params, context: _run(params, context, jobs),
        result_limit=UNREAD_LIMIT + 2_000,
    )


def _intent(params: JobKillParams, context: ToolContext) -> Intent:
    # Nobody need be asked: whoever allowed the command did not ask for it to run for ever.
    return Intent("job_kill", "end", params.job_id, harmless=True)


async def _run(params: JobKillParams, context: ToolContext, jobs: Jobs) -> ToolOutput:
    job = jobs.get(context.session_id, params.job_id)
    had_ended = not job.is_running
    await job.end("model")
    jobs.heard(job)
    output = job.take().rstrip("\n") or "(no new output)"
    state = f"had already ended: {state_of(job)}" if had_ended else state_of(job)
    return ToolOutput(
        f"{output}\n\n{job.id} ({shown(job.command)}): {state}",
        metadata={"job_id": job.id, "is_running": job.is_running, "exit_code": job.exit_code},
    )
