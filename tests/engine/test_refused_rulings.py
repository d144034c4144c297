"""Each start and end in turn is refused for good by the store: every run still ends once, with a whole record (R8)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from covey.protocol.runs import Run
from covey.store.base import Change, InsertRun, StoreFailed, UpdateRun
from covey.tools.base import ToolOutput
from tests.support.engine import Engine, Gate, call, running

pytestmark = pytest.mark.anyio

RULINGS = 5
"""As many as a history below has, at most."""


def _starts_or_ends(run: Run) -> bool:
    return run.ended or (run.state == "active" and run.cancelled_by is None)


class Refusal:
    """Refuses the change with this number, as often as it is tried, of those that start or end a run."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._seen: list[Change] = []

    def __call__(self, change: Change) -> bool:
        if not any(isinstance(write, UpdateRun) and _starts_or_ends(write.run) for write in change.writes):
            return False
        if not any(change is seen for seen in self._seen):
            self._seen.append(change)
        return len(self._seen) >= self._number and change is self._seen[self._number - 1]

    @property
    def happened(self) -> bool:
        return len(self._seen) >= self._number


async def history(engine: Engine, *, cancelled: bool) -> None:
    """A run with a tool call, one that folds into it, two that wait; then a cancel of all of them, or none."""
    at_work, at_word = Gate(), Gate()
    engine.model.answer("first ", *call())
    engine.model.answer("then ", at_word)

    async def act() -> ToolOutput:
        await at_work.pass_through()
        return ToolOutput("worked")

    engine.tool.act = act
    await engine.post("a", "a")
    await engine.post("f")
    await engine.post("q", "q")
    at_work.open()
    if cancelled:
        await engine.cancel()
    at_word.open()
    await engine.post("z", "z")
    runs = await engine.workspace.runs(engine.session_id, "", 100)
    for run in runs:
        await engine.ended(run.run_id)
    terminals = list(engine.terminals())
    assert sorted(terminals) == sorted(run.run_id for run in runs)


@pytest.mark.parametrize("cancelled", [False, True], ids=["left alone", "cancelled"])
@pytest.mark.parametrize("number", range(1, RULINGS + 1))
async def test_r8_whichever_ruling_is_refused(tmp_path: Path, number: int, cancelled: bool) -> None:
    async with running(tmp_path) as engine:
        refusal = engine.disk.refuses = Refusal(number)
        await history(engine, cancelled=cancelled)
    assert refusal.happened or number > 3


async def test_a_run_that_cannot_be_recorded_is_not_accepted(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.disk.refuses = lambda change: any(isinstance(write, InsertRun) for write in change.writes)
        with pytest.raises(StoreFailed):
            await engine.post("a", "a")
        engine.disk.refuses = lambda change: False
        assert await engine.workspace.runs(engine.session_id, "", 100) == []
        await asyncio.sleep(0)
        assert not engine.workspace.is_busy
