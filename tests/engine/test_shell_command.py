"""Commands of people: at once, beside the lane, in no turn, and shown to a model only if they are shared."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from covey.engine.commands import shell as shell_module
from covey.protocol.errors import BadRequest, Conflict, NotFound
from covey.protocol.messages import ShellCommand, ShellCommandPart
from covey.protocol.requests import RunShell
from tests.support.engine import Engine, Gate, call, running, within

pytestmark = pytest.mark.anyio


async def shell(engine: Engine, command: str, *, share: bool = False) -> tuple[str, int]:
    engine.workspace._parts.agent.root = engine.shared.data_dir
    result = await within(engine.workspace.shell.run(engine.session_id, RunShell(command=command, share=share)))
    return result.output, result.exit_code


def commands(engine: Engine) -> list[ShellCommand]:
    return [part.data for m in engine.messages() for part in m.parts if isinstance(part, ShellCommandPart)]


def shown(engine: Engine) -> list[list[str]]:
    """For each model call, the commands that it was shown."""
    return [
        [part.data.command for m in request.messages for part in m.parts if isinstance(part, ShellCommandPart)]
        for request in engine.model.requests
    ]


async def test_it_is_answered_at_its_end_and_recorded_as_a_message_of_no_turn(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        line = "echo out; echo err >&2; exit 4"
        assert await shell(engine, line) == ("out\nerr\n", 4)
        assert await shell(engine, "kill -9 $$") == ("", 137)
        (first, second) = engine.messages()
        assert (first.role, first.run_id, first.is_command, second.is_command) == ("user", None, True, True)
        assert commands(engine)[0] == ShellCommand(command=line, output="out\nerr\n", exit_code=4)
        engine.check()


async def test_it_is_run_in_the_directory_where_the_person_is(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        (engine.shared.data_dir / "src" / "api").mkdir(parents=True)
        await shell(engine, "true")
        request = RunShell(command="pwd", cwd="src/api")
        result = await within(engine.workspace.shell.run(engine.session_id, request))
        assert result.output == f"{engine.shared.data_dir}/src/api\n"
        for elsewhere in ("../up", "/etc", "gone"):
            with pytest.raises(BadRequest):
                await within(engine.workspace.shell.run(engine.session_id, RunShell(command="pwd", cwd=elsewhere)))


async def test_a_command_in_the_middle_of_a_turn_disturbs_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(*call())
        engine.model.answer("half ", gate, "whole")
        await engine.post("go", "a")
        await gate.reached()
        await shell(engine, "echo 1", share=True)
        await shell(engine, "echo 2")
        gate.open()
        assert (await engine.ended("a")).text == "half whole"
        await engine.post("and?", "b")
        await engine.ended("b")
        assert shown(engine) == [[], [], ["echo 1"]]
        engine.check()


async def test_a_shared_command_is_seen_with_a_prompt_that_joins_the_turn(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer("first", gate, *call())
        await engine.post("go", "a")
        await gate.reached()
        await shell(engine, "make test", share=True)
        await engine.post("fix that", mode="fold")
        gate.open()
        await engine.ended("a")
        assert shown(engine) == [[], ["make test"]]
        await engine.post("more", "c")
        await engine.ended("c")
        assert shown(engine)[-1] == ["make test"]
        seen = [[m.text for m in request.messages if m.role == "user"] for request in engine.model.requests]
        assert seen[1:] == [["go", "fix that"], ["go", "fix that", "more"]]
        engine.check()


async def test_whoever_leaves_takes_the_command_along_and_it_is_recorded(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        started = tmp_path / "started"
        asking = asyncio.create_task(shell(engine, f"echo begun; touch {started}; sleep 60"))
        while not started.exists():
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await within(asking)
        await engine.until(lambda: commands(engine))
        assert [(each.output, each.exit_code) for each in commands(engine)] == [("begun\n", shell_module.CUT_OFF)]
        engine.check()


async def test_closing_the_workspace_ends_what_runs(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        started = tmp_path / "started"
        asking = asyncio.create_task(shell(engine, f"touch {started}; sleep 60"))
        while not started.exists():
            await asyncio.sleep(0)
        await engine.close()
        with pytest.raises(asyncio.CancelledError):
            await within(asking)
        with pytest.raises(Conflict, match="closing"):
            await shell(engine, "true")
        assert [each.exit_code for each in commands(engine)] == [shell_module.CUT_OFF]


async def test_a_session_that_is_deleted_meanwhile_keeps_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        go = tmp_path / "go"
        asking = asyncio.create_task(shell(engine, f"until [ -e {go} ]; do sleep 0.01; done; echo done"))
        await asyncio.sleep(0)
        await within(engine.workspace.sessions.delete(engine.session_id))
        go.touch()
        assert await within(asking) == ("done\n", 0)
        assert engine.messages() == []
        with pytest.raises(NotFound):
            await shell(engine, "true")


async def test_what_cannot_be_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_module, "AT_ONCE", 0)
    async with running(tmp_path) as engine:
        with pytest.raises(BadRequest, match="empty"):
            await shell(engine, " \n")
        with pytest.raises(Conflict, match="already"):
            await shell(engine, "true")
        monkeypatch.setattr(shell_module, "AT_ONCE", 1)
        with pytest.raises(BadRequest, match="could not be started"):
            await shell(engine, "echo \0")
        assert engine.messages() == []


async def test_a_command_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_module, "TIMEOUT_S", 0.2)
    async with running(tmp_path) as engine:
        assert await shell(engine, "sleep 60") == ("", shell_module.TIMED_OUT)
