"""Routes about background jobs."""

from __future__ import annotations

from covey.protocol.jobs import JobView
from covey.server.endpoint import Call, Endpoint


async def list_jobs(call: Call, _body: None) -> list[JobView]:
    workspace = await call.workspace()
    return workspace.jobs.all()


async def get_job(call: Call, _body: None) -> JobView:
    workspace = await call.workspace()
    return workspace.jobs.look(call.path["job_id"])


async def kill_job(call: Call, _body: None) -> JobView:
    workspace = await call.workspace()
    return await workspace.jobs.kill(call.path["job_id"])


J = "/v1/workspaces/{id}/jobs"

ENDPOINTS = (
    Endpoint("GET", J, list_jobs, "Commands that sessions left running, and those that ended lately.",
             answer=list[JobView]),
    Endpoint("GET", J + "/{job_id}", get_job, "One job, with the end of its output.", answer=JobView),
    Endpoint("POST", J + "/{job_id}/kill", kill_job, "End a job with all its processes.", answer=JobView,
             needs="prompt"),
)  # fmt: skip
