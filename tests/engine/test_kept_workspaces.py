"""What keeps a workspace open besides clients and runs (R17): a prompt that is on its way in, and jobs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from covey.engine.commands import intake
from covey.engine.workspace import Workspace
from covey.protocol.errors import BadRequest
from covey.protocol.requests import PostPrompt
from covey.tools.live_output import LiveOutput, NoSink
from covey.tools.output import Output
from covey.tools.processes import Completed
from tests.engine.house import A, House, later, play


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    return House(tmp_path, monkeypatch)


def test_a_prompt_that_is_being_accepted_keeps_its_workspace(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def takes_long(prompt: str, root: Path) -> tuple[()]:
        await later(5)
        return ()

    async def scenario() -> None:
        everything = await house.start()
        workspace = await house.create(A)
        session = await workspace.sessions.create("")
        monkeypatch.setattr(intake, "mentioned", takes_long)
        posting = asyncio.ensure_future(workspace.runs.post(PostPrompt(session_id=session.id, prompt="hi")))
        await asyncio.sleep(0)
        everything.retire(A)
        await later(2)
        assert everything.all() == [workspace]
        run = await workspace.runs.get((await posting).run_id, 60)
        assert run.state == "completed"
        await later(1)
        assert everything.all() == []

    play(scenario)


def test_a_workspace_whose_last_prompt_was_refused_is_released(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuses(prompt: str, root: Path) -> tuple[()]:
        await later(5)
        raise BadRequest("no")

    async def scenario() -> None:
        everything = await house.start()
        workspace = await house.create(A)
        session = await workspace.sessions.create("")
        monkeypatch.setattr(intake, "mentioned", refuses)
        posting = asyncio.ensure_future(workspace.runs.post(PostPrompt(session_id=session.id, prompt="hi")))
        await asyncio.sleep(0)
        everything.retire(A)
        await asyncio.wait({posting})
        assert isinstance(posting.exception(), BadRequest)
        await later(1)
        assert everything.all() == []

    play(scenario)


def leave_job(workspace: Workspace) -> asyncio.Task[Completed]:
    """A job of which only its task is real."""
    jobs = workspace._parts.agent.jobs
    task = asyncio.ensure_future(_runs_for_ever())
    output, live = Output(100), LiveOutput(NoSink())
    jobs.adopt("s", "make watch", task, output, live)
    return task


async def _runs_for_ever() -> Completed:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


def test_a_job_keeps_its_workspace_when_everybody_has_left_for_at_most_12_hours(house: House) -> None:
    async def scenario() -> None:
        everything = await house.start(idle_exit_s=60)
        workspace = await house.create(A)
        task = leave_job(workspace)
        everything.retire(A)
        await later(12 * 3600 - 5)
        assert everything.all() == [workspace] and not everything.is_idle
        await later(10)
        assert everything.all() == []
        assert task.cancelled(), "the job is ended with its workspace"

    play(scenario)


def test_a_workspace_is_released_as_soon_as_its_last_job_has_ended(house: House) -> None:
    async def scenario() -> None:
        everything = await house.start()
        workspace = await house.create(A)
        leave_job(workspace)
        everything.retire(A)
        await later(100)
        assert everything.all() == [workspace]
        await workspace.jobs.kill("job-1")
        await later(1)
        assert everything.all() == []

    play(scenario)
