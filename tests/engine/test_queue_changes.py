"""Moving, parking and interrupting, carried out: what is on disk, what is published, and what a crash leaves (R7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.lifecycle.decisions import QueueChange
from covey.protocol.errors import Conflict
from covey.protocol.runs import Run
from tests.engine.test_dispatcher_details import active, lane_of, queued, stored, written
from tests.support.engine import Engine, Gate, running

pytestmark = pytest.mark.anyio

FIRST = QueueChange(is_moved=True)


def order(engine: Engine) -> list[str]:
    """The queue as the store has it."""
    waiting = [row.run for row in engine.store.open_runs("w") if row.run.state == "queued"]
    return [run.run_id for run in sorted(waiting, key=lambda run: run.place or 0)]


def started(engine: Engine) -> list[str]:
    return list(dict.fromkeys(run.run_id for run in engine.of_type(Run) if run.state == "active"))


async def test_r7_a_moved_run_is_stored_in_its_new_place_and_runs_there(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, gate := Gate())
        await queued(engine, "b", "c", "d")
        await lane_of(engine).edit("d", FIRST)
        assert order(engine) == ["d", "b", "c"]
        await lane_of(engine).edit("b", QueueChange(is_moved=True, after="c"))
        assert order(engine) == ["d", "c", "b"]
        gate.open()
        for run_id in ("d", "c", "b"):
            assert (await engine.ended(run_id)).place is None
        assert started(engine) == ["a", "d", "c", "b"]


async def test_r7_text_and_place_change_together_or_not_at_all(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, gate := Gate())
        await queued(engine, "b", "c")
        with pytest.raises(Conflict, match="'a' does not wait in the queue"):
            await lane_of(engine).edit("c", QueueChange("better", is_moved=True, before="a"))
        assert (order(engine), stored(engine.disk, "c").prompt) == (["b", "c"], "c")
        await lane_of(engine).edit("c", QueueChange("better", is_moved=True, before="b"))
        assert (order(engine), stored(engine.disk, "c").prompt) == (["c", "b"], "better")
        gate.open()


async def test_r7_a_parked_run_blocks_nobody_and_starts_when_it_is_unparked(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, gate := Gate())
        await queued(engine, "b", "c")
        assert (await lane_of(engine).edit("b", QueueChange(parked_by="kim"))).parked_by == "kim"
        gate.open()
        await engine.ended("c")
        await written(engine)
        assert not lane_of(engine).is_busy
        assert stored(engine.disk, "b").parked_by == "kim"
        await engine.post("d", "d")
        await engine.ended("d")
        await lane_of(engine).edit("b", QueueChange("edited", parked_by=""))
        ended = await engine.ended("b")
        assert (ended.state, ended.prompt, ended.parked_by) == ("completed", "edited", None)
        assert started(engine) == ["a", "c", "d", "b"]


async def test_r7_an_interrupt_is_one_change_with_the_cancel_of_what_it_interrupts(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, Gate())
        await queued(engine, "b")
        await engine.post("now", "now", mode="interrupt")
        ended = await engine.ended("a")
        assert (ended.state, ended.cancelled_by) == ("cancelled", "interrupt")
        assert (await engine.ended("now")).state == "completed"
        await engine.ended("b")
        assert started(engine) == ["a", "now", "b"]
        runs = [(event.payload.run_id, event.payload.state) for event in engine.log() if isinstance(event.payload, Run)]
        cancelled = next(at for at, run in enumerate(runs) if run == ("now", "queued")) - 1
        assert runs[cancelled : cancelled + 3] == [("a", "active"), ("now", "queued"), ("b", "queued")]


async def test_r15_places_survive_a_crash_and_parking_does_not(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, Gate())
        await queued(engine, "b", "c", "d")
        await lane_of(engine).edit("d", FIRST)
        await lane_of(engine).edit("c", QueueChange(parked_by="kim"))
        crashed = engine.disk.copy()
    async with running(tmp_path, store=crashed) as engine:
        for run_id in ("d", "b", "c"):
            assert (await engine.ended(run_id)).state == "completed"
        assert started(engine) == ["d", "b", "c"]
        assert stored(engine.disk, "c").parked_by is None


async def test_r7_what_is_too_late_to_edit_is_too_late_to_move_and_to_park(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await active(engine, gate := Gate())
        for change in (QueueChange("x"), FIRST, QueueChange(parked_by="kim"), QueueChange(parked_by="")):
            with pytest.raises(Conflict, match="does not wait in the queue any more"):
                await lane_of(engine).edit("a", change)
        gate.open()
