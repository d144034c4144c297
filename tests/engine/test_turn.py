"""One turn, and everything that can go wrong in it: the run ends once, its record is whole, and the lane goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from covey.config.schema import ConfigError
from covey.engine.lanes.dispatcher import Dispatcher
from covey.engine.recorder import Batch
from covey.engine.turns import answer_writer
from covey.engine.turns import turn as turn_module
from covey.engine.turns.last_words import LastWords
from covey.engine.turns.speaker import Speaker
from covey.lifecycle import history
from covey.lifecycle.reply import ReasoningDelta, Stopped, ToolInputDelta, UsageReported
from covey.models.base import ModelFailed, Retry
from covey.protocol.events import AgentEvent
from covey.protocol.messages import Message, ToolCallPart
from covey.protocol.runs import RunComplete
from covey.store.base import StoreFailed
from covey.tools.base import ToolOutput
from tests.support.engine import Engine, Gate, call, running, within

pytestmark = pytest.mark.anyio


async def fails(engine: Engine) -> str:
    """Run "a", which must fail, then "b", which must not: gives the error."""
    await engine.post("a", "a")
    await engine.post("b", "b")
    failed = await engine.ended("a")
    assert failed.state == "failed"
    assert failed.error
    assert engine.terminals()["a"].error == failed.error
    notices = [notice for notice in engine.of_type(AgentEvent) if notice.run_id == "a"]
    assert [(notice.type, notice.error) for notice in notices] in (
        [("error", failed.error)],
        [("re_authenticate", failed.error)],
    )
    assert (await engine.ended("b")).state == "completed"
    return failed.error


# ── failures ──

BROKEN_MODELS: dict[str, tuple[BaseException, str]] = {
    "model failed": (ModelFailed("test: the server is overloaded"), "test: the server is overloaded"),
    "key refused": (ModelFailed("test: wrong key", auth=True), "test: wrong key"),
    "configuration": (ConfigError("models.large is wrong"), "models.large is wrong"),
    "bug": (KeyError("choices"), "internal error: KeyError: 'choices'"),
    "cancelled from inside": (asyncio.CancelledError(), "the turn was stopped from inside"),
    "group": (BaseExceptionGroup("several", [ValueError("one")]), "internal error"),
    "stop": (StopAsyncIteration(), "internal error: RuntimeError"),
}


@pytest.mark.parametrize("name", BROKEN_MODELS)
@pytest.mark.parametrize("when", ["at once", "in the middle", "after a tool"])
async def test_a_model_that_fails(tmp_path: Path, name: str, when: str) -> None:
    error, expected = BROKEN_MODELS[name]
    async with running(tmp_path) as engine:
        if when == "after a tool":
            engine.model.answer("look ", *call())
        engine.model.answer(*(["half "] if when == "in the middle" else []), error)
        assert expected in await fails(engine)
        answers = [entry for entry in engine.transcript() if entry[0] == "assistant"]
        assert answers[-2][1:] == ("half " if when == "in the middle" else "", "error")


async def test_a_refused_key_is_told_as_such(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer(ModelFailed("test: wrong key", auth=True))
        await fails(engine)
        assert [notice.type for notice in engine.of_type(AgentEvent)] == ["re_authenticate", "agent_finished"]


async def test_facts_that_make_no_sense_fail_the_run_and_nothing_else(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer("half ", ToolInputDelta(7, "{}"))
        assert "internal error" in await fails(engine)


BREAKAGES: dict[str, Callable[[Engine], tuple[object, str]]] = {
    "system prompt": lambda engine: (engine.workspace.agent, "system_prompt"),
    "model": lambda engine: (engine.workspace.agent, "model"),
    "step": lambda engine: (Dispatcher, "fold_into"),
    "answer": lambda engine: (Speaker, "open_answer"),
    "history": lambda engine: (history, "for_model"),
    "tool calls": lambda engine: (engine.workspace.tool_calls, "run"),
}


@pytest.mark.parametrize("what", BREAKAGES)
async def test_a_bug_of_ours_fails_the_run_and_the_next_one_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    async with running(tmp_path) as engine:
        target, name = BREAKAGES[what](engine)
        works = getattr(target, name)
        broken = iter([True])

        def breaks_once(*args: object, **options: object) -> object:
            if next(broken, False):
                raise RuntimeError("a bug of ours")
            return works(*args, **options)

        monkeypatch.setattr(target, name, breaks_once)
        if what == "tool calls":
            engine.model.answer(*call())
        assert await fails(engine) == "internal error: RuntimeError: a bug of ours"


async def test_a_history_that_cannot_be_read_fails_the_run(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        works = engine.workspace._parts.read_messages
        broken = iter([True])

        async def read_messages(session_id: str, since: str) -> list[Message]:
            if next(broken, False):
                raise StoreFailed("cannot read", passing=True)
            return await works(session_id, since)

        object.__setattr__(engine.workspace._parts, "read_messages", read_messages)
        assert "cannot read" in await fails(engine)


async def test_a_start_that_can_never_be_written_still_ends_the_run(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        recorder = engine.workspace._recorder
        works = recorder.write
        begun = iter([True])

        def write(batch: Batch, **options: Any) -> object:
            if engine.workspace.turn_of("a") is None or not next(begun, False):
                return works(batch, **options)
            loop = asyncio.get_running_loop()
            loop.call_soon(options["then"], StoreFailed("too big", passing=False))
            return loop.create_future()

        recorder.write = write  # type: ignore[method-assign, assignment]
        assert "too big" in await fails(engine)
        assert engine.transcript()[:2] == [("user", "a", ""), ("assistant", "", "error")]


async def test_a_bug_in_the_last_words_does_not_strand_the_lane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as engine:
        works = turn_module.Turn.last_words
        broken = iter([True])

        def ending(self: turn_module.Turn, known: LastWords) -> LastWords:
            if next(broken, False):
                raise RuntimeError("a bug of ours")
            return works(self, known)

        monkeypatch.setattr(turn_module.Turn, "last_words", ending)
        await engine.post("a", "a")
        await engine.post("b", "b")
        async with asyncio.timeout(10):
            await engine.until(lambda: engine.of_type(RunComplete))


async def test_r8_an_end_that_the_store_refuses_is_told_as_soon_as_it_takes_a_shorter_one(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await engine.post("b", "b")
        await gate.reached()
        await engine.told_state("b", "queued")
        engine.disk.poison = engine.session_id
        gate.open()
        while engine.workspace.turn_of("b") is None:
            await asyncio.sleep(0)
        await within(engine.workspace._recorder.write(Batch()))
        engine.disk.poison = ""
        ends = {run_id: await engine.ended(run_id) for run_id in "ab"}
        assert [end.state for end in ends.values()] == ["failed", "completed"]
        assert "could not be written: too big" in (ends["a"].error or "")
        assert list(engine.terminals()) == ["a", "b"]
        assert engine.transcript() == [
            ("user", "a", ""),
            ("assistant", "", "error"),
            ("user", "b", ""),
            ("assistant", "done", "end_turn"),
        ]


async def test_r9_a_run_waits_for_the_end_of_the_one_before_it_also_where_that_was_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        engine.disk.poison = engine.session_id
        gate.open()
        while engine.workspace.is_busy:
            await asyncio.sleep(0)
        await within(engine.workspace._recorder.write(Batch()))
        engine.disk.poison = ""
        await engine.post("b", "b")
        assert (await engine.ended("b")).state == "completed"
        assert list(engine.terminals()) == ["a", "b"]


async def test_r8_whatever_a_refused_change_ended_still_ends(tmp_path: Path) -> None:
    """A cancel that covers the active run, one folded into it and a queued one, and whose change cannot be written."""
    async with running(tmp_path) as engine:
        at_work, at_word = Gate(), Gate()
        engine.model.answer(*call())
        engine.model.answer(at_word)

        async def act() -> ToolOutput:
            await at_work.pass_through()
            return ToolOutput("worked")

        engine.tool.act = act
        await engine.post("a", "a")
        await at_work.reached()
        folded = (await engine.post("f")).run_id
        at_work.open()
        await at_word.reached()
        await engine.post("q", "q")
        await engine.told_state("q", "queued")
        engine.disk.poison = engine.session_id
        cancel = asyncio.ensure_future(engine.cancel())
        while engine.workspace.is_busy:
            await asyncio.sleep(0)
        await within(engine.workspace._recorder.write(Batch()))
        engine.disk.poison = ""
        assert [found.run_id for found in (await cancel).covered] == ["a", folded, "q"]
        ends = {run_id: await engine.ended(run_id) for run_id in ("a", folded, "q")}
        assert [end.state for end in ends.values()] == ["cancelled", "folded", "cancelled"]
        terminals = engine.terminals()
        assert [terminals[run_id].cancelled for run_id in ends] == [True, True, True]
        assert terminals[folded].folded_into == "a"
        assert not [notice for notice in engine.of_type(AgentEvent) if notice.error]


async def test_scenario_18_a_failed_turn_hands_over(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate, ModelFailed("out of order"))
        for run_id in "abc":
            await engine.post(run_id, run_id)
        await gate.reached()
        await engine.told_state("c", "queued")
        gate.open()
        assert [(await engine.ended(run_id)).state for run_id in "abc"] == ["failed", "completed", "completed"]
        assert list(engine.terminals()) == ["a", "b", "c"]


async def test_a_cancel_wins_over_a_failure_that_comes_with_it(tmp_path: Path) -> None:
    """A provider library that raises because it was cancelled has not failed (R5)."""
    async with running(tmp_path) as engine:

        class Raises(Gate):
            async def pass_through(self) -> None:
                try:
                    await super().pass_through()
                except asyncio.CancelledError:
                    raise ConnectionResetError("the connection was closed") from None

        gate = Raises()
        engine.model.answer("half ", gate)
        await engine.post("a", "a")
        await gate.reached()
        await engine.cancel()
        run = await engine.ended("a")
        assert (run.state, run.error) == ("cancelled", None)
        assert engine.of_type(AgentEvent) == []


async def test_scenario_16_what_comes_after_the_end_was_decided_changes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate, "late")
        await engine.post("a", "a")
        await gate.reached()
        turn = engine.workspace.dispatcher(engine.session_id)._turn
        assert turn is not None
        await engine.cancel()
        await engine.ended("a")
        told = len(engine.events)
        turn.stop()
        with pytest.raises(asyncio.CancelledError):
            turn.speaker._on_retry(Retry(1, 1.0, "late"))
        assert turn.speaker._writer is not None
        turn.speaker._writer._save_growth()
        await within(engine.workspace._recorder.write(Batch()))
        assert len(engine.events) == told
        assert list(engine.terminals()) == ["a"]


# ── what is kept ──


async def test_text_saved_on_the_way_is_not_kept_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint of a step may come due while its tools run: by then the answer has been written whole."""
    monkeypatch.setattr(answer_writer, "CHECKPOINT_S", 0.0)
    async with running(tmp_path) as engine:
        gate = Gate()

        async def act() -> ToolOutput:
            await gate.pass_through()
            return ToolOutput("worked")

        engine.tool.act = act
        engine.model.answer("I look. ", *call(subject="x"))
        await engine.post("a", "a")
        await gate.reached()
        for _ in range(3):
            await asyncio.sleep(0)
        gate.open()
        await engine.ended("a")
        (answer,) = [m for m in engine.messages() if m.tool_calls]
        assert answer.text == "I look. "
        assert [part.data.input for part in answer.parts if isinstance(part, ToolCallPart)] == ['{"subject": "x"}']
        assert engine.disk._tails == {}


async def test_a_crash_in_the_middle_of_an_answer_loses_at_most_the_last_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_writer, "CHECKPOINT_S", 0.0)
    async with running(tmp_path) as engine:
        gates = [Gate(), Gate()]
        engine.model.answer("one ", gates[0], ReasoningDelta("hm"), "two ", gates[1])
        await engine.post("a", "a")
        for gate, expected in zip(gates, ("one ", "one two "), strict=True):
            await gate.reached()
            await asyncio.sleep(0)
            await within(engine.workspace._recorder.write(Batch()))
            assert engine.disk.copy().messages("w", engine.session_id, "", 0)[-1].text == expected
            gate.open()
        await engine.ended("a")
        assert engine.disk._tails == {}


async def test_what_a_run_used_is_in_its_terminal_event_and_adds_up(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer(UsageReported(10, 1), UsageReported(10, 2), *call())
        engine.model.answer(UsageReported(20, 3), "done")
        await engine.post("a", "a")
        await engine.ended("a")
        usage = engine.terminals()["a"].usage
        assert usage is not None
        assert (usage.prompt_tokens, usage.completion_tokens) == (30, 5)
        session = engine.workspace.sessions.get(engine.session_id)
        assert (session.prompt_tokens, session.completion_tokens) == (20, 3)


@pytest.mark.parametrize("reason", ["max_tokens", "content_filter", "tool_use", "end_turn"])
async def test_why_the_model_stopped_is_told(tmp_path: Path, reason: str) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer("text", Stopped(reason))  # type: ignore[arg-type]
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"
        expected = "end_turn" if reason == "tool_use" else reason
        assert engine.transcript()[-1][2] == expected


async def test_a_run_says_what_it_waits_for(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        model, tool = Gate(), Gate()

        async def act() -> ToolOutput:
            await tool.pass_through()
            return ToolOutput("worked")

        engine.tool.act = act
        engine.model.answer(model, *call())
        await engine.post("a", "a")
        await model.reached()
        run = await engine.workspace.run("a")
        assert (run.state, run.waiting_on) == ("active", "model")
        assert run.last_progress_at
        model.open()
        await tool.reached()
        assert (await engine.workspace.run("a")).waiting_on == "tool:work"
        tool.open()
        assert (await engine.ended("a")).waiting_on is None
