"""What tools ask of the server: todos, questions, agents; and tools that run at the same time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from covey.config.schema import ModelSettings, ProviderSettings
from covey.lifecycle.reply import UsageReported
from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.protocol.errors import BadRequest
from covey.protocol.events import PermissionRequest, QuestionBatchNotification, QuestionBatchRequest
from covey.protocol.messages import Session
from covey.protocol.requests import PostPrompt, QuestionResponse
from covey.tools.base import Choice, Question, Todo, ToolContext, ToolOutput
from covey.tools.todos import todos_tool
from tests.support.engine import Engine, Gate, call, config, running, within
from tests.support.tools import FakeTool
from tests.support.undoing import Undoing

pytestmark = pytest.mark.anyio


class Params(msgspec.Struct):
    text: str = ""


class Asks(FakeTool[Params]):
    """A tool that calls its host as the test says."""

    name = "asks"
    effect = Effect.TALKS
    params = Params

    def intent(self, params: Params, context: ToolContext) -> Intent:
        return Intent("asks", "ask", params.text, harmless=True)

    async def run(self, params: Params, context: ToolContext) -> ToolOutput:
        questions = [
            Question("Which?", "multi_choice", choices=(Choice("red"), Choice("blue"))),
            Question("Sure?", "yes_no"),
        ]
        answers = await context.host.ask(context, questions)
        return ToolOutput("nobody" if answers is None else " | ".join(answers))


class Plans(Asks):
    name = "plans"

    async def run(self, params: Params, context: ToolContext) -> ToolOutput:
        context.host.set_todos(context.session_id, [Todo(params.text, "in_progress")])
        return ToolOutput("noted")


class Delegates(Asks):
    name = "delegates"
    independent = True

    async def run(self, params: Params, context: ToolContext) -> ToolOutput:
        return ToolOutput(await context.host.delegate(context, params.text))


class Together(Asks):
    """Waits until so many of its kind are under way."""

    name = "together"
    independent = True

    def __init__(self, count: int) -> None:
        self.barrier = asyncio.Barrier(count)
        self.stopped = 0

    async def run(self, params: Params, context: ToolContext) -> ToolOutput:
        try:
            await self.barrier.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return ToolOutput(f"result of {params.text}")


def use(engine: Engine, *tools: FakeTool[Any]) -> None:
    engine.workspace._parts.agent.tools.update({tool.name: tool.value for tool in tools})


def results(engine: Engine) -> list[str]:
    return [result.content for message in engine.messages() for result in message.tool_results]


def answers(*responses: QuestionResponse) -> Sequence[QuestionResponse]:
    return responses


RED = QuestionResponse(request_id="1", selected_ids=("1",), notes="dark")
YES = QuestionResponse(request_id="2", yes=True)


# ── questions ──


async def test_questions_are_told_answered_once_and_closed(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Asks())
        engine.model.answer(*call("asks"))
        await engine.post("a", "a")
        await engine.until(lambda: engine.of_type(QuestionBatchRequest))
        (batch,) = engine.of_type(QuestionBatchRequest)
        desk = engine.workspace.asks._questions
        assert desk.pending == [batch]
        assert (batch.run_id, batch.tool_call_id) == ("a", "c1")
        assert desk.answer(batch.id, answers(RED, YES)) is True
        assert desk.answer(batch.id, answers(RED, YES)) is False
        await engine.ended("a")
        assert results(engine) == ["red (dark) | yes"]
        (notice,) = engine.of_type(QuestionBatchNotification)
        assert (notice.batch_id, notice.answered) == (batch.id, True)
        assert desk.pending == []
        assert desk.answer("nobody knows it", answers()) is False


@pytest.mark.parametrize(
    ("responses", "message"),
    [
        ((RED,), "'Sure?' is missing"),
        ((RED, YES, QuestionResponse(request_id="3")), "no question '3'"),
        ((QuestionResponse(request_id="1", selected_ids=("7",)), YES), "no choice '7'"),
        ((QuestionResponse(request_id="1"), YES), "'Which?' is empty"),
    ],
)
async def test_an_answer_that_makes_no_sense_leaves_the_questions_open(
    tmp_path: Path, responses: Sequence[QuestionResponse], message: str
) -> None:
    async with running(tmp_path) as engine:
        use(engine, Asks())
        engine.model.answer(*call("asks"))
        await engine.post("a", "a")
        await engine.until(lambda: engine.of_type(QuestionBatchRequest))
        (batch,) = engine.workspace.asks.questions()
        with pytest.raises(BadRequest, match=re.escape(message)):
            engine.workspace.asks.answer(batch.id, responses)
        assert engine.workspace.asks.answer(batch.id, answers(RED, YES))
        await engine.ended("a")


async def test_nobody_wants_to_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Asks())
        engine.model.answer(*call("asks"))
        await engine.post("a", "a")
        await engine.until(lambda: engine.of_type(QuestionBatchRequest))
        assert engine.workspace.asks.refuse(engine.workspace.asks.questions()[0].id)
        await engine.ended("a")
        assert results(engine) == ["nobody"]


async def test_a_cancel_closes_the_questions_everywhere(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Asks())
        engine.model.answer(*call("asks"))
        await engine.post("a", "a")
        await engine.until(lambda: engine.of_type(QuestionBatchRequest))
        await engine.cancel()
        assert (await engine.ended("a")).state == "cancelled"
        assert engine.workspace.asks.questions() == []
        (notice,) = engine.of_type(QuestionBatchNotification)
        assert notice.answered is False


# ── todos ──


async def test_todos_belong_to_the_session(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Plans())
        engine.model.answer(*call("plans", text="saw"))
        await engine.post("a", "a")
        await engine.ended("a")
        todos = engine.workspace.sessions.get(engine.session_id).todos
        assert todos == ({"content": "saw", "status": "in_progress", "active_form": ""},)
        assert any(session.todos for session in engine.of_type(Session))


async def test_an_undo_takes_the_todos_back_with_their_turn(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.workspace._parts.agent.tools["todos"] = todos_tool()
        listed = [{"content": "saw", "status": status} for status in ("pending", "completed")]
        for run_id, todo in zip("ab", listed, strict=True):
            engine.model.answer(*call("todos", todos=[todo]))
            await engine.post(run_id, run_id)
            await engine.ended(run_id)
        seen, undoing = [], Undoing(engine, tmp_path)
        for _ in listed:
            await undoing.undo()
            seen.append(engine.workspace.sessions.get(engine.session_id).todos)
        assert seen == [({"content": "saw", "status": "pending", "active_form": ""},), None]


# ── tools at the same time ──


async def test_neighbours_that_do_not_mind_run_at_the_same_time(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Together(3))
        words = [word for number in range(3) for word in call("together", f"c{number}", number, text=str(number))]
        engine.model.answer(*words, *call("work", "c3", 3))
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"
        assert sorted(results(engine)) == ["result of 0", "result of 1", "result of 2", "worked"]
        seen = engine.model.requests[-1].messages[-1]
        assert [result.tool_call_id for result in seen.tool_results] == ["c0", "c1", "c2", "c3"]


async def test_a_cancel_stops_all_that_run_at_the_same_time(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        tool = Together(3)
        use(engine, tool)
        engine.model.answer(*call("together", "c0", 0), *call("together", "c1", 1))
        await engine.post("a", "a")
        while tool.barrier.n_waiting < 2:
            await asyncio.sleep(0)
        await engine.cancel()
        assert (await engine.ended("a")).state == "cancelled"
        assert tool.stopped == 2
        assert len(results(engine)) == 2, "each call has a result that says why"


# ── agents ──


async def test_an_agent_works_in_a_session_of_its_own_and_reports(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Delegates())
        engine.model.answer(*call("delegates", text="where is it?"))
        engine.model.answer("In a.py.", UsageReported(10, 5))
        engine.model.answer("It is in a.py.")
        await engine.post("find it", "a")
        assert (await engine.ended("a")).text == "It is in a.py."
        assert results(engine) == ["In a.py."]
        (child,) = (s for s in engine.sessions() if s.parent_session_id)
        assert (child.parent_session_id, child.title) == (engine.session_id, "where is it?")
        asked = engine.model.requests[1]
        assert [message.text for message in asked.messages] == ["where is it?"]
        assert "delegates" not in [tool.name for tool in asked.tools]
        assert asked.system != engine.model.requests[0].system


async def test_several_agents_work_at_the_same_time(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Delegates())
        gates = [Gate(), Gate()]
        words = [word for number in range(2) for word in call("delegates", f"c{number}", number, text=f"q{number}")]
        engine.model.answer(*words)
        for gate in gates:
            engine.model.answer(gate, "found")
        await engine.post("find both", "a")
        for gate in gates:
            await gate.reached()
        for gate in gates:
            gate.open()
        assert (await engine.ended("a")).state == "completed"
        assert results(engine) == ["found", "found"]


async def test_cancelling_a_run_cancels_its_agents_first(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Delegates())
        gate = Gate()
        engine.model.answer(*call("delegates", text="where?"))
        engine.model.answer("I look", gate)
        await engine.post("find it", "a")
        await gate.reached()
        await engine.cancel()
        assert (await engine.ended("a")).state == "cancelled"
        ends = engine.terminals()
        assert len(ends) == 2 and all(end.cancelled for end in ends.values())
        assert list(ends)[-1] == "a"


async def test_an_agent_that_fails_is_a_result_and_no_end(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Delegates())
        engine.model.answer(*call("delegates", text="where?"))
        engine.model.answer(RuntimeError("oh"))
        await engine.post("find it", "a")
        assert (await engine.ended("a")).state == "completed"
        assert "gave no answer" in results(engine)[0]


async def test_what_an_agent_costs_counts_for_whoever_sent_it(tmp_path: Path) -> None:
    priced = ProviderSettings(type="scripted", models=(ModelSettings(id="m", price_prompt=1.0),))
    settings = msgspec.structs.replace(config(), providers={"test": priced})
    async with running(tmp_path, settings=settings) as engine:
        use(engine, Delegates())
        engine.model.answer(*call("delegates", text="where?"), UsageReported(1_000_000, 0))
        engine.model.answer("there", UsageReported(2_000_000, 0))
        engine.model.answer("done", UsageReported(3_000_000, 0))
        await engine.post("find it", "a")
        await engine.ended("a")
        assert engine.workspace.sessions.get(engine.session_id).cost == 6.0
        usage = engine.terminals()["a"].usage
        assert usage is not None and usage.cost == 6.0


async def test_an_agent_asks_in_the_name_of_whoever_sent_it(tmp_path: Path) -> None:
    """People watch the session that they prompt: a request in another one would wait for ever."""

    class Look(Asks):
        name = "view"
        effect = Effect.LOOKS

        def intent(self, params: Params, context: ToolContext) -> Intent:
            return Intent("view", "read", "/etc/passwd")

        async def run(self, params: Params, context: ToolContext) -> ToolOutput:
            return ToolOutput("seen")

    async with running(tmp_path) as engine:
        use(engine, Delegates(), Look())
        engine.model.answer(*call("delegates", text="look"))
        engine.model.answer(*call("view"))
        engine.model.answer("seen it")
        await engine.post("find it", "a")
        await engine.until(lambda: engine.of_type(PermissionRequest))
        (request,) = engine.workspace.asks.permissions()
        assert (request.session_id, request.run_id) == (engine.session_id, "a")
        await engine.grant(request.id, "allow")
        assert (await engine.ended("a")).state == "completed"


async def test_deleting_a_session_deletes_those_of_its_agents(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        use(engine, Delegates())
        engine.model.answer(*call("delegates", text="where?"))
        await engine.post("find it", "a")
        await engine.ended("a")
        assert len(engine.sessions()) == 2
        await within(engine.workspace.sessions.delete(engine.session_id))
        assert engine.sessions() == []


# ── plan and yolo ──


async def test_a_run_that_only_plans_has_only_tools_that_look(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer(*call("work"))
        request = PostPrompt(session_id=engine.session_id, prompt="a", run_id="a", plan=True)
        await within(engine.workspace.runs.post(request))
        await engine.ended("a")
        assert engine.model.requests[0].tools == []
        assert "only looks" in results(engine)[0]
        assert engine.tool.calls == []


async def test_yolo_is_for_one_run(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.tool.harmless = False
        engine.model.answer(*call("work"))
        request = PostPrompt(session_id=engine.session_id, prompt="a", run_id="a", yolo=True)
        await within(engine.workspace.runs.post(request))
        await engine.ended("a")
        assert results(engine) == ["worked"]
        engine.model.answer(*call("work", "c2"))
        await engine.post("b", "b")
        await engine.until(lambda: engine.of_type(PermissionRequest))
        (pending,) = engine.workspace.asks.permissions()
        await engine.grant(pending.id, "deny", "use a saw")
        await engine.ended("b")
        assert "use a saw" in results(engine)[-1]
