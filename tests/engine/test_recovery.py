"""After a crash: what was accepted goes on, what was active is closed, and doing it twice changes nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest import mock

import pytest
from msgspec import structs

from covey.engine.recorder import Batch
from covey.protocol.errors import Conflict
from covey.protocol.events import AgentEvent, created
from covey.protocol.runs import RunComplete
from covey.store.base import InsertRun, RunRow, UpdateRun
from covey.tools.base import ToolOutput
from tests.store.test_store_conformance import change
from tests.support.disk import Disk
from tests.support.engine import Engine, Gate, Model, call, config, running, within

pytestmark = pytest.mark.anyio


async def settled(engine: Engine) -> dict[str, str]:
    """All runs have ended: their states."""
    runs = [run.run_id for run in engine.store.runs("w", "", "", 1000)]
    return {run_id: (await engine.ended(run_id)).state for run_id in runs}


def terminals(engine: Engine) -> dict[str, RunComplete]:
    """As the log has them: exactly one for each run."""
    found = [event.payload for event in engine.log() if isinstance(event.payload, RunComplete)]
    by_run = {terminal.run_id: terminal for terminal in found}
    assert len(found) == len(by_run), "a run has two terminal events"
    return by_run


async def crashed_in_a_tool(directory: Path) -> Disk:
    """One run in a tool call with another folded into it, two queued, one accepted, one accepted and cancelled."""
    async with running(directory) as engine:
        gates = [Gate(), Gate()]

        async def act() -> ToolOutput:
            await gates[1].pass_through()
            return ToolOutput("worked")

        engine.tool.act = act
        engine.model.answer("look ", gates[0], *call(call_id="c1"))
        engine.model.answer("again ", *call(call_id="c2"))
        await engine.post("active", "active")
        await gates[0].reached()
        folded = await engine.post("folded", mode="fold", run_id="folded")
        await engine.told_state(folded.run_id, "queued")
        gates[0].open()
        await gates[1].reached()
        gates[1].open()
        await engine.told_state("folded", "folded")
        gates[1] = Gate()
        await gates[1].reached()
        for run_id in ("queued 1", "queued 2"):
            await engine.post(run_id, run_id.replace(" ", "-"))
        await engine.told_state("queued-2", "queued")
        copy = engine.disk.copy()
    last = copy.run("w", "queued-2")
    assert last is not None
    for number, run_id in enumerate(("accepted", "cancelled"), last.run.seq + 1):
        run = structs.replace(last.run, run_id=run_id, seq=number, state="accepted", prompt=run_id)
        if run_id == "cancelled":
            run = structs.replace(run, cancelled_by="session_cancel")
        copy.commit([change(InsertRun(RunRow(run, "digest")), events=(created(run),))])
    return copy


EXPECTED = {
    "active": "interrupted",
    "folded": "folded",
    "queued-1": "completed",
    "queued-2": "completed",
    "accepted": "completed",
    "cancelled": "cancelled",
}


async def test_scenario_20_what_was_active_is_interrupted_and_the_rest_goes_on_in_order(tmp_path: Path) -> None:
    disk = await crashed_in_a_tool(tmp_path)
    async with running(tmp_path, store=disk) as engine:
        assert await settled(engine) == EXPECTED
        ended = terminals(engine)
        assert ended["active"].interrupted
        assert ended["active"].error
        assert (ended["folded"].folded_into, ended["folded"].interrupted) == ("active", True)
        assert ended["cancelled"].cancelled
        starts = [prompts[-1] for prompts in engine.model.prompts]
        assert starts == ["queued 1", "queued 2", "accepted"]
        mine = [message for message in engine.messages() if message.run_id == "active"]
        assert [m.role for m in mine] == ["user", "assistant", "tool", "assistant", "tool"]
        assert [(m.text, m.finish.reason) for m in mine if m.finish] == [("look ", "tool_use"), ("again ", "error")]
        assert "The server stopped" in mine[-1].tool_results[0].content
        assert not [event for event in engine.log() if isinstance(event.payload, AgentEvent) and event.payload.error]


async def test_a_crash_at_any_moment_of_a_life_is_healed(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.disk.keeps_copies = True
        gate = Gate()
        engine.model.answer("look ", gate, *call(call_id="c1"))
        engine.model.answer("half ", Gate())
        await engine.post("a", "a")
        await gate.reached()
        await engine.post("b", "b", mode="fold")
        await engine.post("c", "c")
        await engine.told_state("c", "queued")
        gate.open()
        await engine.told_state("b", "folded")
        await engine.cancel()
        await engine.post("d", "d")
        for run_id in "abcd":
            await engine.ended(run_id)
        copies = list(engine.disk.copies)
    assert len(copies) > 10
    for copy in copies:
        before = {row.run.run_id for row in copy.open_runs("w")}
        async with running(tmp_path, store=copy) as healed:
            states = await settled(healed)
            assert set(states) == set(terminals(healed))
            assert before <= set(states)
            if states.get("d"):
                assert states["d"] in ("completed", "interrupted")


async def test_recovery_that_is_itself_cut_off_gives_the_same_end(tmp_path: Path) -> None:
    disk = await crashed_in_a_tool(tmp_path)
    disk.keeps_copies = True
    async with running(tmp_path, store=disk) as engine:
        assert await settled(engine) == EXPECTED
    copies = list(disk.copies)
    assert len(copies) > 3
    for copy in copies:
        async with running(tmp_path, store=copy) as again:
            states = await settled(again)
            assert set(states) == set(terminals(again)) == set(EXPECTED)
            for run_id in ("active", "folded", "cancelled"):
                assert states[run_id] == EXPECTED[run_id]
            active = [message for message in again.messages() if message.run_id == "active"]
            assert [m.role for m in active] == ["user", "assistant", "tool", "assistant", "tool"]


async def test_a_cancel_that_was_recorded_before_the_crash_still_counts(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer("half ", gate)
        await engine.post("a", "a")
        await gate.reached()
        row = engine.disk.run("w", "a")
        assert row is not None
        copy = engine.disk.copy()
        gate.open()
    copy._write("w", UpdateRun(structs.replace(row.run, cancelled_by="session_cancel")))
    async with running(tmp_path, store=copy) as healed:
        run = await healed.ended("a")
        assert (run.state, run.error) == ("cancelled", None)
        assert healed.transcript()[-1][2] == "canceled"


async def test_a_folded_run_that_lost_its_host_gets_its_end(tmp_path: Path) -> None:
    """The core makes up for an end that was parted from its host's; the shell must be able to write it."""
    async with running(tmp_path) as engine:
        await engine.post("a", "a")
        await engine.ended("a")
        copy = engine.disk.copy()
    row = copy.run("w", "a")
    assert row is not None
    run = structs.replace(
        row.run, run_id="b", seq=2, state="folded", folded_into="a", ended_at=None, text=None, message_id=None
    )
    copy._runs["w", "b"] = RunRow(run, "digest")
    engine = Engine(copy, Model(), tmp_path, config())
    await engine.open()
    assert (await engine.ended("b")).ended
    assert terminals(engine)["b"].folded_into == "a"
    await engine.close()
    await within(engine.journal.aclose(5))


async def test_numbers_ids_and_early_cancels_outlive_the_server(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        first = await engine.post("same", "x")
        await engine.ended("x")
        await engine.workspace.runs.cancel("early")
        copy = engine.disk.copy()
        last_event = engine.workspace._parts.feed.last_seq
    async with running(tmp_path, store=copy) as again:
        assert again.workspace._parts.feed.last_seq == last_event
        receipt = await again.post("same", "x")
        assert (receipt.seq, receipt.state) == (first.seq, "completed")
        with pytest.raises(Conflict):
            await again.post("other", "x")
        assert (await again.post("new", "y")).seq > first.seq
        await again.post("too late", "early")
        assert (await again.ended("early")).state == "cancelled"
        await again.ended("y")


async def test_a_start_on_a_full_disk_goes_on_when_there_is_room(tmp_path: Path) -> None:
    disk = await crashed_in_a_tool(tmp_path)
    disk.full = True
    async with running(tmp_path, store=disk) as engine:
        flushed = engine.workspace._parts.recorder.write(Batch())
        assert await within(engine.workspace.sessions.messages(engine.session_id, "", 0))
        assert not flushed.done()
        assert terminals(engine) == {}
        disk.full = False
        await within(asyncio.shield(flushed))
        assert await settled(engine) == EXPECTED


async def test_an_end_that_was_refused_for_good_is_made_up_for_by_the_next_start(tmp_path: Path) -> None:
    engine = Engine(Disk(), Model(), tmp_path, config())
    with mock.patch("covey.engine.agent.open_client", return_value=engine.model):
        await engine.open()
        gate = Gate()
        engine.model.answer("half ", gate)
        await engine.post("a", "a")
        await gate.reached()
        await within(engine.workspace._parts.recorder.write(Batch()))
        engine.disk.poison = engine.session_id
        gate.open()
        while engine.workspace.is_busy:
            await asyncio.sleep(0)
        await engine.close()
        await within(engine.journal.aclose(5))
    async with running(tmp_path, store=engine.disk.copy()) as again:
        assert (await again.ended("a")).state == "interrupted"
