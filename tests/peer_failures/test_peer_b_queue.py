"""B: what waits, what is folded in, and what is sent twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.engine.agent import ReadyModel
from covey.lifecycle.decisions import QueueChange
from covey.models.base import ModelFailed
from covey.protocol.errors import Conflict, QueueFull
from covey.protocol.runs import Run
from tests.peer_failures.conftest import NewRunId
from tests.peer_failures.lanes import busy, covered, in_a_tool, states
from tests.peer_failures.schedules import at_every_step, later, opened, state_of, with_a_crash_at_every_step
from tests.sim.shell import Shell
from tests.support.engine import Gate, call, config, running, within
from tests.support.server import Workspace


@pytest.mark.anyio
async def test_b1_a_prompt_that_was_accepted_while_busy_is_folded_run_or_dropped(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate, *call())
        await engine.post("a", "a")
        await gate.reached()
        await engine.post("b", "b", mode="fold")
        for run_id in ("c", "d"):
            await engine.post(run_id, run_id)
        await engine.workspace.runs.cancel("d")
        gate.open()
        assert await states(engine, "abcd") == ["completed", "folded", "completed", "cancelled"]
        assert set(engine.terminals()) == set("abcd")


def test_b2_a_prompt_in_the_instant_in_which_the_turn_ends_is_taken_once() -> None:
    became = set()

    async def scenario(shell: Shell, step: int) -> None:
        session = await opened(shell)
        await shell.post(session, "tool", run_id="a")
        receipt = await later(step, shell.post(session, "more"))
        await shell.settle()
        became.add(await state_of(shell, receipt.run_id))
        texts = [message.text for message in shell.store.messages("w", session, "", 0)]
        assert texts.count("more") == 1

    at_every_step(scenario)
    assert became == {"folded", "completed"}


@pytest.mark.anyio
async def test_b3_the_answer_says_whether_a_prompt_waits_for_a_turn_or_is_one(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        await in_a_tool(engine, gate)
        assert (await engine.post("b", "b", mode="fold")).state == "queued"
        gate.open()
        await engine.ended("b")
        assert next(run.folded_into for run in engine.of_type(Run) if run.state == "folded") == "a"
        assert (await engine.post("c", "c", mode="fold")).state == "active"
        assert (await engine.ended("c")).folded_into is None


@pytest.mark.anyio
@pytest.mark.parametrize("cancelled", [False, True])
async def test_b4_what_is_to_be_folded_waits_until_a_model_call_includes_it(tmp_path: Path, cancelled: bool) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        await in_a_tool(engine, gate)
        await engine.post("b", "b", mode="fold")
        await engine.told_state("b", "queued")
        assert await engine.workspace.runs.queued(engine.session_id) == ["b"]
        if cancelled:
            await engine.cancel()
        gate.open()
        assert (await engine.ended("b")).state == ("cancelled" if cancelled else "folded")
        assert engine.model.prompts == ([["a"]] if cancelled else [["a"], ["a", "b"]])


def test_b5_a_crash_between_the_queue_and_the_start_runs_a_prompt_once() -> None:
    async def scenario(shell: Shell) -> None:
        session = await opened(shell)
        for prompt in ("first", "second", "third"):
            await shell.post(session, prompt, run_id=prompt)
        await shell.settle()

    with_a_crash_at_every_step(scenario)


@pytest.mark.anyio
async def test_b6_a_run_that_cannot_start_ends_and_the_next_one_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with busy(tmp_path, "b", "c") as (engine, gate):
        works = engine.workspace._parts.agent.model
        failures = iter([ModelFailed("the key has expired")])

        def model(reference: str) -> ReadyModel:
            for failure in failures:
                raise failure
            return works(reference)

        monkeypatch.setattr(engine.workspace._parts.agent, "model", model)
        gate.open()
        assert await states(engine, "abc") == ["completed", "failed", "completed"]
        assert list(engine.terminals()) == ["a", "b", "c"]
        assert [prompts[-1] for prompts in engine.model.prompts] == ["a", "c"]


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["by itself", "by a cancel"])
async def test_b7_the_next_run_starts_when_the_lane_becomes_free_and_nothing_else_happens(
    tmp_path: Path, how: str
) -> None:
    async with busy(tmp_path, "b") as (engine, gate):
        if how == "by a cancel":
            await engine.workspace.runs.cancel("a")
        else:
            gate.open()
        assert (await engine.ended("b")).state == "completed"


def test_b8_an_edit_that_meets_the_start_is_what_runs_or_is_refused() -> None:
    ran = set()

    async def scenario(shell: Shell, step: int) -> None:
        session = await opened(shell)
        await shell.post(session, "tool", run_id="a")
        await shell.post(session, "old", run_id="b")
        try:
            lane = shell.workspace._parts.lanes.open(session)
            expected = (await later(step, lane.edit("b", QueueChange("new")))).prompt
        except Conflict as refused:
            expected = "old" if refused.code == "too_late" else refused.code
        await shell.settle()
        assert shell.model.calls == ["tool", expected]
        assert (await shell.workspace.runs.get("b")).prompt == expected
        ran.add(expected)

    at_every_step(scenario)
    assert ran == {"old", "new"}


@pytest.mark.anyio
async def test_b9_a_deleted_session_leaves_no_run_behind(tmp_path: Path) -> None:
    async with busy(tmp_path, "b", "c") as (engine, _):
        await within(engine.workspace.sessions.delete(engine.session_id))
        assert {run_id: terminal.cancelled for run_id, terminal in engine.terminals().items()} == dict.fromkeys(
            "abc", True
        )
        assert engine.store.open_runs("w") == []
        assert not engine.workspace.is_busy


def test_b10_a_prompt_that_is_sent_again_because_its_answer_was_lost_is_one_run(
    workspace: Workspace, new_run_id: NewRunId
) -> None:
    session, run_id = workspace.session(), new_run_id()
    body = {"session_id": session, "prompt": "hello", "run_id": run_id}
    workspace.begin("POST", "/agent", body).abandon()
    answers = [workspace.request("POST", "/agent", body) for _ in range(3)]
    assert {(answer.status, answer.body["run_id"], answer.body["seq"]) for answer in answers} == {
        (202, run_id, answers[0].body["seq"])
    }
    workspace.ended(run_id)
    assert [run["run_id"] for run in workspace.get(f"/runs?session_id={session}")] == [run_id]
    assert len(workspace.messages(session)) == 2


def test_b11_the_same_id_with_another_body_is_refused(workspace: Workspace, new_run_id: NewRunId) -> None:
    session, run_id = workspace.session(), new_run_id()
    workspace.prompt(session, "hello", run_id=run_id)
    for other in ({"prompt": "goodbye"}, {"mode": "fold"}, {"session_id": workspace.session()}):
        body = {"session_id": session, "prompt": "hello", "run_id": run_id, **other}
        workspace.request("POST", "/agent", body).refused(409, "run_id_reused")
    workspace.ended(run_id)


@pytest.mark.anyio
async def test_b12_a_prompt_that_is_sent_again_after_a_restart_is_still_one_run(tmp_path: Path) -> None:
    async with busy(tmp_path, "b") as (engine, gate):
        first = [await engine.post(run_id, run_id) for run_id in "ab"]
        copy = engine.disk.copy()
        gate.open()
    async with running(tmp_path, store=copy) as again:
        second = [await again.post(run_id, run_id) for run_id in "ab"]
        assert [receipt.seq for receipt in second] == [receipt.seq for receipt in first]
        assert await states(again, "ab") == ["interrupted", "completed"]
        assert again.model.prompts == [["a", "b"]]
        with pytest.raises(Conflict, match="was used for another prompt"):
            await again.post("something else", "a")


@pytest.mark.anyio
async def test_b13_what_a_stop_means_for_the_queue_is_the_callers_choice_and_is_told(tmp_path: Path) -> None:
    async with busy(tmp_path, "b", "c") as (engine, _):
        assert covered(await engine.workspace.runs.cancel("a")) == {"a": "active"}
        assert await states(engine, "abc") == ["cancelled", "completed", "completed"]
    async with busy(tmp_path, "b", "c") as (engine, _):
        assert covered(await engine.cancel()) == {"a": "active", "b": "queued", "c": "queued"}
        assert await states(engine, "abc") == ["cancelled"] * 3
        assert all(terminal.cancelled for terminal in engine.terminals().values())


@pytest.mark.anyio
async def test_b14_a_full_queue_refuses_and_says_when_to_try_again(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(queue=1)) as engine:
        gate = Gate()
        await in_a_tool(engine, gate)
        await engine.post("b", "b")
        with pytest.raises(QueueFull) as refused:
            await engine.post("c", "c")
        assert (refused.value.status, refused.value.code) == (429, "queue_full")
        assert refused.value.retry_after
        assert engine.store.run("w", "c") is None
        gate.open()
        await engine.ended("b")
        await engine.post("c", "c")
        assert (await engine.ended("c")).state == "completed"
