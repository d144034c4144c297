"""One workspace: accepting prompts, reading messages, and waiting for runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from covey.engine.recorder import Batch
from covey.protocol.errors import BadRequest, Conflict, NotFound
from covey.protocol.messages import Attachment, Message, Session
from covey.protocol.requests import PostPrompt, UpdateSession
from covey.store.base import StoreFailed
from tests.feed.readers import Reader, part_text
from tests.support.engine import Gate, call, running, within

pytestmark = pytest.mark.anyio


# ── accepting ──


async def test_what_cannot_be_accepted_is_refused_before_anything_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as engine:
        post = engine.workspace.runs.post
        picture = Attachment(file_path="", file_name="a.png", mime_type="image/png", content=b"x")
        for request, code in [
            (PostPrompt(prompt="x"), "invalid_request"),
            (PostPrompt(session_id=engine.session_id, prompt=" \n"), "empty_prompt"),
            (PostPrompt(session_id=engine.session_id, attachments=(picture,)), "empty_prompt"),
        ]:
            with pytest.raises(BadRequest) as refused:
                await post(request)
            assert refused.value.code == code
        with pytest.raises(NotFound) as unknown:
            await post(PostPrompt(session_id="nobody", prompt="x"))
        assert unknown.value.code == "session_not_found"
        monkeypatch.setattr(engine.workspace._parts.agent, "choice", lambda reference="": None)
        monkeypatch.setattr(engine.workspace.runs, "_reload", AsyncMock())
        with pytest.raises(BadRequest) as no_model:
            await engine.post("x")
        assert no_model.value.code == "no_model"
        assert engine.store.runs("w", "", "", 10) == []


@pytest.mark.parametrize("meanwhile", ["found", "closed", "deleted"])
async def test_a_model_that_is_looked_for_once_more_does_not_open_a_back_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """Reading the configuration takes a while: what was checked before it has to be checked again."""
    async with running(tmp_path) as engine:
        works = engine.workspace._parts.agent.choice
        monkeypatch.setattr(engine.workspace._parts.agent, "choice", lambda reference="": None)
        reading = Gate()

        async def reload() -> None:
            await reading.pass_through()
            monkeypatch.setattr(engine.workspace._parts.agent, "choice", works)

        monkeypatch.setattr(engine.workspace.runs, "_reload", reload)
        posting = asyncio.create_task(engine.post("a", "a"))
        await reading.reached()
        if meanwhile == "closed":
            await within(engine.workspace.close(5.0))
        if meanwhile == "deleted":
            await within(engine.workspace.sessions.delete(engine.session_id))
        reading.open()
        if meanwhile == "found":
            await posting
            assert (await engine.ended("a")).state == "completed"
        else:
            with pytest.raises((Conflict, NotFound)):
                await posting
            assert engine.store.runs("w", "", "", 10) == []


async def test_a_text_file_is_enough_of_a_prompt(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        note = Attachment(file_path="", file_name="a.md", mime_type="text/markdown", content=b"# hi")
        receipt = await engine.workspace.runs.post(PostPrompt(session_id=engine.session_id, attachments=(note,)))
        assert (await engine.ended(receipt.run_id)).state == "completed"


async def test_a_session_that_could_not_be_written_does_not_exist(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.disk.full = True
        with pytest.raises(StoreFailed):
            await engine.workspace.sessions.create("ghost")
        assert [session.title for session in engine.sessions()] == [""]


async def test_a_session_is_named_after_its_first_prompt_and_counts_its_messages(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.post("Fix the tests\nplease", "a")
        await engine.ended("a")
        await engine.post("More", "b")
        await engine.ended("b")
        session = engine.workspace.sessions.get(engine.session_id)
        assert (session.title, session.message_count) == ("Fix the tests", 4)
        stored = {row.session.id: row.session for row in engine.store.sessions("w")}[engine.session_id]
        assert (stored.title, stored.message_count) == ("Fix the tests", 4)


async def test_changing_a_session_changes_only_what_is_given(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        changed = await engine.workspace.sessions.update(engine.session_id, UpdateSession(title="new"))
        assert (changed.title, changed.todos) == ("new", None)
        changed = await engine.workspace.sessions.update(engine.session_id, UpdateSession(todos=({"a": 1},)))
        assert (changed.title, changed.todos) == ("new", ({"a": 1},))
        assert engine.of_type(Session)[-1].todos == ({"a": 1},)


# ── messages ──


async def test_messages_in_progress_are_exactly_what_the_feed_has_told(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gates = [Gate() for _ in range(6)]
        engine.model.answer("one ", gates[0], "two ", gates[1], *call(), gates[2])
        engine.model.answer(gates[3], "three ", gates[4], "four", gates[5])
        reader = Reader(engine.workspace._parts.feed)
        await engine.post("a", "a")
        for gate in gates:
            await gate.reached()
            await within(engine.workspace._parts.recorder.write(Batch()))
            stored = await engine.workspace.sessions.messages(engine.session_id, "", 0)
            reader.take_all()
            told = {m.id: [part_text(part) for part in m.parts] for m in stored if m.role == "assistant"}
            assert told == {key: value for key, value in reader.messages.items() if key in told}
            assert len(stored) == len(reader.messages)
            gate.open()
        await engine.ended("a")
        reader.take_all()
        stored = await engine.workspace.sessions.messages(engine.session_id, "", 0)
        assert [m.text for m in stored if m.role == "assistant"] == ["one two ", "three four"]


async def test_messages_can_be_read_while_a_turn_ends(tmp_path: Path) -> None:
    """However a read and the end of a message meet, a message is never both unfinished and not in progress."""
    async with running(tmp_path) as engine:

        async def look() -> None:
            while "a" not in engine.terminals():
                messages = await engine.workspace.sessions.messages(engine.session_id, "", 0)
                now = engine.workspace._parts.feed.live
                assert all(m.finish or m.role != "assistant" or m.id in now for m in messages)

        engine.model.answer("x " * 50, *call())
        looking = [asyncio.create_task(look()) for _ in range(5)]
        await engine.post("a", "a")
        await within(asyncio.gather(*looking))


async def test_a_message_whose_end_the_disk_refuses_does_not_make_readers_spin(tmp_path: Path) -> None:
    """After a crash on a full disk: the answer is half written, and nothing of it is in progress."""
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer("half ", gate)
        await engine.post("a", "a")
        await gate.reached()
        await within(engine.workspace._parts.recorder.write(Batch()))
        engine.workspace._parts.feed.live.clear()
        reads = 0
        read = engine.store.messages

        def counting(workspace_id: str, session_id: str, after: str, limit: int) -> list[Message]:
            nonlocal reads
            reads += 1
            return read(workspace_id, session_id, after, limit)

        engine.store.messages = counting  # type: ignore[method-assign]
        messages = await within(engine.workspace.sessions.messages(engine.session_id, "", 0))
        assert [m.role for m in messages] == ["user", "assistant"]
        assert reads < 50


async def test_messages_are_paged(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        for run_id in "abc":
            await engine.post(run_id, run_id)
            await engine.ended(run_id)
        everything = await engine.workspace.sessions.messages(engine.session_id, "", 0)
        first = await engine.workspace.sessions.messages(engine.session_id, "", 4)
        rest = await engine.workspace.sessions.messages(engine.session_id, first[-1].id, 0)
        assert [*first, *rest] == everything
        assert len(everything) == 6
        last = await engine.workspace.sessions.messages_before(engine.session_id, "", 2)
        before = await engine.workspace.sessions.messages_before(engine.session_id, last[0].id, 4)
        assert [*before, *last] == everything


# ── waiting for a run ──


async def test_waiting_ends_with_the_run_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        waiting = [asyncio.create_task(engine.workspace.runs.get("a", 60)) for _ in range(3)]
        waiting[0].cancel()
        await asyncio.sleep(0)
        gate.open()
        assert [(await within(task)).state for task in waiting[1:]] == ["completed", "completed"]
        assert (await engine.workspace.runs.get("a", 60)).state == "completed"
        assert engine.workspace.runs._waiters._waiters == {}


async def test_a_run_whose_end_is_decided_but_not_written_is_waited_for(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        engine.disk.hold()
        attempts = engine.disk.attempts
        gate.open()
        await engine.disk.wait_attempts(attempts + 1)
        waiting = await engine.soon(engine.workspace.runs.get("a", 60))
        await within(engine.journal.read(lambda: None))
        assert not waiting.done()
        assert not (await engine.workspace.runs.get("a")).ended
        engine.disk.release()
        assert (await within(waiting)).state == "completed"


async def test_a_wait_has_an_end_and_an_unknown_run_has_no_wait(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        assert (await engine.workspace.runs.get("a", 0.001)).state == "active"
        with pytest.raises(NotFound) as unknown:
            await engine.workspace.runs.get("nobody", 60)
        assert unknown.value.code == "run_not_found"
        gate.open()
        await engine.ended("a")


async def test_runs_are_listed_as_they_are_now(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        for run_id in "ab":
            await engine.post(run_id, run_id)
        await gate.reached()
        newest, oldest = await engine.workspace.runs.newest("", "", 10)
        assert (newest.run_id, newest.state) == ("b", "queued")
        assert (oldest.run_id, oldest.waiting_on) == ("a", "model")
        gate.open()
        await engine.ended("b")
