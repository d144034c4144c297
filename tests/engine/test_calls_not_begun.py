"""Calls that a run's end has kept from beginning: nobody is told that they may have had effects."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.engine.turns.last_words import LastWords, cut_off
from covey.lifecycle.decisions import Outcome
from covey.models.base import ModelFailed
from covey.protocol.endings import CallEnd, call_end
from covey.tools.base import ToolOutput
from tests.engine.test_last_words_details import call as call_part
from tests.engine.test_last_words_details import finish, message, run, text
from tests.support.engine import Engine, Gate, call, running

pytestmark = pytest.mark.anyio


def ends(engine: Engine) -> dict[str, CallEnd]:
    return {found.tool_call_id: call_end(found) for said in engine.messages() for found in said.tool_results}


async def test_a_call_that_waits_for_a_permission_has_not_begun(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.tool.harmless = False
        engine.model.answer(*call())
        await engine.post("a", "a")
        await engine.until(lambda: engine.workspace.asks.permissions())
        await engine.cancel()
        await engine.ended("a")
        assert ends(engine) == {"c1": CallEnd.NOT_BEGUN} and engine.tool.calls == []


async def test_calls_behind_the_one_that_was_cancelled_have_not_begun(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()

        async def act() -> ToolOutput:
            await gate.pass_through()
            return ToolOutput("worked")

        engine.tool.act = act
        engine.model.answer(*call(), *call(call_id="c2", index=1))
        await engine.post("a", "a")
        await gate.reached()
        await engine.cancel()
        await engine.ended("a")
        assert ends(engine) == {"c1": CallEnd.CANCELLED, "c2": CallEnd.NOT_BEGUN}


async def test_an_id_that_a_model_gives_twice_says_nothing_of_the_second_call(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer(*call())
        engine.model.answer(*call(), ModelFailed("gone"))
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "failed"
        assert [call_end(found) for said in engine.messages() for found in said.tool_results] == [
            *(CallEnd.ANSWERED, CallEnd.NOT_BEGUN),
        ]


def test_a_crash_in_the_middle_of_an_answer_kept_its_calls_from_beginning() -> None:
    """A tool is run only when the whole answer is on disk; of a whole one it is not known what was begun."""
    known = LastWords(run(), Outcome.INTERRUPTED)
    half = message("a", "assistant", text("so "), call_part("c1"))
    whole = message("a", "assistant", text("so "), call_part("c1"), finish("tool_use"))
    assert set(cut_off(known, [half]).not_begun) == {"c1"}
    assert not cut_off(known, [whole]).not_begun
