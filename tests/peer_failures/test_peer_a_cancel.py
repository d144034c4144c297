"""A: cancels. Each test is named after a failure of another system; docs/RELIABILITY.md tells of the rest."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from covey.engine.recorder import Batch
from covey.models.base import ModelFailed
from covey.protocol.events import AgentEvent, PermissionNotification
from covey.tools.agent import agent_tool
from tests.peer_failures.conftest import SILENCE, NewRunId, ask
from tests.peer_failures.lanes import asking, busy, covered, in_a_tool, post_to, states
from tests.peer_failures.schedules import at_every_step, in_order, later, opened, state_of
from tests.sim.shell import Shell
from tests.support.engine import Engine, Gate, Stubborn, call, config, running, within
from tests.support.fake_model import FakeModel
from tests.support.server import Workspace, finish_of, text_of
from tests.support.stream import transcript

quickly = config(grace_s=0.01)
"""What does not stop is abandoned at once."""


def test_a1_a_cancel_before_the_run_has_a_task() -> None:
    async def scenario(shell: Shell) -> None:
        session = await opened(shell)
        await shell.post(session, "hello", run_id="a")
        await shell.cancel(session)
        await shell.settle()
        assert await state_of(shell, "a") == "cancelled"
        assert shell.model.calls == []

    in_order(scenario)


def test_a2_a_cancel_while_the_provider_is_being_reached(
    workspace: Workspace, model: FakeModel, new_run_id: NewRunId
) -> None:
    session, run_id = workspace.session(), new_run_id()
    prompt = ask(run_id, {"gates": {"-1": "never"}})
    workspace.prompt(session, prompt, run_id=run_id)
    model.wait_for(lambda: any(request.prompt == prompt for request in model.requests))
    workspace.cancel(session)
    run = workspace.ended(run_id)
    assert run["state"] == "cancelled"
    assert run["ended_at"] - run["started_at"] < 20, "it waited until the silence was too long"


@pytest.mark.anyio
async def test_a3_a_cancel_of_an_idle_session_does_not_poison_the_next_prompt(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.post("a", "a")
        await engine.ended("a")
        for _ in range(2):
            assert covered(await engine.cancel()) == {}
        await engine.post("b", "b")
        assert (await engine.ended("b")).state == "completed"


def test_a4_a_late_cancel_of_a_run_never_reaches_the_next_one() -> None:
    async def scenario(shell: Shell, step: int) -> None:
        session = await opened(shell)
        await shell.post(session, "first", run_id="a")
        cancelling = asyncio.create_task(later(step, shell.cancel_run("a")))
        await shell.workspace.runs.get("a", wait_s=60)
        await shell.post(session, "second", run_id="b")
        await cancelling
        await shell.settle()
        assert await state_of(shell, "b") == "completed"

    at_every_step(scenario)


@pytest.mark.anyio
async def test_a5_two_cancels_are_both_answered_while_the_turn_ignores_them(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Stubborn()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        receipts = [await engine.cancel(), await within(engine.workspace.runs.cancel("a"))]
        assert [covered(receipt) for receipt in receipts] == [{"a": "active"}] * 2
        assert not engine.terminals()
        gate.open()
        assert (await engine.ended("a")).state == "cancelled"


@pytest.mark.anyio
async def test_a6_a_silent_stream_does_not_delay_a_cancel(tmp_path: Path) -> None:
    async with busy(tmp_path) as (engine, _):
        await engine.cancel()
        assert (await engine.ended("a")).state == "cancelled"
        assert engine.model.open_streams == 0


def test_a7_a_cancel_that_was_acknowledged_is_kept_or_said_to_be_too_late() -> None:
    ends = set()

    async def scenario(shell: Shell, step: int) -> None:
        session = await opened(shell)
        await shell.post(session, "tool", run_id="a")
        await later(step, shell.cancel(session))
        await shell.settle()
        state = await state_of(shell, "a")
        assert state == ("cancelled" if "a" in shell.cancelled else "completed")
        ends.add(state)

    at_every_step(scenario)
    assert ends == {"cancelled", "completed"}


class Sulking(Gate):
    """A provider's library that turns a cancel into an error of its own."""

    async def pass_through(self) -> None:
        with pytest.raises(asyncio.CancelledError):
            await super().pass_through()
        raise ModelFailed("the request was aborted", auth=True)


@pytest.mark.anyio
async def test_a8_a_provider_that_raises_because_of_the_cancel_has_not_failed(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Sulking()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        await engine.cancel()
        run = await engine.ended("a")
        assert (run.state, run.error) == ("cancelled", None)
        assert engine.of_type(AgentEvent) == []


async def abandoned(engine: Engine, gate: Gate, *afterwards: str | Exception) -> None:
    """Cancel the run "a", which does not stop at its gate and is abandoned there."""
    engine.model.answer("half ", gate, *afterwards)
    await engine.post("a", "a")
    await gate.reached()
    await engine.cancel()
    await engine.ended("a")


async def let_go(engine: Engine, gate: Gate) -> None:
    """Let the abandoned turn go on, to its very end."""
    before = engine.model.open_streams
    gate.open()
    while engine.model.open_streams == before:
        await asyncio.sleep(0)
    await within(engine.workspace._parts.recorder.write(Batch()))


@pytest.mark.anyio
@pytest.mark.parametrize("late", ["a late answer", ModelFailed("a late error")], ids=["answer", "error"])
async def test_a9_what_comes_after_the_terminal_event_changes_nothing(tmp_path: Path, late: str | Exception) -> None:
    async with running(tmp_path, settings=quickly) as engine:
        gate = Stubborn()
        await abandoned(engine, gate, late)
        told, stored = len(engine.events), engine.transcript()
        await let_go(engine, gate)
        assert (len(engine.events), engine.transcript()) == (told, stored)


@pytest.mark.anyio
async def test_a10_the_clean_up_of_an_old_run_leaves_the_new_one_alone(tmp_path: Path) -> None:
    async with running(tmp_path, settings=quickly) as engine:
        old, new = Stubborn(), Gate()
        await abandoned(engine, old)
        engine.model.answer("new ", new, "answer")
        await engine.post("b", "b")
        await new.reached()
        before = await engine.workspace.runs.get("b")
        await let_go(engine, old)
        assert await engine.workspace.runs.get("b") == before
        new.open()
        assert (await engine.ended("b")).text == "new answer"


@pytest.mark.anyio
async def test_a11_a_cancel_stays_in_its_session(tmp_path: Path) -> None:
    async with busy(tmp_path) as (engine, _):
        other, gate = (await engine.workspace.sessions.create("")).id, Gate()
        engine.model.answer(gate, "done")
        await post_to(engine, other, "b")
        await gate.reached()
        assert covered(await engine.cancel()) == {"a": "active"}
        await engine.ended("a")
        gate.open()
        assert (await engine.ended("b")).state == "completed"


def test_a12_all_streams_stay_open_and_see_the_same_end(
    workspace: Workspace, colleague: Workspace, new_run_id: NewRunId
) -> None:
    session, run_id = workspace.session(), new_run_id()
    mine, theirs = workspace.stream(session_id=session), colleague.stream(session_id=session)
    workspace.prompt(session, ask("hello", SILENCE), run_id=run_id)
    theirs.wait_delta()
    workspace.cancel(session)
    assert mine.terminal(run_id) == theirs.terminal(run_id)
    workspace.prompt(session, "and on", run_id=(following := new_run_id()))
    assert mine.terminal(following) == theirs.terminal(following)
    assert mine.durable == theirs.durable
    assert not mine.errors


@pytest.mark.anyio
async def test_a13_a_queued_run_that_is_cancelled_never_starts_and_the_others_keep_their_order(tmp_path: Path) -> None:
    async with busy(tmp_path, "b", "c", "d") as (engine, gate):
        assert covered(await engine.workspace.runs.cancel("c")) == {"c": "queued"}
        assert engine.terminals()["c"].cancelled
        gate.open()
        assert await states(engine, "abd") == ["completed"] * 3
        assert [prompts[-1] for prompts in engine.model.prompts] == ["a", "b", "d"]


def test_a14_a_cancel_that_meets_the_start_finds_the_run_dropped_or_running_never_both() -> None:
    found = set()

    async def scenario(shell: Shell, step: int) -> None:
        session = await opened(shell)
        await shell.post(session, "first", run_id="a")
        await shell.post(session, "second", run_id="b")
        await later(step, shell.cancel_run("b"))
        await shell.settle()
        roles = [m.role for m in shell.store.messages("w", session, "", 0) if m.run_id == "b"]
        state = shell.cancelled.get("b", "too late")
        found.add(state)
        assert roles == ([] if state == "queued" else ["user", "assistant"])
        assert "second" not in shell.model.calls or state != "queued"

    at_every_step(scenario)
    assert found == {"queued", "active", "too late"}


@pytest.mark.anyio
async def test_a15_a_tool_that_ignores_the_cancel_is_abandoned_and_that_is_said(tmp_path: Path) -> None:
    async with running(tmp_path, settings=quickly) as engine:
        gate = Stubborn()
        await in_a_tool(engine, gate)
        await engine.cancel()
        await engine.ended("a")
        (result,) = [result for message in engine.messages() for result in message.tool_results]
        assert (result.tool_call_id, result.is_error) == ("c1", True)
        assert "cancelled before it finished. It may have had effects" in result.content
        await engine.post("b", "b")
        assert (await engine.ended("b")).state == "completed"
        gate.open()


@pytest.mark.anyio
async def test_a16_a_cancel_closes_an_open_request_for_everybody(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        request = await asking(engine, "a")
        await engine.cancel()
        await engine.ended("a")
        assert [notice.denied for notice in engine.of_type(PermissionNotification) if notice.is_answer] == [True]
        assert engine.workspace.asks._permissions.answer(request.id, "allow") is False
        assert engine.tool.calls == []
        assert len(engine.model.requests) == 1, "the model was asked again about a run that was cancelled"


@pytest.mark.anyio
async def test_a18_a_session_goes_on_after_a_cancel_in_a_tool_call(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await in_a_tool(engine, Gate())
        await engine.cancel()
        await engine.post("b", "b")
        assert await states(engine, "ab") == ["cancelled", "completed"]
        shown = engine.model.requests[-1].messages
        assert [message.role for message in shown] == ["user", "assistant", "tool", "assistant", "user"]
        assert [call.id for call in shown[1].tool_calls] == [result.tool_call_id for result in shown[2].tool_results]


def test_a19_text_that_was_streamed_before_the_cancel_is_kept_as_the_clients_saw_it(
    workspace: Workspace, new_run_id: NewRunId
) -> None:
    session, run_id = workspace.session(), new_run_id()
    stream = workspace.stream(session_id=session)
    workspace.prompt(session, ask("hello", {"text": "wörd 🐦 ", "chunks": 7, "ending": "silence"}), run_id=run_id)
    text = "wörd 🐦 " * 7
    stream.wait_for(lambda seen: text in [text_of(message) for message in transcript(seen).values()])
    seen = transcript(stream.events)
    workspace.cancel(session)
    assert stream.terminal(run_id)["cancelled"] is True
    stored = workspace.messages(session)[-1]
    assert stored["parts"][:-1] == seen[stored["id"]]["parts"]
    assert finish_of(stored) == "canceled"


@pytest.mark.anyio
async def test_a20_a_message_after_a_cancel_is_a_new_prompt_and_no_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await asking(engine, "do it")
        await engine.cancel()
        receipt = await engine.post("yes, allow it")
        run = await engine.ended(receipt.run_id)
        assert (run.state, run.folded_into) == ("completed", None)
        assert engine.tool.calls == []
        assert engine.transcript()[-2:] == [("user", "yes, allow it", ""), ("assistant", "done", "end_turn")]


@pytest.mark.anyio
async def test_a22_a_cancel_that_was_answered_counts_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Stubborn()
        await in_a_tool(engine, gate)
        await engine.cancel()
        copy = engine.disk.copy()
        gate.open()
    async with running(tmp_path, store=copy) as again:
        run = await again.ended("a")
        assert (run.state, run.cancelled_by) == ("cancelled", "session_cancel")
        assert (again.model.requests, again.tool.calls) == ([], [])


@pytest.mark.anyio
async def test_a23_stopping_an_agent_stops_only_that(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.workspace._parts.agent.tools["agent"] = agent_tool()
        engine.model.answer(*call("agent", prompt="where is it?"))
        engine.model.answer("I look", gate)
        engine.model.answer("I could not find out.")
        await engine.post("find it", "a")
        await gate.reached()
        (child,) = (run for run in engine.workspace.runs.open_runs() if run.run_id != "a")
        await within(engine.workspace.runs.cancel(child.run_id))
        run = await engine.ended("a")
        assert (run.state, run.text) == ("completed", "I could not find out.")
        assert engine.terminals()[child.run_id].cancelled
        (result,) = (result for message in engine.messages() for result in message.tool_results)
        assert "it was cancelled" in result.content
