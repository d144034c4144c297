"""Calls that a run's end has kept from beginning: nobody is told that they may have had effects."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from covey.engine.turns.last_words import LastWords, cut_off
from covey.lifecycle.decisions import Outcome
from covey.models.base import ModelFailed
from covey.protocol.endings import CallEnd, call_end
from covey.protocol.messages import Session
from covey.store.base import PutSession
from covey.tools.base import ToolOutput
from tests.client.values import some_session
from tests.engine.test_last_words_details import call as call_part
from tests.engine.test_last_words_details import finish, message, run, text
from tests.support.disk import Disk
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


# ── after a crash ──


async def asked_about(engine: Engine) -> str:
    """Until somebody is asked about a call, on disk too; gives the id of the request."""
    await engine.until(lambda: engine.workspace.asks.permissions())
    await engine.until(lambda: any(noted.session.asked for noted in engine.disk.sessions("w")))
    return engine.workspace.asks.permissions()[0].id


async def ends_after_a_crash(directory: Path, left: Disk) -> dict[str, CallEnd]:
    async with running(directory, store=left) as engine:
        await engine.ended("a")
        return ends(engine)


async def test_a_crash_while_somebody_is_asked_kept_the_call_and_those_behind_it_from_beginning(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.tool.harmless = False
        engine.model.answer(*call(), *call(call_id="c2", index=1))
        await engine.post("a", "a")
        await asked_about(engine)
        left = engine.disk.copy()
    assert await ends_after_a_crash(tmp_path, left) == {"c1": CallEnd.NOT_BEGUN, "c2": CallEnd.NOT_BEGUN}


def test_of_calls_with_the_same_id_and_of_other_answers_a_crash_leaves_nothing_known() -> None:
    known = LastWords(run(), Outcome.INTERRUPTED)
    whole = message("a", "assistant", call_part("c1"), call_part("c1"), call_part("c2"), finish("tool_use"))
    noted = structs.replace(some_session(), asked=(("earlier", "c2"), ("a", "c1")))
    assert not cut_off(known, [whole], noted).not_begun
    noted = structs.replace(noted, asked=(("a", "c1", "c2"),))
    assert set(cut_off(known, [whole], noted).not_begun) == {"c2"}


async def test_at_no_commit_a_crash_says_of_a_call_that_ran_that_it_did_not(tmp_path: Path) -> None:
    began_at: list[int] = []
    async with running(tmp_path) as engine:
        disk = engine.disk

        async def act() -> ToolOutput:
            began_at.append(len(disk.copies))
            return ToolOutput("worked")

        engine.tool.act, engine.tool.harmless, disk.keeps_copies = act, False, True
        engine.model.answer(*call())
        await engine.post("a", "a")
        await engine.grant(await asked_about(engine), "allow")
        await engine.ended("a")
    found = []
    for number, left in enumerate(disk.copies, 1):
        if left.run("w", "a") is not None:
            found.append((number, (await ends_after_a_crash(tmp_path, left)).get("c1")))
    assert CallEnd.NOT_BEGUN in [end for number, end in found if number < began_at[0]]
    after = {end for number, end in found if number >= began_at[0]}
    assert after <= {CallEnd.INTERRUPTED, CallEnd.ANSWERED} and CallEnd.INTERRUPTED in after


async def test_a_call_that_was_allowed_begins_only_when_it_is_written_that_it_may_have(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.tool.harmless = False
        engine.model.answer(*call())
        await engine.post("a", "a")
        request_id = await asked_about(engine)
        engine.disk.hold()
        attempts = engine.disk.attempts
        granting = await engine.soon(engine.grant(request_id, "allow"))
        await engine.disk.wait_attempts(attempts + 1)
        await granting
        assert engine.tool.calls == []
        assert await ends_after_a_crash(tmp_path, engine.disk.copy()) == {"c1": CallEnd.NOT_BEGUN}
        engine.disk.release()
        assert (await engine.ended("a")).state == "completed"
        assert len(engine.tool.calls) == 1


async def test_of_a_call_that_nobody_is_asked_about_nothing_more_is_written(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer(*call())
        await engine.post("a", "a")
        await engine.ended("a")
        rows = [
            write.session
            for group in engine.disk.groups
            for change in group
            for write in change.writes
            if isinstance(write, PutSession)
        ]
        assert rows and not any(session.asked for session in rows)


async def test_clients_are_not_told_what_is_noted(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.tool.harmless = False
        engine.model.answer(*call())
        await engine.post("a", "a")
        await asked_about(engine)
        assert [session.asked for session in await engine.workspace.sessions.page(limit=5)] == [None]
        assert not any(told.asked for told in engine.of_type(Session))
        await engine.cancel()
        await engine.ended("a")
