"""Only sessions in which something is open have a dispatcher."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.protocol.errors import QueueFull
from covey.protocol.requests import PostPrompt
from tests.support.engine import Gate, config, running

pytestmark = pytest.mark.anyio


async def test_an_idle_session_is_not_kept(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        lanes = engine.workspace._parts.lanes
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        assert list(lanes._busy) == [engine.session_id]
        assert lanes.of_run("a") is engine.workspace._parts.lanes.open(engine.session_id)
        gate.open()
        await engine.ended("a")
        await engine.is_quiet()
        assert lanes._busy == {}
        assert lanes.of_run("a") is None


async def test_asking_an_idle_session_keeps_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        assert await engine.workspace.runs.queued(engine.session_id) == []
        assert engine.workspace._parts.lanes._busy == {}
        assert (await engine.cancel()).covered == ()
        assert engine.workspace._parts.lanes._busy == {}


async def test_r4_the_mark_of_a_cancel_does_not_fall_when_the_session_was_idle(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        seq = (await engine.post("a", "a")).seq
        await engine.ended("a")
        assert (await engine.cancel()).mark == seq
        assert (await engine.workspace.runs.clear_queue(engine.session_id)).mark == seq
        assert (await engine.post("b", "b")).seq == seq + 1
        assert (await engine.ended("b")).state == "completed"


async def test_r4_the_mark_is_the_newest_seq_in_whichever_session_it_was_given_out(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        elsewhere = (await engine.workspace.sessions.create("")).id
        seq = (await engine.workspace.runs.post(PostPrompt(session_id=elsewhere, prompt="b", run_id="b"))).seq
        assert (await engine.cancel()).mark == seq
        assert (await engine.ended("b")).state == "completed", "it is of another session"


async def test_r4_the_mark_of_an_idle_session_does_not_fall_in_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.post("a", "a")
        await engine.ended("a")
        mark = (await engine.cancel()).mark
        store = engine.disk.copy()
    async with running(tmp_path, store=store) as again:
        assert (await again.workspace.runs.clear_queue(again.session_id)).mark == mark


async def test_r1_a_seq_that_only_a_cancel_has_noted_is_not_given_out_again(tmp_path: Path) -> None:
    """The prompt that had it was refused, so that the store knows it by the mark alone."""
    async with running(tmp_path, settings=config(queue=0)) as engine:
        with pytest.raises(QueueFull):
            await engine.post("a", "a")
        mark = (await engine.cancel()).mark
        assert mark == 1
        store = engine.disk.copy()
    async with running(tmp_path, store=store) as again:
        assert (await again.post("b", "b")).seq == mark + 1
        assert (await again.ended("b")).state == "completed"


async def test_nothing_is_left_of_a_deleted_session(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        lanes = engine.workspace._parts.lanes
        await engine.post("a", "a")
        await engine.ended("a")
        await engine.cancel()
        await engine.is_quiet()
        assert engine.session_id in lanes._marks
        await engine.workspace.sessions.delete(engine.session_id)
        assert (lanes._marks, lanes._busy) == ({}, {})


async def test_a_session_that_is_known_to_be_idle_may_say_so_again(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.workspace._parts.lanes._quiet(engine.session_id)
        assert engine.quiet == 0
