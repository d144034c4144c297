"""Schedules of what a turn does at the same time: tools side by side, agents, questions, titles, summaries.

A cancel, a deletion or a crash meets each of them at every step. At the end the oracle judges the store, and beyond it:
nothing runs, nobody waits, no host remembers anything, and every session has a conversation that a model accepts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from functools import partial
from typing import Any
from unittest import mock

import msgspec
import pytest

from covey.config.schema import LimitSettings, ModelChoice, ModelSettings, ProviderSettings
from covey.engine import agent as engine_agent
from covey.engine.workspace import Workspace
from covey.lifecycle import history
from covey.lifecycle.reply import ModelFact, Stopped, TextDelta, ToolCallBegun, ToolInputDelta, UsageReported
from covey.models.base import ModelFailed, ModelRequest
from covey.protocol.effects import Effect
from covey.protocol.errors import Conflict, NotFound
from covey.protocol.messages import Message
from covey.protocol.requests import QuestionResponse, UndoTurns
from covey.tools.base import Question, ToolContext, ToolOutput
from tests.sim.loop import run_schedule, run_seed, run_to_crash
from tests.sim.shell import CONFIG, Nothing, Shell, SimModel, SimTool
from tests.support.oracle import Record

MOMENTS = 400
"""More steps than any of the turns takes."""
WAITING = 60
"""Steps after which a run that waits for a person has come to that."""
SEEDS = 2
"""Schedules for each moment: the ordinary one, and a random one."""
CRASH_MOMENT = 30
"""Where crashes are explored, somebody disturbs in the middle of the turn."""
WINDOW = 1_000
_MODELS = tuple(ModelSettings(id=name, context_window=WINDOW) for name in ("m", "spare", "small"))
SETTINGS = msgspec.structs.replace(
    CONFIG,
    providers={"sim": ProviderSettings(type="scripted", models=_MODELS)},
    models=ModelChoice(large="sim/m", fallback=("sim/spare",)),
    limits=LimitSettings(cancel_grace_s=1.0, summarize_at=0.8),
)


class Look(SimTool):
    """Only looks: an agent has it too, and several run side by side."""

    name = "view"
    effect = Effect.LOOKS


class Ask(SimTool):
    name = "ask"

    async def run(self, params: Nothing, context: ToolContext) -> ToolOutput:
        answers = await context.host.ask(context, [Question("Sure?", "yes_no")])
        return ToolOutput(str(answers))


class Send(SimTool):
    """Sends an agent; its calls may run side by side."""

    name = "send"
    independent = True

    async def run(self, params: Nothing, context: ToolContext) -> ToolOutput:
        return ToolOutput(await context.host.delegate(context, f"look for {context.call_id}"))


CALLS = {
    "pair": ("view", "view"),
    "mixed": ("view", "view", "work", "view"),
    "look": ("view",),
    "send": ("send",),
    "crowd": ("send", "view", "send"),
    "ask": ("ask",),
    "long": ("view",),
}
"""The first word of a prompt says which calls the first step makes."""


class Scripted(SimModel):
    """Answers by the first word of the prompt. Each fact comes at a step of its own."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelFact, None]:
        prompt = next(message for message in reversed(request.messages) if message.role == "user").text
        said = sum(message.role == "assistant" for message in request.messages)
        is_first = prompt.partition(" ")[0] in (*CALLS, "busy", "plain") and not said
        if is_first and request.model == "m":
            self.calls.append(prompt)
        self.open += 1
        try:
            for fact in self._facts(prompt, request.model, is_first=is_first):
                await asyncio.sleep(0)
                yield fact
        finally:
            self.open -= 1

    def _facts(self, prompt: str, model: str, *, is_first: bool) -> list[ModelFact]:
        if model == "small":
            raise RuntimeError("nobody foresaw this")
        word = prompt.partition(" ")[0]
        if word == "busy" and model == "m":
            raise ModelFailed("sim: busy", busy=True)
        facts: list[ModelFact] = [TextDelta("said")]
        for index, name in enumerate(CALLS.get(word, ()) if is_first else ()):
            facts += [ToolCallBegun(index, f"{prompt}-{index}", name), ToolInputDelta(index, "{}")]
        if word == "long" and is_first:
            facts.append(UsageReported(WINDOW, 1))
        return [*facts, Stopped("end_turn")]


class AgentShell(Shell):
    """A workspace with tools that wait for others, and a look at everything that could be left behind."""

    small = False
    """A small model gives titles, and fails in a way that nobody foresaw."""
    moment = 0
    """How many steps of the loop later the one comes who disturbs."""
    late = False
    """There was nothing left to disturb."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Scripted()

    def begin_next_life(self) -> None:
        super().begin_next_life()
        asked = self.model.calls
        self.model = Scripted()
        self.model.calls = asked

    def _client(self, provider_id: str, settings: ProviderSettings) -> SimModel:
        return self.model

    async def open(self) -> Workspace:
        with mock.patch.object(engine_agent, "open_client", self._client):
            workspace = await super().open()  # what it takes up may begin at once
        agent = workspace._parts.agent
        choice = msgspec.structs.replace(SETTINGS.models, small="sim/small" if self.small else "")
        agent.config = msgspec.structs.replace(SETTINGS, models=choice)
        self.tools = {tool.name: tool for tool in (self.tool, Look(), Ask(), Send())}
        agent.tools = {name: tool.value for name, tool in self.tools.items()}
        return workspace

    async def disturb(self, doing: Callable[[], Awaitable[Any]]) -> None:
        """Do it at the moment that is explored."""
        for _ in range(self.moment):
            await asyncio.sleep(0)
        is_waiting = self.moment >= WAITING and bool(self.workspace.asks.questions())
        self.late = is_waiting or (bool(self.accepted) and not self.workspace.is_busy)
        await doing()

    async def answer(self, pause_s: float = 0.0) -> None:
        """A person who answers as soon as there is something to answer, as long as the workspace is busy."""
        desk = self.workspace.asks._questions
        while self.workspace.is_busy:
            for batch in desk.pending:
                desk.answer(batch.id, [QuestionResponse(request_id="1", yes=True)])
            await asyncio.sleep(pause_s)

    def check(self) -> None:
        super().check()
        for tool in self.tools.values():
            assert tool.running == 0, f"{tool.name} still runs"
        workspace = self.workspace
        assert not workspace.asks.questions()
        for owner in (workspace._parts.turns.tool_calls._host, workspace.runs._waiters):
            kept = {name: value for name, value in vars(owner).items() if isinstance(value, dict) and value}
            assert not kept, f"{type(owner).__name__} remembers {kept}"
        for row in self.store.sessions("w"):
            stored = self.store.messages("w", row.session.id, "", 0)
            check_accepted(history.for_model(stored, row.session.summary_message_id))

    def record(self) -> Record:
        record = super().record()
        record.undone = {run_id for row in self.store.undos("w", pending=False) for run_id in row.run_ids}
        return record


def check_accepted(messages: list[Message]) -> None:
    """Each call has one result, right behind it."""
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert [result.tool_call_id for result in message.tool_results] == waiting, "results do not fit the calls"
        else:
            assert not waiting, f"{waiting} have no results"
        waiting = [call.id for call in message.tool_calls] if message.role == "assistant" else []
    assert not waiting, f"{waiting} have no results"


async def _all(*clients: Awaitable[Any]) -> None:
    for result in await asyncio.gather(*clients, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, Conflict | NotFound):
            raise result


async def _with_cancel(shell: AgentShell, prompt: str) -> None:
    """The prompt, and a cancel at some moment; the next prompt must run."""
    session = await shell.session()
    await _all(shell.post(session, prompt, run_id="host"), shell.disturb(lambda: shell.cancel(session)))
    await shell.post(session, "plain", run_id="next")
    await shell.settle()
    assert (await shell.workspace.runs.get("next")).state == "completed"


async def side_by_side(shell: AgentShell) -> None:
    """Two tools at the same time, and a cancel."""
    await shell.open()
    await _with_cancel(shell, "pair")


async def side_by_side_and_alone(shell: AgentShell) -> None:
    """Two tools at the same time, one that must be alone, another one; and a cancel of the run by its id."""
    await shell.open()
    session = await shell.session()
    await _all(shell.post(session, "mixed", run_id="host"), shell.disturb(lambda: shell.cancel_run("host")))
    await shell.settle()


async def agent(shell: AgentShell) -> None:
    """A run with an agent, and a cancel of the run."""
    await shell.open()
    await _with_cancel(shell, "send")


async def agents(shell: AgentShell) -> None:
    """A run with two agents and a tool at the same time, and a cancel of the run."""
    await shell.open()
    await _with_cancel(shell, "crowd")


async def agent_and_closing(shell: AgentShell) -> None:
    await shell.open()
    session = await shell.session()
    await _all(shell.post(session, "send", run_id="host"), shell.disturb(lambda: shell.workspace.close(5.0)))
    shell.check()


async def agent_and_deletion(shell: AgentShell) -> None:
    """The session of a run is deleted while its agent works; another session goes on."""
    await shell.open()
    session, other = await shell.session(), await shell.session()
    await _all(
        shell.post(session, "send", run_id="host"),
        shell.disturb(lambda: shell.workspace.sessions.delete(session)),
    )
    await shell.post(other, "plain", run_id="other")
    await shell.settle()
    left = [row.session.id for row in shell.store.sessions("w")]
    assert left == [other], "a session of an agent outlives the one it worked for"


async def agent_that_is_cancelled_itself(shell: AgentShell) -> None:
    """Not the run is cancelled, but what its agent does: the run goes on without its answer."""
    await shell.open()
    session = await shell.session()

    async def cancel_agents() -> None:
        for run in shell.workspace.runs.open_runs():
            if run.run_id != "host":
                await shell.cancel_run(run.run_id)

    await _all(shell.post(session, "crowd", run_id="host"), shell.disturb(cancel_agents))
    await shell.settle()
    assert (await shell.workspace.runs.get("host")).state == "completed"


async def question(shell: AgentShell) -> None:
    """A run that asks people, who answer; and a cancel."""
    await shell.open()
    session = await shell.session()

    async def prompt_and_answer() -> None:
        await shell.post(session, "ask", run_id="host")
        await shell.answer()

    await _all(prompt_and_answer(), shell.disturb(lambda: shell.cancel(session)))
    await shell.settle()


async def question_that_nobody_answers(shell: AgentShell) -> None:
    await shell.open()
    session = await shell.session()
    await _all(shell.post(session, "ask", run_id="host"), shell.disturb(lambda: shell.cancel(session)))
    await shell.cancel(session)  # the first one may have been there before the prompt
    await shell.settle()


async def summary_in_a_turn(shell: AgentShell) -> None:
    await shell.open()
    await _with_cancel(shell, "long")


async def summary_alone(shell: AgentShell) -> None:
    """A run that only summarises, and a cancel."""
    await shell.open()
    session = await shell.session()
    await shell.post(session, "plain", run_id="first")
    assert (await shell.workspace.runs.get("first", wait_s=60)).state == "completed"
    shell.accepted.append(await shell.workspace.runs.summarize(session))
    await shell.disturb(lambda: shell.cancel(session))
    await shell.settle()
    summary_id = shell.store.sessions("w")[0].session.summary_message_id
    for message in shell.store.messages("w", session, "", 0):
        if message.id == summary_id:
            assert message.finish and message.finish.reason == "end_turn", "a summary that counts is a whole one"


async def undo(shell: AgentShell) -> None:
    """A turn is taken back while the next prompt comes: one of the two has to wait."""
    await shell.open()
    session = await shell.session()
    await shell.post(session, "plain", run_id="first")
    assert (await shell.workspace.runs.get("first", wait_s=60)).state == "completed"
    await _all(
        shell.post(session, "pair", run_id="host"),
        shell.disturb(lambda: shell.workspace.sessions.undo(session, UndoTurns())),
    )
    await shell.settle()


async def fallback(shell: AgentShell) -> None:
    await shell.open()
    await _with_cancel(shell, "busy")


async def title_that_fails(shell: AgentShell) -> None:
    shell.small = True
    await shell.open()
    await _with_cancel(shell, "pair")


SCENARIOS: dict[str, Callable[[AgentShell], Coroutine[Any, Any, None]]] = {
    scenario.__name__: scenario
    for scenario in (
        side_by_side,
        side_by_side_and_alone,
        agent,
        agents,
        agent_and_closing,
        agent_and_deletion,
        agent_that_is_cancelled_itself,
        question,
        question_that_nobody_answers,
        summary_in_a_turn,
        summary_alone,
        undo,
        fallback,
        title_that_fails,
    )
}


def _shell(moment: int) -> AgentShell:
    shell = AgentShell()
    shell.moment = moment
    return shell


async def _next_life(shell: AgentShell) -> None:
    shell.begin_next_life()
    await shell.open()
    await asyncio.gather(shell.answer(pause_s=0.1), shell.settle())


@pytest.mark.parametrize("name", SCENARIOS)
def test_whoever_disturbs_at_any_moment_every_promise_is_kept(name: str) -> None:
    for moment in range(MOMENTS):
        for seed in range(SEEDS):
            shell = _shell(moment)
            scenario = partial(SCENARIOS[name], shell)
            found = run_seed(scenario, seed) if seed else run_schedule(scenario, ())
            assert found.failure is None, f"moment {moment}, seed {seed}: {found.failure!r}"
            if not seed and shell.late:
                return
    raise AssertionError("the turn is longer than what is explored")


@pytest.mark.parametrize("name", ["agent", "agent_and_deletion", "question", "summary_in_a_turn"])
def test_a_crash_after_any_step_is_healed_by_the_next_start(name: str) -> None:
    step = 0
    while True:
        step += 1
        shell = _shell(CRASH_MOMENT)
        if not run_to_crash(partial(SCENARIOS[name], shell), (), step):
            break
        found = run_schedule(partial(_next_life, shell), ())
        assert found.failure is None, f"killed after step {step}: {found.failure!r}"
    assert step > 10, "nothing was explored"
