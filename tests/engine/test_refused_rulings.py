"""Each start and end in turn is refused for good by the store: every run still ends once, with a whole record (R8)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from covey.engine.lanes import lane_writer
from covey.engine.recorder import Batch
from covey.lifecycle.reply import UsageReported
from covey.protocol.runs import Run, Usage
from covey.store.base import Change, InsertRun, StoreFailed, UpdateRun
from covey.tools.base import ToolOutput
from tests.support.disk import Disk
from tests.support.engine import Engine, Gate, Model, call, config, running, within

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


async def test_r6_a_run_cancelled_on_entry_has_its_record_also_if_that_was_refused_first(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.workspace.cancel_run("x")
        engine.disk.refuses = Refusal(1)
        await engine.post("x", "x")
        assert (await engine.ended("x")).state == "cancelled"
        assert engine.transcript() == [("user", "x", ""), ("assistant", "", "canceled")]


async def refused(engine: Engine) -> None:
    """The session's only run has ended, and the store refuses to take that."""
    gate = Gate()
    engine.model.answer(UsageReported(7, 3), gate)
    await engine.post("a", "a")
    await gate.reached()
    engine.disk.poison = engine.session_id
    gate.open()
    while engine.workspace.is_busy:
        await asyncio.sleep(0)


class Attempts:
    """Counts how often ends are made anew, and how many do that at the same time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        self.made = 0
        self.under_way = 0
        self.most = 0
        self._log = caplog
        self._works = lane_writer._made_anew
        monkeypatch.setattr(lane_writer, "_made_anew", self._make)
        monkeypatch.setattr(lane_writer, "WAITS_S", (0.0, 1000.0))

    async def _make(self, *args: Any) -> Batch:
        self.made += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            return await self._works(*args)
        finally:
            self.under_way -= 1

    async def first_refused(self) -> None:
        async def wait() -> None:
            while "the end of run a is refused: too big" not in self._log.messages:
                await asyncio.sleep(0)  # nobody but the log is told

        await within(wait())


async def test_r13_closing_tries_a_refused_end_once_more_and_waits_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as engine:
        attempts = Attempts(monkeypatch, caplog)
        await refused(engine)
        await attempts.first_refused()
        engine.disk.poison = ""
        await within(engine.workspace.close(1000))
        assert attempts.made == 2
        assert engine.terminals()["a"].usage == Usage(prompt_tokens=7, completion_tokens=3)


async def test_r13_closing_does_not_wait_for_a_store_that_goes_on_refusing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine(Disk(), Model(), tmp_path, config())
    with mock.patch("covey.engine.agent.open_client", return_value=engine.model):
        await engine.open()
        attempts = Attempts(monkeypatch, caplog)
        await refused(engine)
        writer = engine.workspace.lanes._busy[engine.session_id]._writer
        await attempts.first_refused()
        for _ in range(100):
            await asyncio.sleep(0)
        assert attempts.made == 1, "not again and again"
        await within(engine.workspace.close(1000))
        assert (attempts.made, writer.is_idle) == (2, True)
        assert engine.terminals() == {}
        await within(engine.journal.aclose(5))


async def test_refused_ends_are_told_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as engine:
        attempts = Attempts(monkeypatch, caplog)
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await engine.post("q", "q")
        await gate.reached()
        await engine.told_state("q", "queued")
        engine.disk.refuses = lambda change: any(isinstance(w, UpdateRun) for w in change.writes) and not attempts.made
        await engine.cancel()
        assert [(await engine.ended(run_id)).state for run_id in "aq"] == ["cancelled", "cancelled"]
        assert attempts.most == 1


async def test_a_run_that_cannot_be_recorded_is_not_accepted(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.disk.refuses = lambda change: any(isinstance(write, InsertRun) for write in change.writes)
        with pytest.raises(StoreFailed):
            await engine.post("a", "a")
        engine.disk.refuses = lambda change: False
        assert await engine.workspace.runs(engine.session_id, "", 100) == []
        await asyncio.sleep(0)
        assert not engine.workspace.is_busy
