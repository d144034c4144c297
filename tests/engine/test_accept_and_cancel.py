"""Prompts and cancels that meet: the scenarios of the life of a run, with the disk held so that luck has no part."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from covey.lifecycle.decisions import QueueChange
from covey.protocol.errors import Conflict, QueueFull
from covey.protocol.events import AgentEvent
from covey.protocol.messages import Message
from covey.protocol.runs import CancelReceipt, Run
from covey.store.base import StoreFailed
from tests.support.engine import Gate, call, config, running, within

pytestmark = pytest.mark.anyio


def covered(receipt: CancelReceipt) -> dict[str, str]:
    return {run.run_id: run.state_found for run in receipt.covered}


async def test_scenario_02_cancel_before_the_run_enters(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.disk.hold()
        posting = await engine.soon(engine.post("hello", "a"))
        cancelling = await engine.soon(engine.cancel())
        engine.disk.release()
        assert (await within(posting)).state in ("accepted", "cancelled")
        assert covered(await within(cancelling)) == {"a": "accepted"}
        run = await engine.ended("a")
        assert (run.state, run.cancelled_by) == ("cancelled", "session_cancel")
        assert engine.transcript() == [("user", "hello", ""), ("assistant", "", "canceled")]
        assert engine.model.requests == []
        assert engine.of_type(AgentEvent) == []


async def test_scenario_04_cancel_when_active_before_there_is_an_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        reading = Gate()

        async def read_messages(session_id: str, since: str) -> list[Message]:
            await reading.pass_through()
            return []

        parts = engine.workspace._parts.turns
        object.__setattr__(parts, "read_messages", read_messages)
        await engine.post("hello", "a")
        await reading.reached()
        assert [message.role for message in engine.messages()] == ["user"]
        assert covered(await engine.cancel()) == {"a": "active"}
        assert (await engine.ended("a")).state == "cancelled"
        assert engine.transcript() == [("user", "hello", ""), ("assistant", "", "canceled")]
        assert engine.of_type(AgentEvent) == []


async def test_scenario_05_one_cancel_covers_all_that_have_not_entered(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.disk.hold()
        posting = [await engine.soon(engine.post(prompt, prompt)) for prompt in ("a", "b")]
        cancelling = await engine.soon(engine.cancel())
        engine.disk.release()
        await asyncio.gather(*posting)
        assert covered(await cancelling) == {"a": "accepted", "b": "accepted"}
        for run_id in ("a", "b"):
            assert (await engine.ended(run_id)).state == "cancelled"
        assert engine.transcript() == [
            ("user", "a", ""), ("assistant", "", "canceled"), ("user", "b", ""), ("assistant", "", "canceled"),
        ]  # fmt: skip
        assert await engine.workspace.runs.queued(engine.session_id) == []
        assert engine.model.requests == []


async def test_scenario_06_a_prompt_after_the_cancel_is_not_touched_by_it(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.disk.hold()
        posting = [await engine.soon(engine.post(prompt, prompt)) for prompt in ("a", "b")]
        cancelling = await engine.soon(engine.cancel())
        posting.append(await engine.soon(engine.post("c", "c")))
        engine.disk.release()
        await asyncio.gather(*posting)
        assert covered(await cancelling) == {"a": "accepted", "b": "accepted"}
        assert [(await engine.ended(run_id)).state for run_id in "abc"] == ["cancelled", "cancelled", "completed"]
        assert [text for _, text, _ in engine.transcript()] == ["a", "", "b", "", "c", "done"]
        assert engine.model.prompts[-1][-1] == "c"


async def test_scenario_07_a_follow_up_that_has_not_entered_is_cancelled_with_the_active_run(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer("half ", gate)
        await engine.post("a", "a")
        await gate.reached()
        engine.disk.hold()
        posting = await engine.soon(engine.post("b", "b"))
        cancelling = await engine.soon(engine.cancel())
        engine.disk.release()
        await within(posting)
        assert covered(await within(cancelling)) == {"a": "active", "b": "accepted"}
        assert [(await engine.ended(run_id)).state for run_id in "ab"] == ["cancelled", "cancelled"]
        assert engine.transcript() == [
            ("user", "a", ""), ("assistant", "half ", "canceled"), ("user", "b", ""), ("assistant", "", "canceled"),
        ]  # fmt: skip
        assert "queued" not in [run.state for run in engine.of_type(Run) if run.run_id == "b"]
        assert len(engine.model.requests) == 1


async def test_scenario_08_each_with_a_run_id_gets_a_turn_of_its_own(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate, "one")
        engine.model.answer("two")
        await engine.post("a", "a")
        await gate.reached()
        await engine.post("b", "b")
        await engine.told_state("b", "queued")
        gate.open()
        assert [(await engine.ended(run_id)).text for run_id in "ab"] == ["one", "two"]
        assert [text for _, text, _ in engine.transcript()] == ["a", "one", "b", "two"]


async def test_scenario_09_follow_ups_without_a_run_id_are_folded_at_the_next_step(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer("first ", gate, *call())
        engine.model.answer("second")
        host = await engine.post("a")
        await gate.reached()
        followers = [await engine.post("b"), await engine.post("c")]
        gate.open()
        run = await engine.ended(host.run_id)
        assert run.text == "second"
        for follower in followers:
            folded = await engine.ended(follower.run_id)
            assert (folded.state, folded.folded_into, folded.text) == ("folded", host.run_id, "second")
        roles = [role for role, _, _ in engine.transcript()]
        assert roles == ["user", "assistant", "tool", "user", "user", "assistant"]
        assert engine.model.prompts == [["a"], ["a", "b", "c"]]
        order = [terminal.run_id for terminal in engine.terminals().values()]
        assert order == [host.run_id, *(follower.run_id for follower in followers)]


async def test_folding_is_one_change_with_its_prompts_and_the_answer_behind_them(tmp_path: Path) -> None:
    """A crash leaves a prompt queued, or folded and in the conversation: nothing in between."""
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate, *call())
        await engine.post("a")
        await gate.reached()
        engine.disk.keeps_copies = True
        follower = await engine.post("b")
        gate.open()
        await engine.ended(follower.run_id)
        for copy in engine.disk.copies:
            row = copy.run("w", follower.run_id)
            assert row is not None
            mine = [m.role for m in copy.messages("w", engine.session_id, "", 0) if m.run_id == follower.run_id]
            assert mine == (["user"] if row.run.state == "folded" else [])
        assert len({row.run.state for copy in engine.disk.copies if (row := copy.run("w", follower.run_id))}) == 3


async def test_scenario_10_a_cancel_drops_the_queue_up_to_its_mark(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        for run_id in ("b", "c"):
            await engine.post(run_id, run_id)
        await engine.told_state("c", "queued")
        engine.disk.hold()
        cancelling = await engine.soon(engine.cancel())
        posting = await engine.soon(engine.post("d", "d"))
        engine.disk.release()
        await within(posting)
        assert covered(await within(cancelling)) == {"a": "active", "b": "queued", "c": "queued"}
        states = [(await engine.ended(run_id)).state for run_id in "abcd"]
        assert states == ["cancelled", "cancelled", "cancelled", "completed"]
        assert [text for role, text, _ in engine.transcript() if role == "user"] == ["a", "d"]


async def test_scenario_15_a_model_that_cannot_be_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as engine:

        def broken(reference: str) -> None:
            raise ValueError("no such model")

        monkeypatch.setattr(engine.workspace._parts.agent, "model", broken)
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert run.state == "failed"
        assert "no such model" in (run.error or "")
        (notice,) = engine.of_type(AgentEvent)
        assert (notice.type, notice.run_id, notice.error) == ("error", "a", run.error)
        assert engine.terminals()["a"].error == run.error
        assert engine.transcript() == [("user", "a", ""), ("assistant", "", "error")]


async def test_a_session_that_was_never_used_can_be_cancelled_and_then_works(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        receipt = await engine.cancel()
        assert covered(receipt) == {}
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"


async def test_cancelling_twice_is_harmless_and_both_say_what_they_found(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        first, second = await asyncio.gather(engine.cancel(), engine.cancel())
        assert covered(first) == covered(second) == {"a": "active"}
        assert (await engine.ended("a")).state == "cancelled"
        assert covered(await engine.cancel()) == {}


async def test_a_cancel_of_one_run_leaves_its_neighbours(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        for run_id in "abc":
            await engine.post(run_id, run_id)
        await gate.reached()
        assert covered(await engine.workspace.runs.cancel("b")) == {"b": "queued"}
        assert covered(await engine.workspace.runs.cancel("a")) == {"a": "active"}
        assert [(await engine.ended(run_id)).state for run_id in "abc"] == ["cancelled", "cancelled", "completed"]


async def test_a_cancel_may_overtake_its_prompt(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        assert covered(await engine.workspace.runs.cancel("early")) == {"early": "unknown"}
        await engine.post("x", "early")
        await engine.post("y", "other")
        assert (await engine.ended("early")).state == "cancelled"
        assert (await engine.ended("other")).state == "completed"
        assert engine.model.prompts == [["x", "y"]]


async def test_a_run_id_posted_ten_times_at_once_is_one_run(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        receipts = await asyncio.gather(*(engine.post("same", "x") for _ in range(10)))
        assert {(receipt.run_id, receipt.seq) for receipt in receipts} == {("x", receipts[0].seq)}
        await engine.ended("x")
        again = await engine.post("same", "x")
        assert (again.seq, again.state) == (receipts[0].seq, "completed")
        with pytest.raises(Conflict, match="was used for another prompt"):
            await engine.post("other", "x")
        assert len(engine.model.requests) == 1


async def test_a_full_queue_refuses_and_says_when_to_come_back(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(queue=2)) as engine:
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        await engine.post("b", "b")
        await engine.post("c", "c")
        with pytest.raises(QueueFull) as refused:
            await engine.post("d", "d")
        assert refused.value.retry_after
        assert (await engine.post("c", "c")).state == "queued"  # the same id is not one more
        gate.open()
        for run_id in "abc":
            await engine.ended(run_id)
        await engine.post("d", "d")
        await engine.ended("d")


async def test_what_the_disk_refuses_was_never_accepted(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.disk.full = True
        with pytest.raises(StoreFailed):
            await engine.post("a", "a")
        assert not engine.workspace.is_busy
        assert engine.quiet
        engine.disk.full = False
        await engine.post("b", "b")
        await engine.ended("b")
        assert [run.run_id for run in engine.store.runs("w", "", "", 10)] == ["b"]


async def test_a_queued_prompt_can_be_changed_and_dropped_until_it_runs(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        for run_id in "abc":
            await engine.post(run_id, run_id)
        await gate.reached()
        lane = engine.workspace._parts.lanes.open(engine.session_id)
        assert lane.queued_prompts() == ["b", "c"]
        assert (await lane.edit("b", QueueChange("better"))).prompt == "better"
        assert covered(await lane.remove("c")) == {"c": "queued"}
        for run_id in ("a", "c", "unknown"):
            with pytest.raises(Conflict) as late:
                await lane.edit(run_id, QueueChange("x"))
            assert late.value.code == "too_late"
            with pytest.raises(Conflict):
                await lane.remove(run_id)
        gate.open()
        await engine.ended("b")
        assert engine.model.prompts[-1][-1] == "better"
        assert (await engine.ended("c")).cancelled_by == "queue_remove"


async def test_clearing_the_queue_leaves_the_active_run(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        for run_id in "abc":
            await engine.post(run_id, run_id)
        await gate.reached()
        receipt = await engine.workspace.runs.clear_queue(engine.session_id)
        assert covered(receipt) == {"b": "queued", "c": "queued"}
        gate.open()
        assert [(await engine.ended(run_id)).state for run_id in "abc"] == ["completed", "cancelled", "cancelled"]
