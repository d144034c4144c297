"""The dispatcher, smaller promises: what a run is seen to be, what an answer waits for, what a crash may not undo."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from covey.engine.dispatcher import Dispatcher
from covey.engine.last_words import Ending
from covey.engine.recorder import Batch
from covey.engine.turn import Turn
from covey.lifecycle.reply import UsageReported
from covey.lifecycle.runs import StopTurn
from covey.protocol.errors import Conflict
from covey.protocol.events import AgentEvent
from covey.protocol.messages import Message, Session
from covey.protocol.runs import CancelReceipt, PromptReceipt, Run
from covey.store.base import Change, UpdateRun
from tests.support.disk import BOUND_S, Disk
from tests.support.engine import Engine, Gate, Model, Stubborn, call, running, within

pytestmark = pytest.mark.anyio


def covered(receipt: CancelReceipt) -> dict[str, str]:
    return {run.run_id: run.state_found for run in receipt.covered}


def lane_of(engine: Engine) -> Dispatcher:
    return engine.workspace.dispatcher(engine.session_id)


def told_states(engine: Engine, run_id: str) -> list[str]:
    return [run.state for run in engine.of_type(Run) if run.run_id == run_id]


def stored(store: Disk, run_id: str) -> Run:
    row = store.run("w", run_id)
    assert row is not None
    return row.run


async def written(engine: Engine) -> None:
    """Everything that was decided is on disk."""
    await within(asyncio.shield(engine.workspace._recorder.write(Batch())))


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

    async def read_messages(session_id: str) -> list[Message]:
        await gate.pass_through()
        return []

    object.__setattr__(engine.workspace._parts, "read_messages", read_messages)
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
        await engine.workspace.cancel_run("c")
        gate.open()
        first, second, dropped = [await engine.ended(run_id) for run_id in "abc"]
        assert first.started_at and first.ended_at and second.started_at and second.ended_at
        assert first.accepted_at <= first.started_at <= first.ended_at <= second.started_at <= second.ended_at
        assert dropped.started_at is None


async def test_the_session_is_told_to_be_busy_and_then_what_the_turn_cost(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.session_id = (await engine.workspace.create_session("chosen")).id
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
            lane.edit("x", "stolen") if what == "edit" else lane.cancel() if what == "cancel" else lane.cancel_run("x")
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


# ── what an answer waits for ──


async def test_an_edit_is_on_disk_before_it_is_confirmed(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, gate := Gate())
        await queued(engine, "b")
        engine.disk.hold()
        editing = await engine.soon(lane_of(engine).edit("b", "better"))
        engine.disk.release()
        assert (await within(editing)).prompt == "better"
        assert stored(engine.disk, "b").prompt == "better"
        assert [run.prompt for run in engine.of_type(Run) if run.run_id == "b"] == ["b", "b", "better"]
        gate.open()
        await engine.ended("b")


async def test_an_edit_of_a_prompt_that_is_being_accepted_comes_after_it(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, gate := Gate())
        engine.disk.hold()
        posting = await being_accepted(engine, "b", "b")
        editing = await engine.soon(lane_of(engine).edit("b", "better"))
        assert lane_of(engine).open_runs()[-1].prompt == "b"
        engine.disk.release()
        assert (await within(posting)).run_id == "b"
        assert (await within(editing)).state == "queued"
        assert [(run.state, run.prompt) for run in engine.of_type(Run) if run.run_id == "b"] == [
            ("accepted", "b"), ("queued", "b"), ("queued", "better"),
        ]  # fmt: skip
        gate.open()
        await engine.ended("b")
        assert engine.model.prompts[-1][-1] == "better"


async def test_a_model_is_not_kept_waiting_for_the_place_of_its_answer_to_be_written(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        reading = slow_reading(engine)
        engine.model.answer(gate := Gate())
        await engine.post("a", "a")
        await reading.reached()
        engine.disk.hold()
        reading.open()
        await gate.reached()
        assert [message.role for message in engine.messages()] == ["user"]
        engine.disk.release()
        gate.open()
        await engine.ended("a")


# ── an acknowledged cancel, and a crash at that very moment ──


async def after_the_crash(directory: Path, copy: Disk) -> dict[str, tuple[str, str | None]]:
    async with running(directory, store=copy) as healed:
        runs = [await healed.ended(run.run_id) for run in copy.runs("w", "", "", 100)]
        return {run.run_id: (run.state, run.cancelled_by) for run in runs}


async def test_a_cancel_of_a_body_that_does_not_stop_outlives_a_crash(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, body := Stubborn())
        await queued(engine, "b")
        assert covered(await engine.cancel()) == {"a": "active", "b": "queued"}
        copy = engine.disk.copy()
        assert not stored(copy, "a").ended
        assert stored(copy, "b").ended
        body.open()
        await engine.ended("a")
    cancelled = ("cancelled", "session_cancel")
    assert await after_the_crash(tmp_path, copy) == {"a": cancelled, "b": cancelled}


async def test_a_cancel_of_a_prompt_that_is_being_accepted_outlives_a_crash(tmp_path: Path) -> None:
    """It is acknowledged only when it is written, which it can only be after the prompt itself."""
    async with running(tmp_path) as engine:
        await active(engine, body := Stubborn())
        disk = engine.disk
        noted = threading.Event()

        def hold_the_note(changes: Sequence[Change]) -> None:
            if any(isinstance(w, UpdateRun) and w.run.run_id == "b" for change in changes for w in change.writes):
                assert noted.wait(BOUND_S)

        disk.before_commit = hold_the_note
        before = disk.attempts
        disk.hold()
        posting = await being_accepted(engine, "b", "b")
        await disk.wait_attempts(before + 1)
        cancelling = await engine.soon(engine.cancel())
        await ticks(lambda: lane_of(engine).lane.is_cancelled("b"))
        disk.release()
        with disk._attempted:  # the loop stands still, so that the mark and the note are two changes
            assert disk._attempted.wait_for(lambda: disk.attempts == before + 2, BOUND_S)
        await disk.wait_attempts(before + 3)
        await ticks(posting.done)
        for _ in range(20):  # whatever may be acknowledged by now is
            await asyncio.sleep(0)
        acknowledged = cancelling.done()
        noted.set()
        assert not acknowledged, "the cancel was acknowledged, but a crash would undo it"
        assert covered(await within(cancelling)) == {"a": "active", "b": "accepted"}
        copy = disk.copy()
        assert not stored(copy, "b").ended
        body.open()
        await engine.ended("b")
    cancelled = ("cancelled", "session_cancel")
    assert await after_the_crash(tmp_path, copy) == {"a": cancelled, "b": cancelled}


async def test_the_mark_and_the_numbers_of_runs_outlive_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.post("x", "x")
        await engine.ended("x")
        mark = (await engine.cancel()).mark
        assert mark == stored(engine.disk, "x").seq
        assert [row.mark for row in engine.disk.sessions("w")] == [mark]
        await active(engine, gate := Gate())
        await queued(engine, "b", "c")
        copy = engine.disk.copy()
        gate.open()
    model = Model()
    model.answer(gate := Gate())
    async with running(tmp_path, store=copy, model=model) as again:
        await gate.reached()
        receipt = await again.workspace.cancel_run("c")
        assert (covered(receipt), receipt.mark) == ({"c": "queued"}, mark)
        receipt = await again.cancel()
        assert (covered(receipt), receipt.mark) == ({"b": "active"}, stored(copy, "c").seq)
        assert (await again.ended("b")).state == "cancelled"


# ── cancels that find nothing to change ──


async def test_a_second_cancel_changes_nothing_about_the_first(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, body := Stubborn())
        await engine.cancel()
        assert covered(await engine.workspace.cancel_run("a")) == {"a": "active"}
        await written(engine)
        body.open()
        run = await engine.ended("a")
        assert (run.state, run.cancelled_by) == ("cancelled", "session_cancel")
        assert told_states(engine, "a") == ["accepted", "active", "active", "cancelled"]


async def test_a_folded_run_ends_with_its_host_and_is_not_marked_by_the_cancel(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        first, second = Gate(), Stubborn()
        engine.model.answer(first, *call())
        engine.model.answer(second)
        await engine.post("a", "a")
        await first.reached()
        await engine.post("b", "b", mode="fold")
        first.open()
        await second.reached()
        assert covered(await engine.cancel()) == {"a": "active", "b": "folded"}
        second.open()
        host, folded = await engine.ended("a"), await engine.ended("b")
        assert (host.state, host.cancelled_by) == ("cancelled", "session_cancel")
        assert (folded.state, folded.folded_into, folded.cancelled_by) == ("folded", "a", None)
        assert told_states(engine, "b") == ["accepted", "queued", "folded", "folded"]


async def test_a_stop_for_another_run_than_the_one_under_way_stops_nobody(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        lane = lane_of(engine)
        await within(lane._carry_out([StopTurn("other")]))
        await active(engine, gate := Gate())
        await within(lane._carry_out([StopTurn("other")]))
        gate.open()
        assert (await engine.ended("a")).state == "completed"


# ── last words that cannot be composed: a bug of ours must not keep a run from ending ──


@pytest.fixture
def speechless(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Dispatcher, ending: Ending, turn: Turn | None, batch: Batch) -> Ending:
        raise ValueError("a bug of ours")

    monkeypatch.setattr(Dispatcher, "_ending", broken)


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
        await engine.workspace.cancel_run("a")
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.state, run.error) == ("cancelled", None)
        assert engine.transcript() == [("user", "a", ""), ("assistant", "", "canceled")]
