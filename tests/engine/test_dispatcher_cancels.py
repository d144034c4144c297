"""What an answer of the dispatcher waits for, and cancels: which of them a crash may not undo, and what they leave."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from covey.lifecycle.decisions import QueueChange, StopTurn
from covey.protocol.runs import CancelReceipt, Run
from covey.store.base import Change, UpdateRun
from tests.engine.test_dispatcher_details import (
    active,
    being_accepted,
    lane_of,
    queued,
    slow_reading,
    stored,
    ticks,
    told_states,
    written,
)
from tests.support.disk import BOUND_S, Disk
from tests.support.engine import Gate, Model, Stubborn, call, running, within

pytestmark = pytest.mark.anyio


def covered(receipt: CancelReceipt) -> dict[str, str]:
    return {run.run_id: run.state_found for run in receipt.covered}


@contextlib.contextmanager
def stubborn() -> Iterator[Stubborn]:
    """A body that does not stop until the block ends, however it ends: else the test would never."""
    body = Stubborn()
    try:
        yield body
    finally:
        body.open()


# ── what an answer waits for ──


async def test_an_edit_is_on_disk_before_it_is_confirmed(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, gate := Gate())
        await queued(engine, "b")
        engine.disk.hold()
        editing = await engine.soon(lane_of(engine).edit("b", QueueChange("better")))
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
        editing = await engine.soon(lane_of(engine).edit("b", QueueChange("better")))
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
        with stubborn() as body:
            await active(engine, body)
            await queued(engine, "b")
            assert covered(await engine.cancel()) == {"a": "active", "b": "queued"}
            copy = engine.disk.copy()
            assert not stored(copy, "a").ended
            assert stored(copy, "b").ended
        await engine.ended("a")
    cancelled = ("cancelled", "session_cancel")
    assert await after_the_crash(tmp_path, copy) == {"a": cancelled, "b": cancelled}


async def test_a_cancel_of_a_prompt_that_is_being_accepted_outlives_a_crash(tmp_path: Path) -> None:
    """It is acknowledged only when it is written, which it can only be after the prompt itself."""
    async with running(tmp_path) as engine:
        with stubborn() as body:
            await active(engine, body)
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
            await ticks(lambda: "b" in [run.run_id for run in lane_of(engine).lane.runs if run.cancelled])
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
        receipt = await again.workspace.runs.cancel("c")
        assert (covered(receipt), receipt.mark) == ({"c": "queued"}, mark)
        receipt = await again.cancel()
        assert (covered(receipt), receipt.mark) == ({"b": "active"}, stored(copy, "c").seq)
        assert (await again.ended("b")).state == "cancelled"


# ── cancels that find nothing to change ──


async def test_a_second_cancel_changes_nothing_about_the_first(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        with stubborn() as body:
            await active(engine, body)
            await engine.cancel()
            assert covered(await engine.workspace.runs.cancel("a")) == {"a": "active"}
            await written(engine)
        run = await engine.ended("a")
        assert (run.state, run.cancelled_by) == ("cancelled", "session_cancel")
        assert told_states(engine, "a") == ["accepted", "active", "active", "cancelled"]


async def test_a_folded_run_ends_with_its_host_and_is_not_marked_by_the_cancel(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        with stubborn() as second:
            first = Gate()
            engine.model.answer(first, *call())
            engine.model.answer(second)
            await engine.post("a", "a")
            await first.reached()
            await engine.post("b", "b", mode="fold")
            first.open()
            await second.reached()
            assert covered(await engine.cancel()) == {"a": "active", "b": "folded"}
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
