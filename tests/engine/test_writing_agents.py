"""Agents that may write: whose permission they need, whose turn their changes belong to, and how they end with it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from covey.engine.turns.last_words import AGENT_CUT_OFF
from covey.protocol.errors import Conflict
from covey.protocol.events import File, PermissionRequest
from covey.protocol.messages import Session
from covey.protocol.requests import PostPrompt, UndoTurns, UpdateSession
from covey.protocol.runs import RunComplete
from covey.tools.agent import NO_WRITERS, agent_tool
from tests.support.disk import Disk
from tests.support.engine import Engine, Gate, call, config, running, within

pytestmark = pytest.mark.anyio

RUN = "writing-agents"
"""Processes of a run are found by its id: one of their own for these tests."""


@asynccontextmanager
async def at_work(directory: Path, store: Disk | None = None, **settings: Any) -> AsyncIterator[Engine]:
    project = directory / "project"
    project.mkdir(exist_ok=True)
    (project / "a.py").write_text("one\n")
    async with running(directory, store=store, project=project, settings=config(**settings)) as engine:
        yield engine


def sends(prompt: str = "change it", *, writes: bool = True, call_id: str = "send") -> tuple[Any, ...]:
    return call("agent", call_id, prompt=prompt, writes=writes)


def writes(name: str, text: str, call_id: str = "w1") -> tuple[Any, ...]:
    return call("write", call_id, file_path=name, content=text)


async def post(engine: Engine, run_id: str = RUN, **options: Any) -> None:
    request = PostPrompt(session_id=engine.session_id, prompt="do it", run_id=run_id, **options)
    await within(engine.workspace.runs.post(request))


def child_of(engine: Engine) -> Session:
    (child,) = (session for session in engine.sessions() if session.parent_session_id)
    return child


def result_of(engine: Engine) -> str:
    (result,) = (result for message in engine.messages() for result in message.tool_results)
    return result.content


async def undo(engine: Engine, session_id: str = "") -> Any:
    return await within(engine.workspace.sessions.undo(session_id or engine.session_id, UndoTurns()))


async def test_m_what_an_agent_writes_counts_and_is_undone_with_the_turn_that_sent_it(tmp_path: Path) -> None:
    async with at_work(tmp_path) as engine:
        engine.model.answer(*sends())
        engine.model.answer(*writes("new.py", "made"), *call("bash", "b1", 1, command="echo two > made-by-command"))
        engine.model.answer("wrote new.py")
        await post(engine, yolo=True)
        await engine.ended(RUN)
        project, child = tmp_path / "project", child_of(engine)
        assert (project / "new.py").read_text() == "made"
        assert result_of(engine) == "wrote new.py"
        files = {(file.session_id, file.run_id) for file in engine.of_type(File)}
        assert files == {(engine.session_id, RUN)}, "the turn that sent it shows what it changed"
        changes = await within(engine.workspace.sessions.changes(engine.session_id, run_id=RUN))
        assert {Path(file.path).name for file in changes.files} == {"new.py", "made-by-command"}
        assert not changes.missed
        with pytest.raises(Conflict, match=f"an agent worked here for run '{RUN}'"):
            await undo(engine, child.id)
        receipt = await undo(engine)
        assert not receipt.untracked and not receipt.skipped
        assert {path.name for path in project.iterdir()} == {"a.py"}


async def test_m_it_asks_in_the_name_of_the_run_that_sent_it(tmp_path: Path) -> None:
    async with at_work(tmp_path) as engine:
        engine.model.answer(*sends())
        engine.model.answer(*writes("new.py", "made"))
        await post(engine)
        await engine.until(lambda: engine.of_type(PermissionRequest))
        (request,) = engine.workspace.asks.permissions()
        assert (request.session_id, request.run_id, request.tool_name) == (engine.session_id, RUN, "write")
        await engine.grant(request.id, "deny", "not that one")
        await engine.ended(RUN)
        assert not (tmp_path / "project" / "new.py").exists()


async def test_m_it_has_the_mode_and_the_rules_of_the_session_that_sent_it(tmp_path: Path) -> None:
    async with at_work(tmp_path, deny=("write:no.py",)) as engine:
        await engine.workspace.sessions.update(engine.session_id, UpdateSession(mode="accept_edits"))
        engine.model.answer(*sends())
        engine.model.answer(*writes("yes.py", "made"), *call("write", "w2", 1, file_path="no.py", content="made"))
        await post(engine)
        await engine.ended(RUN)
        assert not engine.of_type(PermissionRequest)
        assert {path.name for path in (tmp_path / "project").iterdir()} == {"a.py", "yes.py"}
        system = engine.model.requests[1].system
        assert "You complete it and report" in system and "changing files in the workspace" in system


async def test_m_without_the_wish_an_agent_only_looks_and_so_does_who_prompts_in_its_session(tmp_path: Path) -> None:
    async with at_work(tmp_path) as engine:
        engine.model.answer(*sends(writes=False))
        engine.model.answer(*writes("new.py", "made"))
        await post(engine, yolo=True)
        await engine.ended(RUN)
        engine.model.answer(*sends(call_id="second"))
        await post(engine, "writing-agents-2", yolo=True)
        await engine.ended("writing-agents-2")
        writer = next(s for s in engine.sessions() if s.parent_session_id and s.title == "change it")
        engine.model.answer(*writes("new.py", "made"))
        request = PostPrompt(session_id=writer.id, prompt="now you", run_id="writing-agents-3", yolo=True)
        await within(engine.workspace.runs.post(request))
        await engine.ended("writing-agents-3")
        assert not (tmp_path / "project" / "new.py").exists()


async def test_m_an_agent_that_only_looks_has_commands_that_only_look(tmp_path: Path) -> None:
    async with at_work(tmp_path) as engine:
        engine.model.answer(*sends(writes=False))
        looks, changes = call("bash", "b1", command="cat a.py"), call("bash", "b2", 1, command="echo two > a.py")
        engine.model.answer(*looks, *changes)
        engine.model.answer("one")
        await post(engine, yolo=True)
        await engine.ended(RUN)
        said = engine.store.messages("w", child_of(engine).id, "", 0)
        results = [result for message in said for result in message.tool_results]
        assert "one" in results[0].content and not results[0].is_error
        assert results[1].is_error and (tmp_path / "project" / "a.py").read_text() == "one\n"


@pytest.mark.parametrize("by_session", [False, True])
async def test_a_plan_sends_agents_that_only_look_and_none_that_writes(tmp_path: Path, by_session: bool) -> None:
    async with at_work(tmp_path) as engine:
        mode: Any = "plan" if by_session else "ask"
        await engine.workspace.sessions.update(engine.session_id, UpdateSession(mode=mode))
        engine.model.answer(*sends(), *call("agent", "look", 1, prompt="what is in a.py?"))
        shell = call("bash", "b1", 1, command="echo two > a.py"), call("bash", "b2", 2, command="cat a.py")
        engine.model.answer(*writes("new.py", "made"), *shell[0], *shell[1])
        engine.model.answer("it says one")
        await post(engine, plan=not by_session, yolo=True)
        await engine.ended(RUN)
        refused, report = (result for message in engine.messages() for result in message.tool_results)
        assert refused.content == NO_WRITERS and report.content == "it says one"
        said = engine.store.messages("w", child_of(engine).id, "", 0)
        results = [result for message in said for result in message.tool_results]
        assert [result.is_error for result in results] == [True, True, False] and "one" in results[2].content
        project = tmp_path / "project"
        assert {path.name: path.read_text() for path in project.iterdir()} == {"a.py": "one\n"}


async def test_a_plan_is_not_told_of_agents_that_write(tmp_path: Path) -> None:
    async with at_work(tmp_path) as engine:
        await post(engine, plan=True)
        await engine.ended(RUN)
        await post(engine, "writing-agents-2")
        await engine.ended("writing-agents-2")
        plan, work = ({tool.name: tool for tool in request.tools} for request in engine.model.requests)
        assert {"agent", "fetch", "bash", "view"} <= set(plan) and not {"edit", "write", "question"} & set(plan)
        assert "writes" not in plan["agent"].description and "writes" not in plan["agent"].parameters["properties"]
        assert not {"background", "network"} & set(plan["bash"].parameters["properties"])
        told = "\n".join(tool.description for tool in plan.values())
        assert not any(name in told for name in ("job_output", "job_kill", "download", "unsandboxed"))
        assert "writes" in work["agent"].description and "writes" in work["agent"].parameters["properties"]


async def test_what_a_plan_fetches_is_asked_about(tmp_path: Path) -> None:
    async with at_work(tmp_path) as engine:
        engine.model.answer(*call("fetch", url="https://example.com/"))
        await post(engine, plan=True)
        await engine.until(lambda: engine.workspace.asks.permissions())
        (asked,) = engine.workspace.asks.permissions()
        assert asked.tool_name == "fetch"
        await engine.grant(asked.id, "deny")
        await engine.ended(RUN)


async def test_m_a_session_that_turns_to_planning_stops_its_writer(tmp_path: Path) -> None:
    async with at_work(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(*sends(call_id="second"))
        engine.model.answer(gate, *writes("new.py", "made"))
        await post(engine, "writing-agents-2", yolo=True)
        await gate.reached()
        await engine.workspace.sessions.update(engine.session_id, UpdateSession(mode="plan"))
        gate.open()
        await engine.ended("writing-agents-2")
        assert not (tmp_path / "project" / "new.py").exists()


async def test_m_a_cancel_ends_both_and_what_was_cut_off_is_said_of_the_turn(tmp_path: Path) -> None:
    half, ready = tmp_path / "project" / "half", tmp_path / "project" / "ready"
    async with at_work(tmp_path) as engine:
        os.mkfifo(ready)
        engine.model.answer(*sends())
        engine.model.answer(*call("bash", "b1", command="echo two > half; echo > ready; sleep 600"))
        await post(engine, yolo=True)
        await within(asyncio.to_thread(ready.read_text))  # until it is opened to be written to
        await engine.cancel()
        run = await engine.ended(RUN)
        assert run.state == "cancelled"
        assert [terminal.run_id for terminal in engine.of_type(RunComplete)][-1] == RUN
        changes = await within(engine.workspace.sessions.changes(engine.session_id))
        assert [Path(file.path).name for file in changes.files] == ["half"]
        assert [missed.reason for missed in changes.missed] == [AGENT_CUT_OFF]
        receipt = await undo(engine)
        assert receipt.untracked and not half.exists()


async def test_m_after_a_crash_the_turn_still_says_that_its_agent_was_cut_off(tmp_path: Path) -> None:
    store = Disk()
    store.keeps_copies = True
    async with at_work(tmp_path, store) as engine:
        gate = Gate()
        engine.model.answer(*sends())
        engine.model.answer(*call("bash", "b1", command="echo two > made"))
        engine.model.answer(gate)
        await post(engine, yolo=True)
        await gate.reached()
        gate.open()
        await engine.ended(RUN)
        child = child_of(engine).id
    cut = next(
        copy
        for copy in store.copies
        if any(message.tool_calls for message in copy.messages("w", child, "", 0))
        and not any(message.tool_results for message in copy.messages("w", child, "", 0))
        and all(message.finish for message in copy.messages("w", child, "", 0) if message.tool_calls)
    )
    async with at_work(tmp_path, cut) as engine:
        session = next(session.id for session in engine.sessions() if not session.parent_session_id)
        await asyncio.gather(*(engine.ended(run.run_id) for run in engine.store.runs("w", "", "", 10)))
        changes = await within(engine.workspace.sessions.changes(session))
        assert [missed.reason for missed in changes.missed] == [AGENT_CUT_OFF]


def test_m_agents_that_write_run_one_after_the_other() -> None:
    tool = agent_tool()
    assert tool.is_parallel(json.dumps({"prompt": "look"}))
    assert not tool.is_parallel(json.dumps({"prompt": "write", "writes": True}))
    assert tool.is_parallel("{nonsense"), "it is refused, and changes nothing"


# ── one that only looks ──


async def test_one_that_only_looks_may_fetch_and_its_principal_is_asked(tmp_path: Path) -> None:
    async with at_work(tmp_path) as engine:
        engine.model.answer(*sends("look it up", writes=False))
        engine.model.answer(*call("fetch", url="https://example.com/"))
        await post(engine)
        await engine.until(lambda: engine.workspace.asks.permissions())
        (asked,) = engine.workspace.asks.permissions()
        assert (asked.session_id, asked.run_id, asked.tool_name) == (engine.session_id, RUN, "fetch")
        assert {"view", "bash", "fetch"} <= {tool.name for tool in engine.model.requests[1].tools}
        await engine.grant(asked.id, "deny")
        await engine.ended(RUN)


async def test_one_that_only_looks_is_told_so_and_not_of_a_plan(tmp_path: Path) -> None:
    async with at_work(tmp_path) as engine:
        engine.model.answer(*sends("look", writes=False))
        engine.model.answer(*writes("a.txt", "x"), *call("bash", "c2", 1, command="rm a.txt", description="d"))
        await post(engine)
        await engine.ended(RUN)
        messages = engine.store.messages("w", child_of(engine).id, "", 0)
        refused = [result.content for message in messages for result in message.tool_results]
        assert len(refused) == 2 and all("only look" in text and "plan" not in text for text in refused)
