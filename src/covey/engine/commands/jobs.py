"""The jobs that sessions left running, as people see them: what runs, what it writes, and ending it (R17)."""

from __future__ import annotations

from collections.abc import Callable

from covey.lifecycle.claims import held_by_jobs_until
from covey.protocol.errors import NotFound
from covey.protocol.jobs import JobState, JobView
from covey.tools.jobs import Job, Jobs


class WorkspaceJobs:
    """The jobs of one workspace. Those that run keep it open."""

    def __init__(self, jobs: Jobs, on_end: Callable[[], None]) -> None:
        self._jobs = jobs
        jobs.on_end = on_end

    def all(self) -> list[JobView]:
        return [_view(job) for job in self._jobs.all()]

    def look(self, job_id: str) -> JobView:
        """One of them, with the end of what it has written."""
        return _view(self._get(job_id), with_output=True)

    async def kill(self, job_id: str) -> JobView:
        """End it with all its processes; one that has ended stays as it is."""
        job = self._get(job_id)
        await job.end("person")
        return _view(job)

    def hold(self, now: float) -> bool:
        """Whether a job keeps the workspace open."""
        until = self._held_until()
        return until is not None and now < until

    def next_deadline(self) -> float | None:
        return self._held_until()

    def _held_until(self) -> float | None:
        return held_by_jobs_until(job.started for job in self._jobs.running)

    def _get(self, job_id: str) -> Job:
        if job := self._jobs.find(job_id):
            return job
        raise NotFound(f"there is no job {job_id!r}: it never was, or it ended long ago", "job_not_found")


def _state(job: Job) -> JobState:
    if job.is_running:
        return "running"
    if job.exit_code is not None or not job.was_killed:
        return "exited"
    return "closed" if job.ended_by in ("close", "crash") else "killed"


def _view(job: Job, *, with_output: bool = False) -> JobView:
    return JobView(
        id=job.id,
        session_id=job.session_id,
        command=job.command,
        started_at=job.started_at,
        is_running=job.is_running,
        exit_code=job.exit_code,
        was_killed=job.was_killed,
        state=_state(job),
        ended_at=job.ended_at or None,
        output=job.tail if with_output else None,
    )
