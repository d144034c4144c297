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


async def test_r4_the_mark_is_the_newest_seq_in_whichever_session_it_was_given_out(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        elsewhere = (await engine.workspace.create_session("")).id
        seq = (await engine.workspace.post_prompt(PostPrompt(session_id=elsewhere, prompt="b", run_id="b"))).seq
        assert (await engine.cancel()).mark == seq
        assert (await engine.ended("b")).state == "completed", "it is of another session"


async def test_r4_the_mark_of_an_idle_session_does_not_fall_in_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.post("a", "a")
        await engine.ended("a")
        mark = (await engine.cancel()).mark
        store = engine.disk.copy()
    async with running(tmp_path, store=store) as again:
        assert (await again.workspace.dispatcher(again.session_id).clear_queue()).mark == mark


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
