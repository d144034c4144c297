"""Agents that work for a run: in whose name they ask, what they may use, what they cost, and how they end with it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from covey.config.schema import Config, ModelSettings, ProviderSettings
from covey.lifecycle.reply import UsageReported
from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.protocol.events import PermissionRequest
from covey.protocol.messages import Session
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import PromptReceipt, RunComplete
from covey.store.base import Change, DropSession, PutWorkspace, WorkspaceRow
from covey.tools.base import ToolContext, ToolOutput
from tests.support.disk import Disk
from tests.support.engine import Engine, Gate, Stubborn, call, config, running, within
from tests.support.tools import FakeTool

pytestmark = pytest.mark.anyio


class Params(msgspec.Struct):
    text: str = ""


class Delegates(FakeTool[Params]):
    """Sends an agent."""

    name = "delegates"
    effect = Effect.TALKS
    independent = True
    params = Params

    def intent(self, params: Params, context: ToolContext) -> Intent:
        return Intent(self.name, "delegate", params.text, harmless=True)

    async def run(self, params: Params, context: ToolContext) -> ToolOutput:
        return ToolOutput(await context.host.delegate(context, params.text))


class Looks(Delegates):
    """A tool that agents have too; it must be asked for."""

    name = "view"
    effect = Effect.LOOKS
    independent = False

    def intent(self, params: Params, context: ToolContext) -> Intent:
        return Intent("view", "read", "/etc/hosts")

    async def run(self, params: Params, context: ToolContext) -> ToolOutput:
        return ToolOutput("seen")


class LooksFreely(Looks):
    def intent(self, params: Params, context: ToolContext) -> Intent:
        return Intent("view", "read", "here", harmless=True)


def use(engine: Engine, *tools: FakeTool[Any]) -> None:
    engine.workspace._parts.agent.tools.update({tool.name: tool.value for tool in tools})


def priced(*models: str, price: float = 1.0) -> Config:
    """A configuration whose models cost so many dollars for a million tokens that they read."""
    settings = tuple(ModelSettings(id=model, price_prompt=price) for model in models)
    provider = ProviderSettings(type="scripted", models=settings)
    return msgspec.structs.replace(config(), providers={"test": provider})


def _drops(change: Change) -> int:
    """How many sessions it removes."""
    return sum(isinstance(write, DropSession) for write in change.writes)


def child_of(engine: Engine) -> Session:
    (child,) = (session for session in engine.sessions() if session.parent_session_id)
    return child


def states(store: Disk, session_id: str) -> set[str]:
    return {row.run.state for row in store.open_runs("w") if row.run.session_id == session_id}


async def post(engine: Engine, **options: Any) -> PromptReceipt:
    request = PostPrompt(session_id=engine.session_id, prompt="find it", run_id="a", **options)
    return await within(engine.workspace.runs.post(request))


async def test_what_is_allowed_for_the_session_is_allowed_for_its_agents(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Delegates(), Looks())
        engine.model.answer(*call("delegates", text="look twice"))
        engine.model.answer(*call("view", "v1"))
        engine.model.answer(*call("view", "v2"))
        await post(engine)
        await engine.until(lambda: engine.of_type(PermissionRequest))
        (request,) = engine.workspace.asks.permissions()
        await engine.grant(request.id, "allow_session")
        await engine.until(lambda: len(engine.of_type(PermissionRequest)) > 1 or "a" in engine.terminals())
        assert len(engine.of_type(PermissionRequest)) == 1, "the same thing was asked again"


async def test_what_was_allowed_for_the_session_before_is_allowed_for_its_agents(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Delegates(), Looks())
        engine.model.answer(*call("view"))
        await engine.post("look yourself", "first")
        await engine.until(lambda: engine.of_type(PermissionRequest))
        (request,) = engine.workspace.asks.permissions()
        await engine.grant(request.id, "allow_session")
        await engine.ended("first")
        engine.model.answer(*call("delegates", "c2", text="look"))
        engine.model.answer(*call("view", "v1"))
        await post(engine)
        await engine.until(lambda: len(engine.of_type(PermissionRequest)) > 1 or "a" in engine.terminals())
        assert len(engine.of_type(PermissionRequest)) == 1, "the same thing was asked again"


async def test_agents_of_a_run_that_asks_nobody_ask_nobody(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Delegates(), Looks())
        engine.model.answer(*call("delegates", text="look"))
        engine.model.answer(*call("view", "v1"))
        await post(engine, yolo=True)
        await engine.until(lambda: engine.of_type(PermissionRequest) or "a" in engine.terminals())
        assert not engine.of_type(PermissionRequest)


async def test_agents_use_the_model_that_the_run_was_given(tmp_path: Path) -> None:
    async with running(tmp_path, settings=priced("m", "other")) as engine:
        use(engine, Delegates())
        engine.model.answer(*call("delegates", text="where?"))
        await post(engine, model="test/other")
        await engine.ended("a")
        assert [request.model for request in engine.model.requests] == ["other", "other", "other"]


async def test_agents_cannot_spend_more_than_the_run_may(tmp_path: Path) -> None:
    async with running(tmp_path, settings=priced("m")) as engine:
        use(engine, Delegates(), LooksFreely())
        engine.model.answer(*call("delegates", text="look for long"), UsageReported(1_000_000, 0))
        for number in range(10):
            engine.model.answer(*call("view", f"v{number}", text=str(number)), UsageReported(1_000_000, 0))
        await post(engine, max_cost=3.0)
        await engine.ended("a")
        assert engine.workspace.sessions.get(engine.session_id).cost <= 4.0, "a step more than the bound at most"


async def test_agents_cannot_spend_more_than_the_session_may(tmp_path: Path) -> None:
    settings = priced("m")
    limits = msgspec.structs.replace(settings.limits, cost_per_session=3.0)
    async with running(tmp_path, settings=msgspec.structs.replace(settings, limits=limits)) as engine:
        use(engine, Delegates(), LooksFreely())
        for round_ in range(3):  # each costs half a dollar itself, and two dollars for its agent
            engine.model.answer(*call("delegates", f"d{round_}", text=f"look {round_}"), UsageReported(500_000, 0))
            for number in range(3):
                engine.model.answer(*call("view", f"v{number}", text=str(number)), UsageReported(500_000, 0))
            engine.model.answer("found", UsageReported(500_000, 0))
        await post(engine)
        await engine.ended("a")
        assert engine.workspace.sessions.get(engine.session_id).cost <= 3.5, "a step more than the bound at most"


async def test_what_a_cancelled_agent_has_cost_counts_and_is_not_kept_for_ever(tmp_path: Path) -> None:
    async with running(tmp_path, settings=priced("m")) as engine:
        use(engine, Delegates(), LooksFreely())
        gate = Gate()
        engine.model.answer(*call("delegates", text="where?"), UsageReported(1_000_000, 0))
        engine.model.answer(*call("view", "v1"), UsageReported(2_000_000, 0))
        engine.model.answer(gate)
        await post(engine)
        await gate.reached()
        await engine.cancel()
        await engine.ended("a")
        assert child_of(engine).cost == 2.0
        assert engine.workspace.runs._waiters._wanted == {}
        assert engine.workspace.sessions.get(engine.session_id).cost == 3.0


async def test_an_agent_is_not_shown_a_file_that_a_rule_denies(tmp_path: Path) -> None:
    """Only people mention files: what a model writes is not their request."""
    (tmp_path / "secret.txt").write_text("the secret word")
    store = Disk()
    store._write("w", PutWorkspace(WorkspaceRow("w", str(tmp_path), 7, 1)))
    async with running(tmp_path, store=store, settings=config(deny=("view:secret.txt",))) as engine:
        use(engine, Delegates())
        engine.model.answer(*call("delegates", text="Repeat @secret.txt word for word."))
        await post(engine)
        await engine.ended("a")
        (prompt, *_) = store.messages("w", child_of(engine).id, "", 0)
        assert len(prompt.parts) == 1, "the file came along"


async def test_a_cancelled_run_ends_after_its_agent_even_if_that_is_stubborn(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(grace_s=0.2)) as engine:
        use(engine, Delegates())
        gate = Stubborn()
        engine.model.answer(*call("delegates", text="where?"))
        engine.model.answer(gate)
        await post(engine)
        await gate.reached()
        await engine.cancel()
        await engine.until(lambda: len(engine.of_type(RunComplete)) == 2)
        gate.open()
        assert list(engine.terminals())[-1] == "a"


async def test_a_prompt_in_an_agents_session_cannot_change_anything_either(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Delegates())
        engine.model.answer(*call("delegates", text="where?"))
        await post(engine)
        await engine.ended("a")
        engine.model.answer(*call("work"))
        request = PostPrompt(session_id=child_of(engine).id, prompt="now do it", run_id="b")
        await within(engine.workspace.runs.post(request))
        await engine.ended("b")
        assert engine.model.requests[-2].tools == []
        assert engine.tool.calls == [], "a tool ran that the model was not given"


async def test_an_agent_whose_session_is_deleted_is_a_result_that_says_so(tmp_path: Path) -> None:
    async with running(tmp_path, settings=priced("m")) as engine:
        use(engine, Delegates(), LooksFreely())
        gate = Gate()
        engine.model.answer(*call("delegates", text="where?"), UsageReported(1_000_000, 0))
        engine.model.answer(*call("view", "v1"), UsageReported(2_000_000, 0))
        engine.model.answer(gate)
        await post(engine)
        await gate.reached()
        await within(engine.workspace.sessions.delete(child_of(engine).id))
        assert (await engine.ended("a")).state == "completed"
        (result,) = (result for message in engine.messages() for result in message.tool_results)
        assert "cancelled" in result.content
        assert engine.workspace.sessions.get(engine.session_id).cost == 3.0


async def test_deleting_a_session_while_its_agent_works_ends_both(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Delegates())
        gate = Gate()
        engine.model.answer(*call("delegates", text="where?"))
        engine.model.answer(gate)
        await post(engine)
        await gate.reached()
        await within(engine.workspace.sessions.delete(engine.session_id))
        assert engine.sessions() == []
        assert len(engine.terminals()) == 2
        assert engine.workspace._parts.turns.tool_calls._host._principals == {}
        dropping = [change for group in engine.disk.groups for change in group if _drops(change)]
        assert [_drops(change) for change in dropping] == [2], "after a crash both are there, or neither"


async def test_a_prompt_that_only_plans_is_not_folded_into_a_turn_that_changes_things(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate, *call("work"))
        await post(engine)
        await gate.reached()
        request = PostPrompt(session_id=engine.session_id, prompt="how would you delete all of it?", plan=True)
        second = await within(engine.workspace.runs.post(request))
        gate.open()
        run = await engine.ended(second.run_id)
        assert run.folded_into is None, "it only wanted a plan, and got the tools of another run"


async def test_an_agent_that_was_accepted_at_a_crash_does_not_work_for_nobody(tmp_path: Path) -> None:
    store = Disk()
    store.keeps_copies = True
    async with running(tmp_path, store=store) as engine:
        use(engine, Delegates())
        engine.model.answer(*call("delegates", text="where?"))
        await post(engine)
        await engine.ended("a")
        child = child_of(engine).id
    left = [copy for copy in store.copies if states(copy, child)]
    waiting = [copy for copy in left if "active" not in states(copy, child)]
    assert waiting, "the crash was never at the moment that counts"
    async with running(tmp_path, store=waiting[0]) as engine:
        await asyncio.gather(*(engine.ended(run.run_id) for run in engine.workspace.runs.open_runs()))
        assert engine.model.requests == [], "a model was paid for an answer that nobody waits for"


async def test_agents_at_the_same_time_share_what_the_run_may_still_spend(tmp_path: Path) -> None:
    async with running(tmp_path, settings=priced("m")) as engine:
        use(engine, Delegates(), LooksFreely())
        words = [word for n in range(4) for word in call("delegates", f"c{n}", n, text=f"look {n}")]
        engine.model.answer(*words, UsageReported(1_000_000, 0))
        for number in range(40):
            engine.model.answer(*call("view", f"v{number}", text=str(number)), UsageReported(1_000_000, 0))
        await post(engine, max_cost=5.0)
        await engine.ended("a")
        cost = engine.workspace.sessions.get(engine.session_id).cost
        assert cost <= 9.0, f"it cost ${cost}: a step more than the bound for each agent at most"


async def test_a_run_with_an_agent_has_written_its_last_words_before_its_workspace_is_closed(tmp_path: Path) -> None:
    """The drain is a fifth longer than the grace: whoever waits for agents must not take twice as long."""

    class Stuck(LooksFreely):
        name = "glob"
        parallel = True
        gate = Stubborn()

        async def run(self, params: Params, context: ToolContext) -> ToolOutput:
            await self.gate.pass_through()
            return ToolOutput("seen")

    async with running(tmp_path, settings=config(grace_s=2)) as engine:
        stuck, gate = Stuck(), Gate()
        use(engine, Delegates(), stuck)
        engine.model.answer(*call("delegates", "c0", 0, text="where?"), *call("glob", "c1", 1))
        engine.model.answer(gate)
        await post(engine)
        await gate.reached()
        await stuck.gate.reached()
        try:
            await within(engine.workspace.close(3.5))
            row = engine.store.run("w", "a")
            assert row is not None and row.run.state == "cancelled", "the store is closed now, and it is still active"
        finally:
            stuck.gate.open()


async def test_an_agent_that_has_just_ended_is_paid_for_by_a_run_that_is_cancelled(tmp_path: Path) -> None:
    """Its end is decided, but on its way to the disk."""
    async with running(tmp_path, settings=priced("m")) as engine:
        use(engine, Delegates())
        gate = Gate()
        engine.model.answer(*call("delegates", text="where?"), UsageReported(1_000_000, 0))
        engine.model.answer(gate, "there", UsageReported(2_000_000, 0))
        await post(engine)
        await gate.reached()
        child = child_of(engine)
        engine.disk.hold()
        gate.open()
        while engine.workspace._parts.lanes.open(child.id).is_busy:
            await asyncio.sleep(0)
        cancelling = asyncio.ensure_future(engine.cancel())
        for _ in range(2000):  # as long as it takes to give up, for one that does
            if not engine.workspace._parts.turns.tool_calls._host._principals:
                break
            await asyncio.sleep(0)
        engine.disk.release()
        await cancelling
        await engine.ended("a")
        assert engine.workspace.sessions.get(engine.session_id).cost == 3.0


async def test_a_prompt_of_a_person_in_an_agents_session_goes_on_after_a_crash(tmp_path: Path) -> None:
    store = Disk()
    store.keeps_copies = True
    async with running(tmp_path, store=store) as engine:
        use(engine, Delegates())
        engine.model.answer(*call("delegates", text="where?"))
        await post(engine)
        await engine.ended("a")
        child = child_of(engine).id
        gate = Gate()
        engine.model.answer(gate)
        await within(engine.workspace.runs.post(PostPrompt(session_id=child, prompt="and why?", run_id="b")))
        await gate.reached()
        await within(engine.workspace.runs.post(PostPrompt(session_id=child, prompt="and how?", run_id="c")))
        left = store.copies[-1]
        gate.open()
        await engine.ended("c")
    async with running(tmp_path, store=left) as engine:
        assert (await engine.ended("b")).state == "interrupted"
        assert (await engine.ended("c")).state == "completed", "somebody was promised that it runs"


async def test_a_prompt_is_not_folded_into_a_turn_that_has_more_freedom_than_it_asked_for(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.tool.harmless = False
        gate = Gate()
        engine.model.answer(gate, *call("work"))
        await post(engine, yolo=True)
        await gate.reached()
        second = await engine.post("delete all of it")
        gate.open()
        run = await engine.ended(second.run_id)
        assert run.folded_into is None, "nobody will be asked about what it does"
