"""Deleting a session and closing a workspace: everything that is open ends first, and is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.engine import recorder as recorder_module
from covey.engine.recorder import Batch
from covey.protocol.errors import Conflict, NotFound, Unavailable
from covey.protocol.runs import RunComplete
from covey.store.sqlite import SqliteStore
from covey.tools.base import ToolOutput
from tests.feed.readers import Reader
from tests.support.engine import Gate, Stubborn, call, config, running, within

pytestmark = pytest.mark.anyio


# ── deleting a session ──


async def test_a_deleted_session_ends_its_runs_first(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer("half ", gate)
        for run_id in "ab":
            await engine.post(run_id, run_id)
        await gate.reached()
        await engine.told_state("b", "queued")
        engine.disk.hold()
        posting = await engine.soon(engine.post("c", "c"))
        deleting = await engine.soon(engine.workspace.sessions.delete(engine.session_id))
        for use in (engine.post("d", "d"), engine.workspace.sessions.messages(engine.session_id, "", 0)):
            with pytest.raises(NotFound):
                await use
        engine.disk.release()
        await within(posting)
        await within(deleting)
        assert {run_id: t.cancelled for run_id, t in engine.terminals().items()} == dict.fromkeys("abc", True)
        assert engine.events[-1].type == "session"
        assert engine.events[-1].change == "deleted"
        assert engine.messages() == []
        assert not engine.workspace.is_busy
        assert engine.workspace._parts.lanes._busy == {}
        run = await engine.workspace.runs.get("c")
        assert (run.state, run.cancelled_by) == ("cancelled", "session_delete")
        assert engine.tool.calls == []
        with pytest.raises(NotFound):
            await engine.workspace.sessions.delete(engine.session_id)


async def test_a_deleted_session_takes_its_open_question_with_it(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.tool.harmless = False
        engine.model.answer(*call())
        await engine.post("a", "a")
        await engine.until(lambda: list(engine.workspace.asks.permissions()))
        await within(engine.workspace.sessions.delete(engine.session_id))
        assert list(engine.workspace.asks.permissions()) == []


async def test_deleting_one_session_leaves_the_others(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate, "answer")
        await engine.post("a", "a")
        await gate.reached()
        other = await engine.workspace.sessions.create("other")
        await within(engine.workspace.sessions.delete(other.id))
        gate.open()
        assert (await engine.ended("a")).state == "completed"


# ── closing ──


async def test_scenario_17_last_words_are_written_before_anything_is_released(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer("half ", gate)
        for run_id in "ab":
            await engine.post(run_id, run_id)
        await gate.reached()
        reader = Reader(engine.workspace._parts.feed)
        at_release: list[object] = []

        async def aclose() -> None:
            at_release.append(
                ([run.ended for run in engine.store.runs("w", "", "", 10)], engine.workspace._parts.feed.closed)
            )

        engine.workspace._parts.agent.aclose = aclose  # type: ignore[method-assign]
        engine.disk.hold()
        closing = await engine.soon(engine.workspace.close(5.0))
        with pytest.raises(Conflict) as refused:
            await engine.post("c", "c")
        assert refused.value.code == "workspace_closing"
        with pytest.raises(Conflict):
            await engine.workspace.sessions.create("")
        engine.disk.release()
        await within(closing)
        assert at_release == [([True, True], True)]
        assert engine.transcript() == [("user", "a", ""), ("assistant", "half ", "canceled")]
        reader.take_all()
        told = [event.payload.run_id for event in reader.events if isinstance(event.payload, RunComplete)]
        assert told == ["b", "a"]


async def test_scenario_24_closing_between_accept_and_enter(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        end_streams = engine.workspace._parts.feed.close
        told: list[str] = []

        def close() -> None:
            told.extend(engine.terminals())
            end_streams()

        engine.workspace._parts.feed.close = close  # type: ignore[method-assign]
        engine.disk.hold()
        posting = await engine.soon(engine.post("a", "a"))
        closing = await engine.soon(engine.workspace.close(5.0))
        engine.disk.release()
        await within(posting)
        await within(closing)
        assert engine.transcript() == [("user", "a", ""), ("assistant", "", "canceled")]
        assert engine.model.requests == []
        assert told == ["a"], "the streams were ended before the end was told"


async def test_closing_does_not_wait_for_ever_for_a_turn_that_does_not_stop(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(grace_s=0.01)) as engine:
        gate = Stubborn()

        async def act() -> ToolOutput:
            await gate.pass_through()
            return ToolOutput("late")

        engine.tool.act = act
        engine.model.answer(*call())
        await engine.post("a", "a")
        await gate.reached()
        await within(engine.workspace.close(5.0))
        assert engine.terminals()["a"].cancelled
        gate.open()


async def test_closing_on_a_full_disk_comes_to_an_end(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        engine.disk.full = True
        await within(engine.workspace.close(0.05))
        engine.disk.full = False
        await within(engine.workspace._parts.recorder.write(Batch()))
        assert engine.terminals()["a"].cancelled


async def test_a_cancel_that_cannot_be_written_yet_is_in_force_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "STORE_WAIT_S", 0.01)
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        engine.disk.full = True
        with pytest.raises(Unavailable) as late:
            await engine.cancel()
        assert late.value.code == "store_unavailable"
        engine.disk.full = False
        assert (await engine.ended("a")).state == "cancelled"


# ── the same on a real disk ──


async def test_a_conversation_on_sqlite(tmp_path: Path) -> None:
    async with running(tmp_path, store=SqliteStore(tmp_path / "covey.db")) as engine:
        gate = Gate()
        engine.model.answer("first ", *call())
        engine.model.answer("second ", gate)
        await engine.post("a", "a")
        await gate.reached()
        queued = [await engine.post("b"), await engine.post("c", "c")]
        await engine.told_state("c", "queued")
        assert [m.text for m in await engine.workspace.sessions.messages(engine.session_id, "", 0)][-1] == "second "
        gate.open()
        for run_id in ("a", *(receipt.run_id for receipt in queued)):
            assert (await engine.ended(run_id)).state == "completed"
        assert [text for role, text, _ in engine.transcript() if role == "user"] == ["a", "b", "c"]
