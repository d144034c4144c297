"""Background jobs: commands that a session leaves running, until they end, are ended, or the workspace closes.

A job is not a process of the run that started it: it carries the workspace's tag instead, so the end of a run leaves
it alone, and the next start after a crash of the server finds it (`kill_left_jobs`). That it was started is stored,
then how it ended, with the end of its output (`job_records.py`): so one that was lost with the server is known as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from covey.machine.names import node_tag, tag_within, workspace_tag
from covey.sandbox.policy import Mode, Policy
from covey.tools.base import ToolFailed
from covey.tools.job_records import EndedBy, JobRecord, JobRecords, number_of
from covey.tools.live_output import LiveOutput
from covey.tools.output import Output, Unread
from covey.tools.processes import Completed, Processes, kill_tagged

RUNNING_LIMIT = 20
"""Jobs that run at the same time in a workspace. A model that wants more has lost sight of what it started."""
ENDED_KEPT = 20
"""Jobs that have ended and can still be looked at; the oldest is forgotten first."""
UNREAD_LIMIT = 30_000
"""Bytes of output that nobody has looked at yet: what one look shows."""
TAIL_LIMIT = 30_000
"""Bytes of the latest output that people can look at, whether or not the model has seen them."""
COMMAND_SHOWN = 60
"""Characters of a command in a list."""


class Job:
    """One command in the background, and what it has written since somebody last looked.

    `live`: where people see what it writes, for as long as it runs. `running_s`: how long the command runs already.
    """

    def __init__(
        self, job_id: str, session_id: str, command: str, live: LiveOutput | None = None, running_s: float = 0.0
    ) -> None:
        self.id = job_id
        self.session_id = session_id
        self.command = command
        self.ended_by: EndedBy = "itself"
        self.ended_at = 0.0
        """0: it runs."""
        self.is_known = False
        """The model has seen, or been told, that it has ended."""
        self.started = asyncio.get_running_loop().time() - running_s
        self.started_at = time.time() - running_s
        self._news = asyncio.Event()
        self._tail = bytearray()
        self.unread = Unread(UNREAD_LIMIT, self._heard, live)
        self._live = live
        self._task: asyncio.Task[Completed] | None = None
        self._record: JobRecord | None = None

    @classmethod
    def restored(cls, record: JobRecord) -> Job:
        """One that ended before the workspace was opened."""
        job = cls(record.id, record.session_id, record.command)
        job.unread.add(record.unread.encode())
        job.started_at, job.ended_at, job.ended_by = record.started_at, record.ended_at, record.ended_by
        job.is_known, job._record = record.is_known, record
        job._tail = bytearray(record.tail.encode())
        job._news.set()  # of an ended job nobody waits for news
        return job

    def record(self) -> JobRecord:
        """What is kept of it, as it is now."""
        return JobRecord(
            id=self.id,
            session_id=self.session_id,
            command=self.command,
            started_at=self.started_at,
            ended_at=self.ended_at,
            exit_code=self.exit_code,
            ended_by=self.ended_by,
            tail=self.tail,
            unread=self.unread.text(),
            is_known=self.is_known,
        )

    @property
    def was_killed(self) -> bool:
        return self.ended_by != "itself"

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def exit_code(self) -> int | None:
        """As `Completed` has it; None: it runs, or did not end by itself."""
        if self._record:
            return self._record.exit_code
        if self._task is None or not self._task.done() or self._task.cancelled() or self._task.exception():
            return None
        return self._task.result().exit_code

    @property
    def tail(self) -> str:
        """The latest output, for people: looking at it takes nothing from the model."""
        return bytes(self._tail[-TAIL_LIMIT:]).decode("utf-8", "replace")

    def _heard(self, data: bytes) -> None:
        self._tail += data
        if len(self._tail) > 2 * TAIL_LIMIT:  # not with each piece, so that each byte is moved only once
            del self._tail[:-TAIL_LIMIT]
        self._news.set()

    def take(self) -> str:
        """The output since the last look, at most `UNREAD_LIMIT` bytes of it."""
        running = self.is_running
        if running:
            self._news.clear()
        return self.unread.take(last=not running)

    async def news_within(self, seconds: float) -> None:
        """Wait until there is output that nobody has seen, or the job has ended; no longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    def follow(self, task: asyncio.Task[Completed]) -> None:
        self._task = task
        task.add_done_callback(self._on_end)

    def _on_end(self, task: asyncio.Task[Completed]) -> None:
        self.ended_at = time.time()
        self._news.set()
        if self._live:
            self._live.close()

    async def end(self, by: EndedBy = "person") -> None:
        """End it with all its processes. If whoever waits is cancelled, it is ended all the same."""
        if self.is_running:
            assert self._task is not None
            self.ended_by = by
            self._task.cancel()
            await asyncio.wait([self._task])


class Jobs:
    """The jobs of one workspace. `tag` is the workspace's: `workspace_tag`."""

    def __init__(self, processes: Processes, tag: str) -> None:
        self.on_end: Callable[[], None] = lambda: None
        """Called whenever a job has ended."""
        self._processes = processes
        self._tag = tag
        self._newest = 0
        self._jobs: dict[str, Job] = {}
        self._closed = False
        self._records: JobRecords | None = None
        self._saving: set[asyncio.Task[None]] = set()
        self._one_save = asyncio.Lock()

    async def restore(self, records: JobRecords) -> None:
        """Know what ended before the workspace was opened, and keep there what starts and ends from now on."""
        self._records = records
        for record in await asyncio.to_thread(records.read):
            known = record if record.ended_at else record.lost(time.time())
            self._jobs[record.id] = job = Job.restored(known)
            self.number_after(record.id)
            if known is not record:
                self._save(job)

    def number_after(self, job_id: str) -> None:
        """This name was given out once: it is not given out again."""
        self._newest = max(self._newest, number_of(job_id))

    def unheard(self, session_id: str) -> list[Job]:
        """Those of a session that have ended, and whose model does not know yet."""
        mine = (job for job in self._jobs.values() if job.session_id == session_id)
        return [job for job in mine if not job.is_running and not job.is_known]

    def heard(self, *ended: Job) -> None:
        """The model knows by now that they have ended."""
        for job in ended:
            job.is_known = True
            self._save(job)

    def _save(self, job: Job) -> None:
        if self._records:
            self._in_turn(self._saved(job, self._records))

    def _in_turn(self, work: Coroutine[None, None, None]) -> None:
        saving = asyncio.get_running_loop().create_task(work)
        self._saving.add(saving)
        saving.add_done_callback(self._saving.discard)

    async def _saved(self, job: Job, records: JobRecords) -> None:
        async with self._one_save:  # the newest is written last
            if self._jobs.get(job.id) is job:
                await asyncio.to_thread(records.write, job.record())

    def _new(self, session_id: str, command: str, live: LiveOutput | None, running_s: float = 0.0) -> Job:
        self._newest += 1
        return Job(f"job-{self._newest}", session_id, command, live, running_s)

    async def start(
        self,
        session_id: str,
        command: str,
        cwd: Path,
        env: Mapping[str, str],
        policy: Policy | None = None,
        sandbox: Mode = Mode.AUTO,
        *,
        live: LiveOutput | None = None,
    ) -> Job:
        """Start a command and leave it running. Raises OSError or ValueError if it cannot be started."""
        self._check_room(session_id)
        job = self._new(session_id, command, live)
        work = self._processes.run_command(
            command,
            cwd=cwd,
            env=env,
            tag=tag_within(self._tag, job.id),
            timeout_s=None,
            output=job.unread,
            policy=policy,
            sandbox=sandbox,
        )
        task = asyncio.get_running_loop().create_task(work, name=job.id)
        self._take_in(job, task)
        try:
            await asyncio.sleep(0)  # its first step starts the command, or fails
        except asyncio.CancelledError:  # the model will never learn of it
            await job.end("model")
            raise
        if task.done() and not task.cancelled() and (error := task.exception()):
            del self._jobs[job.id]
            raise error
        self._save(job)
        self._forget_old()
        return job

    def adopt(
        self,
        session_id: str,
        command: str,
        task: asyncio.Task[Completed],
        output: Output,
        live: LiveOutput,
        running_s: float = 0.0,
    ) -> Job:
        """Let a command that runs already, for so long, go on as a job. `output` collected what it wrote until now."""
        self._check_room(session_id)
        job = self._new(session_id, command, live, running_s)
        output.hand_over(job.unread)
        self._take_in(job, task)
        self._save(job)
        self._forget_old()
        return job

    def _check_room(self, session_id: str) -> None:
        if self._closed:
            raise ToolFailed("The workspace is closing: nothing can be started any more.")
        running = self.running
        if len(running) >= RUNNING_LIMIT:
            mine = _listed(job for job in running if job.session_id == session_id)
            raise ToolFailed(f"{len(running)} jobs are running, and no more may. End one with job_kill. {mine}")

    def _take_in(self, job: Job, task: asyncio.Task[Completed]) -> None:
        job.follow(task)
        task.add_done_callback(lambda _: self._ended(job))
        self._jobs[job.id] = job

    def _ended(self, job: Job) -> None:
        self._save(job)
        self.on_end()

    @property
    def running(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.is_running]

    def all(self) -> list[Job]:
        """Those that run, and the latest that have ended; the oldest first."""
        return list(self._jobs.values())

    def find(self, job_id: str) -> Job | None:
        """A job of any session."""
        return self._jobs.get(job_id)

    def get(self, session_id: str, job_id: str) -> Job:
        """A job of this session; raises ToolFailed for any other."""
        job = self._jobs.get(job_id)
        if job and job.session_id == session_id:
            return job
        mine = _listed(job for job in self._jobs.values() if job.session_id == session_id)
        if job:
            raise ToolFailed(f"{job_id} belongs to another session, which alone can look at it or end it. {mine}")
        raise ToolFailed(f"There is no {job_id}: it never was, or it ended long ago. {mine}")

    def is_running(self, job_id: str) -> bool:
        job = self._jobs.get(job_id)
        return job is not None and job.is_running

    async def end_session(self, session_id: str) -> None:
        """The session is gone: so are its jobs."""
        mine = [job for job in self._jobs.values() if job.session_id == session_id]
        await asyncio.gather(*(job.end() for job in mine))
        self._forget([job.id for job in mine])

    async def close(self) -> None:
        """The workspace closes: end all jobs, and start no more. Takes as long as a stubborn process: 4 s."""
        self._closed = True
        await asyncio.gather(*(job.end("close") for job in self._jobs.values()))
        await asyncio.sleep(0)  # their ends are heard of
        if self._saving:
            await asyncio.wait(self._saving)
        self._jobs.clear()

    def _forget_old(self) -> None:
        ended = [job.id for job in self._jobs.values() if not job.is_running]
        self._forget(ended[: max(0, len(ended) - ENDED_KEPT)])

    def _forget(self, job_ids: Sequence[str]) -> None:
        for job_id in job_ids:
            self._jobs.pop(job_id, None)
        if self._records and job_ids:
            self._in_turn(self._forgotten(job_ids, self._records))

    async def _forgotten(self, job_ids: Sequence[str], records: JobRecords) -> None:
        async with self._one_save:
            await asyncio.to_thread(records.forget, job_ids)


def kill_jobs_of_node(node: str) -> int:
    """The same for all that a former life of this node has left behind on this machine."""
    return kill_tagged(node_tag(node))


def kill_left_jobs(workspace_ids: Collection[str]) -> int:
    """End the jobs that a killed server left behind; gives how many processes there were. Blocks.

    Only for a server that owns the store with these workspaces and has not opened any of them yet.
    """
    return kill_tagged(*map(workspace_tag, workspace_ids))


def _listed(jobs: Iterable[Job]) -> str:
    names = [f"{job.id} ({shown(job.command)})" for job in jobs]
    return f"Jobs of this session: {', '.join(names)}." if names else "This session has no jobs."


def shown(command: str) -> str:
    """A command on one line, and not too long."""
    line = " ".join(command.split())
    return line if len(line) <= COMMAND_SHOWN else f"{line[:COMMAND_SHOWN]}..."
