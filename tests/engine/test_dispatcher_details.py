"""The dispatcher, smaller promises: what a run is seen to be, whose run id it is, and last words that went wrong."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from covey.engine.lanes.dispatcher import Dispatcher
from covey.engine.recorder import Batch
from covey.engine.turns import last_words
from covey.engine.turns.last_words import LastWords
from covey.lifecycle.decisions import QueueChange
from covey.lifecycle.reply import UsageReported
from covey.protocol.errors import Conflict
from covey.protocol.events import AgentEvent
from covey.protocol.messages import Message, Session
from covey.protocol.runs import CancelReceipt, PromptReceipt, Run
from tests.support.disk import Disk
from tests.support.engine import Engine, Gate, running, within

pytestmark = pytest.mark.anyio


def lane_of(engine: Engine) -> Dispatcher:
    return engine.workspace._parts.lanes.open(engine.session_id)


def told_states(engine: Engine, run_id: str) -> list[str]:
    return [run.state for run in engine.of_type(Run) if run.run_id == run_id]


def stored(store: Disk, run_id: str) -> Run:
    row = store.run("w", run_id)
    assert row is not None
    return row.run


async def written(engine: Engine) -> None:
    """Everything that was decided is on disk."""
    await within(asyncio.shield(engine.workspace._parts.recorder.write(Batch())))


async def being_accepted(engine: Engine, prompt: str, run_id: str) -> asyncio.Task[PromptReceipt]:
    """A prompt that is in its lane, but not on disk: that is held."""
    posting = await engine.soon(engine.post(prompt, run_id))
    await ticks(lambda: lane_of(engine).lane.find(run_id))
    return posting


async def ticks(condition: Callable[[], object]) -> None:
    """Let the loop go round until the condition is true: it needs no more than the loop."""
    for _ in range(100):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come true")


async def active(engine: Engine, gate: Gate, run_id: str = "a") -> None:
    """A run whose model stands at the gate; all that belongs to its beginning is on disk."""
    engine.model.answer(gate)
    await engine.post(run_id, run_id)
    await gate.reached()
    await written(engine)


async def queued(engine: Engine, *run_ids: str) -> None:
    for run_id in run_ids:
        await engine.post(run_id, run_id)
        await engine.told_state(run_id, "queued")


def slow_reading(engine: Engine) -> Gate:
    """Turns stop before they read the conversation: they are active, and there is no answer yet."""
    gate = Gate()

    async def read_messages(session_id: str, since: str) -> list[Message]:
        await gate.pass_through()
        return []

    object.__setattr__(engine.workspace._parts.turns, "read_messages", read_messages)
    return gate


# ── what a run is seen to be ──


async def test_only_the_active_run_is_seen_to_wait_on_something(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.disk.hold()
        posting = await being_accepted(engine, "a", "a")
        (accepted,) = lane_of(engine).open_runs()
        assert (accepted.state, accepted.waiting_on, accepted.last_progress_at) == ("accepted", None, None)
        engine.model.answer(gate := Gate())
        engine.disk.release()
        await within(posting)
        await gate.reached()
        await queued(engine, "b")
        first, second = lane_of(engine).open_runs()
        assert (first.state, first.waiting_on) == ("active", "model")
        assert first.last_progress_at is not None
        assert (second.state, second.waiting_on, second.last_progress_at) == ("queued", None, None)
        gate.open()
        await engine.ended("b")


async def test_who_posts_is_told_what_became_of_the_prompt_until_now(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer(gate := Gate())
        assert (await engine.post("a", "a")).state == "active"
        assert (await engine.post("b", "b")).state == "queued"
        gate.open()
        await engine.ended("b")


async def test_each_state_of_a_run_is_told_once(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, gate := Gate())
        await queued(engine, "b", "c")
        await lane_of(engine).remove("c")
        gate.open()
        await engine.ended("b")
        assert told_states(engine, "a") == ["accepted", "active", "completed"]
        assert told_states(engine, "b") == ["accepted", "queued", "active", "completed"]
        assert told_states(engine, "c") == ["accepted", "queued", "cancelled"]


async def test_a_run_knows_when_its_turn_began(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, gate := Gate())
        await queued(engine, "b", "c")
        assert lane_of(engine).run("b").started_at is None  # type: ignore[union-attr] # it is open
        await engine.workspace.runs.cancel("c")
        gate.open()
        first, second, dropped = [await engine.ended(run_id) for run_id in "abc"]
        assert first.started_at and first.ended_at and second.started_at and second.ended_at
        assert first.accepted_at <= first.started_at <= first.ended_at <= second.started_at <= second.ended_at
        assert dropped.started_at is None


async def test_the_session_is_told_to_be_busy_and_then_what_the_turn_cost(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.session_id = (await engine.workspace.sessions.create("chosen")).id
        engine.model.answer("done", UsageReported(70, 8), gate := Gate())
        engine.events.clear()
        await engine.post("a", "a")
        await gate.reached()
        await written(engine)
        assert [session.is_busy for session in engine.of_type(Session)] == [True]
        gate.open()
        await engine.ended("a")
        assert [session.is_busy for session in engine.of_type(Session)] == [True, False]
        last = engine.of_type(Session)[-1]
        assert (last.title, last.prompt_tokens, last.completion_tokens, last.message_count) == ("chosen", 70, 8, 2)
        assert [event.session_title for event in engine.of_type(AgentEvent)] == ["chosen"]


async def test_a_new_session_is_told_its_title_with_its_first_prompt(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.events.clear()
        await active(engine, gate := Gate(), "hello")
        assert engine.of_type(Session)[0].title == "hello"
        gate.open()
        await engine.ended("hello")
        assert [event.session_title for event in engine.of_type(AgentEvent)] == ["hello"]


async def test_a_workspace_is_quiet_only_when_no_run_is_left(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, gate := Gate())
        await queued(engine, "b", "c")
        await lane_of(engine).remove("c")
        assert engine.quiet == 0
        gate.open()
        await engine.ended("b")
        await engine.is_quiet()
        assert engine.quiet == 1


async def test_a_turn_that_ended_is_let_go_of(tmp_path: Path) -> None:
    """It holds a whole conversation in memory."""
    async with running(tmp_path) as engine:
        await active(engine, gate := Gate())
        turn = weakref.ref(lane_of(engine)._turn)
        gate.open()
        await engine.ended("a")
        await lane_of(engine).drained()
        await asyncio.sleep(0)
        gc.collect()
        assert turn() is None


# ── the same run id ──


async def test_a_run_id_that_is_open_is_refused_for_another_prompt(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, gate := Gate())
        await queued(engine, "b")
        for run_id, state in (("a", "active"), ("b", "queued")):
            with pytest.raises(Conflict) as refused:
                await engine.post("something else", run_id)
            assert refused.value.code == "run_id_reused"
            assert (await engine.post(run_id, run_id)).state == state
        gate.open()
        await engine.ended("b")
        assert engine.model.prompts[-1] == ["a", "b"]


@pytest.mark.parametrize("what", ["edit", "cancel", "cancel_run"])
async def test_nothing_is_written_about_a_run_before_it_is_certain_that_the_id_is_new(
    tmp_path: Path, what: str
) -> None:
    """The id belongs to a run that has ended: whoever uses it again must not get at that one."""
    async with running(tmp_path) as engine:
        await engine.post("old", "x")
        before = await engine.ended("x")
        engine.disk.hold()
        posting = await being_accepted(engine, "new", "x")
        lane = lane_of(engine)
        asking: asyncio.Task[object] = await engine.soon(
            lane.edit("x", QueueChange("stolen"))
            if what == "edit"
            else lane.cancel()
            if what == "cancel"
            else lane.cancel_run("x")
        )
        engine.disk.release()
        with pytest.raises(Conflict) as refused:
            await within(posting)
        assert refused.value.code == "run_id_reused"
        if what == "edit":
            with pytest.raises(Conflict) as late:
                await within(asking)
            assert late.value.code == "too_late"
        else:
            receipt = await within(asking)
            assert isinstance(receipt, CancelReceipt)
            assert receipt.covered == ()
        await written(engine)
        assert stored(engine.disk, "x") == before
        assert told_states(engine, "x") == ["accepted", "active", "completed"]


# ── last words that cannot be composed: a bug of ours must not keep a run from ending ──


@pytest.fixture
def speechless(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> LastWords:
        raise ValueError("a bug of ours")

    monkeypatch.setattr(last_words, "_filled", broken)


@pytest.mark.usefixtures("speechless")
async def test_a_run_without_last_words_fails_and_keeps_its_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer("what was said")
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.state, run.text) == ("failed", "what was said")
        assert run.error == "internal error: ValueError('a bug of ours')"
        assert engine.transcript() == [("user", "a", ""), ("assistant", "what was said", "error")]
        assert "the last words of run a could not be composed" in caplog.text


@pytest.mark.usefixtures("speechless")
async def test_a_cancelled_run_without_last_words_is_cancelled_all_the_same(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        reading = slow_reading(engine)
        await engine.post("a", "a")
        await reading.reached()
        await engine.cancel()
        run = await engine.ended("a")
        assert (run.state, run.error) == ("cancelled", None)
        assert engine.transcript() == [("user", "a", ""), ("assistant", "", "canceled")]


@pytest.mark.usefixtures("speechless")
async def test_a_run_cancelled_on_entry_needs_no_turn_to_end(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.workspace.runs.cancel("a")
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.state, run.error) == ("cancelled", None)
        assert engine.transcript() == [("user", "a", ""), ("assistant", "", "canceled")]


async def test_who_looks_while_an_id_is_posted_again_sees_the_run_that_there_is(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.post("a", "a")
        before = await engine.ended("a")
        await engine.is_quiet()
        engine.disk.hold()
        again = await engine.soon(engine.post("a", "a"))
        other = await engine.soon(engine.post("b", "b"))
        assert await engine.workspace.runs.get("a") == before
        assert await engine.workspace.runs.newest(engine.session_id, "", 10) == [before]
        assert (await engine.workspace.runs.get("b")).state == "accepted"
        engine.disk.release()
        assert (await within(again)).state == "completed"
        await within(other)
        assert (await engine.ended("b")).state == "completed"


async def test_an_ended_run_that_is_just_posted_again_is_too_late_to_drop(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.post("a", "a")
        await engine.ended("a")
        await engine.is_quiet()
        engine.disk.hold()
        again = await engine.soon(engine.post("a", "a"))
        dropped = await engine.soon(engine.workspace.runs.remove_queued(engine.session_id, "a"))
        engine.disk.release()
        with pytest.raises(Conflict) as refused:
            await within(dropped)
        assert refused.value.code == "too_late"
        assert (await within(again)).state == "completed"


async def test_another_way_to_wait_is_another_content_if_it_is_asked_for(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, gate := Gate())
        await queued(engine, "b")
        for run_id in "ab":
            assert (await engine.post(run_id, run_id)).run_id == run_id
            assert (await engine.post(run_id, run_id, "own_turn")).run_id == run_id
            with pytest.raises(Conflict, match="was used for another prompt"):
                await engine.post(run_id, run_id, "fold")
        gate.open()


async def test_a_session_with_a_run_that_waits_for_its_model_is_not_let_go_of(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, gate := Gate())
        await within(engine.workspace._parts.recorder.write(Batch()))
        for _ in range(10):
            await asyncio.sleep(0)
        assert engine.workspace.is_busy
        assert engine.workspace.runs.turn_of("a") is not None
        gate.open()
