"""Only sessions in which something is open have a dispatcher."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.engine import Gate, running

pytestmark = pytest.mark.anyio


async def test_an_idle_session_is_not_kept(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        lanes = engine.workspace.lanes
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        assert list(lanes._busy) == [engine.session_id]
        assert lanes.of_run("a") is engine.workspace.dispatcher(engine.session_id)
        gate.open()
        await engine.ended("a")
        await engine.is_quiet()
        assert lanes._busy == {}
        assert lanes.of_run("a") is None


async def test_asking_an_idle_session_keeps_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        assert engine.workspace.queued(engine.session_id) == []
        assert engine.workspace.lanes._busy == {}
        assert (await engine.cancel()).covered == ()
        assert engine.workspace.lanes._busy == {}


async def test_r4_the_mark_of_a_cancel_does_not_fall_when_the_session_was_idle(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        seq = (await engine.post("a", "a")).seq
        await engine.ended("a")
        assert (await engine.cancel()).mark == seq
        assert (await engine.workspace.dispatcher(engine.session_id).clear_queue()).mark == seq
        assert (await engine.post("b", "b")).seq == seq + 1
        assert (await engine.ended("b")).state == "completed"
