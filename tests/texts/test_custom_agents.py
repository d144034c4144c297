"""Custom agents: how they are read, and that they never have more than who sends them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from covey.config.schema import ModelChoice
from covey.context.custom_agents import CustomAgent, custom_agent
from covey.protocol.events import PermissionRequest
from covey.protocol.messages import Message, ToolResult
from covey.protocol.requests import PostPrompt
from tests.support.engine import Engine, Work, call, config, within
from tests.texts.places import Places, put
from tests.texts.working import working

pytestmark = pytest.mark.anyio


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def described(places: Places, head: str) -> CustomAgent:
    places.agent("a", f"---\ndescription: d\n{head}\n---\nYou are one.")
    file = places.read().find("agent", "a")
    assert file
    return custom_agent(file)


def test_an_agent_of_claude_code_is_read(places: Places) -> None:
    agent = described(places, "tools: Read, Grep, Bash(git log:*)\nmodel: inherit\nmaxTurns: 7\npermissionMode: plan")
    assert agent.allowed == ("view", "grep", "bash") and agent.model == "" and agent.max_steps == 7 and agent.only_looks
    assert agent.has("view") and not agent.has("edit") and not agent.has("skill")


def test_an_agent_of_opencode_is_read(places: Places) -> None:
    agent = described(
        places, "mode: subagent\nmodel: p/m\ntools:\n  write: false\n  bash: true\npermission:\n  edit: deny"
    )
    assert agent.allowed is None and set(agent.denied) == {"write", "edit"} and agent.model == "p/m"
    assert agent.has("bash") and not any(agent.has(name) for name in ("write", "edit", "multiedit", "apply_patch"))


def test_tools_of_servers_are_named_one_by_one_or_together(places: Places) -> None:
    agent = described(places, "tools: [mcp__git, 'mcp__db__read_*', Edit]\ndisallowedTools: mcp__git__push")
    assert agent.has("mcp__git__log") and not agent.has("mcp__git__push") and not agent.has("mcp__github__x")
    assert agent.has("mcp__db__read_rows") and not agent.has("mcp__db__drop")
    assert agent.has("apply_patch") and agent.has("multiedit") and not agent.has("write")


async def send(engine: Engine, run_id: str = "custom", **options: Any) -> str:
    """One run; gives the result of its call of the agent tool."""
    request = PostPrompt(session_id=engine.session_id, prompt="go", run_id=run_id, **options)
    await within(engine.workspace.runs.post(request))
    await engine.ended(run_id)
    return next(result.content for result in results(engine.messages()) if result.name == "agent")


def results(messages: list[Message]) -> list[ToolResult]:
    return [result for message in messages for result in message.tool_results]


def in_child(engine: Engine) -> list[ToolResult]:
    (child,) = [session for session in engine.sessions() if session.parent_session_id]
    return results(engine.store.messages("w", child.id, "", 0))


async def test_the_model_knows_its_agents_and_one_works_as_its_file_says(places: Places) -> None:
    places.agent("reviewer", "---\ndescription: Reviews changes.\ntools: Read\n---\nYou find bugs.")
    async with working(places) as engine:
        engine.model.answer(*call("agent", prompt="review", agent="reviewer"))
        engine.model.answer("no bugs")
        assert await send(engine) == "no bugs"
        first, child, _ = engine.model.requests
        assert "- reviewer: Reviews changes." in first.system
        assert child.system.endswith("# Your role: reviewer\n\nYou find bugs.\n")
        assert [tool.name for tool in child.tools] == ["view"]


async def test_s12_an_agent_has_what_its_caller_has_and_its_file_names_and_no_more(places: Places) -> None:
    put(places.root / "a.txt", "one")
    places.agent(
        "writer", "---\ndescription: Writes.\ntools: Write, Bash, Task\npermissionMode: bypassPermissions\n---\nx"
    )
    async with working(places, settings=config(deny=("write:*.txt",))) as engine:
        engine.model.answer(*call("agent", prompt="write", agent="writer", writes=True))
        calls = [
            call("write", "c1", 0, file_path="a.txt", content="x"),
            call("edit", "c2", 1, file_path="a.txt", old_string="one", new_string="two"),
            call("agent", "c3", 2, prompt="go on"),
            call("write", "c4", 3, file_path="b.md", content="made"),
        ]
        engine.model.answer(*(word for words in calls for word in words))
        engine.model.answer("done")
        await send(engine, yolo=True)
        denied, edit, agent, made = in_child(engine)
        assert denied.is_error and "write:*.txt" in denied.content
        assert "There is no tool 'edit'" in edit.content and "There is no tool 'agent'" in agent.content
        assert not made.is_error and (places.root / "b.md").read_text() == "made"


async def test_s12_one_that_only_looks_changes_nothing_whatever_its_caller_says(places: Places) -> None:
    places.agent("looker", "---\ndescription: Looks.\npermissionMode: plan\n---\nx")
    async with working(places) as engine:
        engine.model.answer(*call("agent", prompt="write", agent="looker", writes=True))
        engine.model.answer(*call("write", file_path="b.md", content="made"))
        engine.model.answer("done")
        await send(engine, yolo=True)
        (result,) = in_child(engine)
        assert result.is_error and not (places.root / "b.md").exists()


async def test_s12_who_makes_a_plan_sends_none_that_could_do_more(places: Places) -> None:
    places.agent("writer", "---\ndescription: d\ntools: Read, Write\npermissionMode: bypassPermissions\n---\nx")
    async with working(places) as engine:
        engine.model.answer(*call("agent", prompt="write", agent="writer", writes=True))
        assert "No agent may write" in await send(engine, plan=True)
        assert [session.parent_session_id for session in engine.sessions()] == [""]


async def test_s12_what_its_file_wants_to_be_asked_about_is_asked_about_where_its_caller_is_not(places: Places) -> None:
    """Its own model, tools and permissions, in a session of its own; what it writes is its caller's change."""
    put(places.root / "a.txt", "one")
    places.agent(
        "careful",
        "---\ndescription: d\nmodel: test/m\ntools: Read, Edit, Write\npermission:\n  write: ask\n---\nBe careful.",
    )
    async with working(places) as engine:
        engine.model.answer(*call("agent", prompt="change it", agent="careful", writes=True))
        engine.model.answer(*call("view", "c0", file_path="a.txt"))
        engine.model.answer(*call("edit", "c1", file_path="a.txt", old_string="one", new_string="two"))
        engine.model.answer(*call("write", "c2", file_path="b.txt", content="made"))
        engine.model.answer("changed")
        prompt = PostPrompt(session_id=engine.session_id, prompt="go", run_id="custom", accept_edits=True)
        await within(engine.workspace.runs.post(prompt))
        await engine.until(lambda: engine.of_type(PermissionRequest))
        (request,) = engine.of_type(PermissionRequest)
        assert (request.tool_name, request.session_id, request.run_id) == ("write", engine.session_id, "custom")
        assert (places.root / "a.txt").read_text() == "two" and not (places.root / "b.txt").exists()
        await engine.grant(request.id, "allow")
        await engine.ended("custom")
        assert not any(result.is_error for result in in_child(engine)) and (places.root / "b.txt").read_text() == "made"
        child = engine.model.requests[1]
        assert child.model == "m" and {"view", "edit", "write"} <= {tool.name for tool in child.tools}
        assert "bash" not in {tool.name for tool in child.tools}


async def test_s13_an_agent_uses_the_tools_of_servers_and_asks_in_the_name_of_who_sent_it(places: Places) -> None:
    places.agent("historian", "---\ndescription: d\ntools: mcp__git\n---\nx")
    async with working(places) as engine:
        tool = Work()
        tool.harmless = False
        named = {name: replace(tool.value, name=name) for name in ("mcp__git__log", "mcp__other__log")}
        engine.workspace._parts.agent.more_tools = lambda: named
        engine.model.answer(*call("agent", prompt="look", agent="historian", writes=True))
        engine.model.answer(*call("mcp__git__log", "c1", 0, subject="x"), *call("mcp__other__log", "c2", 1))
        engine.model.answer("seen")
        await engine.post("go", "custom")
        await engine.until(lambda: engine.of_type(PermissionRequest))
        (request,) = engine.of_type(PermissionRequest)
        assert (request.session_id, request.run_id) == (engine.session_id, "custom"), "people watch that session"
        await engine.grant(request.id, "allow")
        await engine.ended("custom")
        used, other = in_child(engine)
        assert used.content == "worked" and "There is no tool 'mcp__other__log'" in other.content
        assert tool.calls == ["x"], "the workspace's own tool was used, and nothing was opened for the agent"


async def test_s14_a_model_that_is_not_configured_fails_the_run_with_that_sentence(places: Places) -> None:
    places.agent("picky", "---\ndescription: d\nmodel: sonnet\n---\nx")
    async with working(places) as engine:
        engine.model.answer(*call("agent", prompt="go", agent="picky"))
        said = await send(engine)
        assert said.startswith("The agent gave no answer") and 'no model is known as "sonnet"' in said
        assert len(engine.model.requests) == 2, "no other model was asked instead"


async def test_a_short_name_of_a_model_means_what_the_user_says(places: Places) -> None:
    places.agent("picky", "---\ndescription: d\nmodel: sonnet\n---\nx")
    settings = config()
    settings = structs.replace(settings, models=ModelChoice(aliases={"sonnet": "test/m"}))
    async with working(places, settings=settings) as engine:
        engine.model.answer(*call("agent", prompt="go", agent="picky"))
        engine.model.answer("found")
        assert await send(engine) == "found" and engine.model.requests[1].model == "m"


async def test_an_agent_that_nobody_knows_is_refused_with_those_that_there_are(places: Places) -> None:
    places.agent("reviewer", "---\ndescription: d\n---\nx")
    async with working(places) as engine:
        engine.model.answer(*call("agent", prompt="go", agent="nobody"))
        assert await send(engine) == "There is no agent 'nobody'. There are: reviewer."


async def test_the_steps_of_an_agent_are_bounded_by_its_file(places: Places) -> None:
    places.agent("brief", "---\ndescription: d\nmaxTurns: 1\n---\nx")
    async with working(places) as engine:
        engine.model.answer(*call("agent", prompt="go", agent="brief"))
        engine.model.answer(*call("ls"))
        said = await send(engine)
        assert "stopped after 1 step" in said
