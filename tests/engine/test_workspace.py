"""One workspace: its sessions and messages, waiting for runs, and closing in order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from tests.feed.readers import Reader, part_text
from tests.support.engine import Gate, Stubborn, call, config, running, within

from covey.engine import dispatcher as dispatcher_module
from covey.engine.recorder import Batch
from covey.protocol.errors import BadRequest, Conflict, NotFound, Unavailable
from covey.protocol.messages import Attachment, Message, Session
from covey.protocol.requests import PostPrompt, UpdateSession
from covey.protocol.runs import RunComplete
from covey.store.base import StoreFailed
from covey.store.sqlite import SqliteStore
from covey.tools.base import ToolOutput

pytestmark = pytest.mark.anyio


# ── accepting ──


async def test_what_cannot_be_accepted_is_refused_before_anything_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as engine:
        post = engine.workspace.post_prompt
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
        monkeypatch.setattr(engine.workspace.agent, "choice", lambda: None)
        monkeypatch.setattr(engine.workspace, "reload", AsyncMock())
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
        works = engine.workspace.agent.choice
        monkeypatch.setattr(engine.workspace.agent, "choice", lambda: None)
        reading = Gate()

        async def reload() -> None:
            await reading.pass_through()
            monkeypatch.setattr(engine.workspace.agent, "choice", works)

        monkeypatch.setattr(engine.workspace, "reload", reload)
        posting = asyncio.create_task(engine.post("a", "a"))
        await reading.reached()
        if meanwhile == "closed":
            await within(engine.workspace.close(5.0))
        if meanwhile == "deleted":
            await within(engine.workspace.delete_session(engine.session_id))
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
        receipt = await engine.workspace.post_prompt(PostPrompt(session_id=engine.session_id, attachments=(note,)))
        assert (await engine.ended(receipt.run_id)).state == "completed"


async def test_a_session_that_could_not_be_written_does_not_exist(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.disk.full = True
        with pytest.raises(StoreFailed):
            await engine.workspace.create_session("ghost")
        assert [session.title for session in engine.workspace.sessions.all()] == [""]


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
        changed = await engine.workspace.update_session(engine.session_id, UpdateSession(title="new"))
        assert (changed.title, changed.todos) == ("new", None)
        changed = await engine.workspace.update_session(engine.session_id, UpdateSession(todos=({"a": 1},)))
        assert (changed.title, changed.todos) == ("new", ({"a": 1},))
        assert engine.of_type(Session)[-1].todos == ({"a": 1},)


# ── messages ──


async def test_messages_in_progress_are_exactly_what_the_feed_has_told(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gates = [Gate() for _ in range(6)]
        engine.model.answer("one ", gates[0], "two ", gates[1], *call(), gates[2])
        engine.model.answer(gates[3], "three ", gates[4], "four", gates[5])
        reader = Reader(engine.workspace.feed)
        await engine.post("a", "a")
        for gate in gates:
            await gate.reached()
            await within(engine.workspace._recorder.write(Batch()))
            stored = await engine.workspace.messages(engine.session_id, "", 0)
            reader.take_all()
            told = {m.id: [part_text(part) for part in m.parts] for m in stored if m.role == "assistant"}
            assert told == {key: value for key, value in reader.messages.items() if key in told}
            assert len(stored) == len(reader.messages)
            gate.open()
        await engine.ended("a")
        reader.take_all()
        stored = await engine.workspace.messages(engine.session_id, "", 0)
        assert [m.text for m in stored if m.role == "assistant"] == ["one two ", "three four"]


async def test_messages_can_be_read_while_a_turn_ends(tmp_path: Path) -> None:
    """However a read and the end of a message meet, a message is never both unfinished and not in progress."""
    async with running(tmp_path) as engine:

        async def look() -> None:
            while "a" not in engine.terminals():
                messages = await engine.workspace.messages(engine.session_id, "", 0)
                now = engine.workspace.feed.live
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
        await within(engine.workspace._recorder.write(Batch()))
        engine.workspace.feed.live.clear()
        reads = 0
        read = engine.workspace._read_messages

        async def counting(*args: object) -> list[Message]:
            nonlocal reads
            reads += 1
            return await read(*args)  # type: ignore[arg-type]

        engine.workspace._read_messages = counting  # type: ignore[method-assign, assignment]
        messages = await within(engine.workspace.messages(engine.session_id, "", 0))
        assert [m.role for m in messages] == ["user", "assistant"]
        assert reads < 50


async def test_messages_are_paged(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        for run_id in "abc":
            await engine.post(run_id, run_id)
            await engine.ended(run_id)
        everything = await engine.workspace.messages(engine.session_id, "", 0)
        first = await engine.workspace.messages(engine.session_id, "", 4)
        rest = await engine.workspace.messages(engine.session_id, first[-1].id, 0)
        assert [*first, *rest] == everything
        assert len(everything) == 6


# ── waiting for a run ──


async def test_waiting_ends_with_the_run_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        waiting = [asyncio.create_task(engine.workspace.run("a", 60)) for _ in range(3)]
        waiting[0].cancel()
        await asyncio.sleep(0)
        gate.open()
        assert [(await within(task)).state for task in waiting[1:]] == ["completed", "completed"]
        assert (await engine.workspace.run("a", 60)).state == "completed"
        assert engine.workspace._waiters == {}


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
        waiting = await engine.soon(engine.workspace.run("a", 60))
        await within(engine.journal.read(lambda: None))
        assert not waiting.done()
        assert not (await engine.workspace.run("a")).ended
        engine.disk.release()
        assert (await within(waiting)).state == "completed"


async def test_a_wait_has_an_end_and_an_unknown_run_has_no_wait(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        assert (await engine.workspace.run("a", 0.001)).state == "active"
        with pytest.raises(NotFound) as unknown:
            await engine.workspace.run("nobody", 60)
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
        newest, oldest = await engine.workspace.runs("", "", 10)
        assert (newest.run_id, newest.state) == ("b", "queued")
        assert (oldest.run_id, oldest.waiting_on) == ("a", "model")
        gate.open()
        await engine.ended("b")


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
        deleting = await engine.soon(engine.workspace.delete_session(engine.session_id))
        for use in (engine.post("d", "d"), engine.workspace.messages(engine.session_id, "", 0)):
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
        assert engine.workspace._dispatchers == {}
        run = await engine.workspace.run("c")
        assert (run.state, run.cancelled_by) == ("cancelled", "session_delete")
        assert engine.tool.calls == []
        with pytest.raises(NotFound):
            await engine.workspace.delete_session(engine.session_id)


async def test_a_deleted_session_takes_its_open_question_with_it(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.tool.harmless = False
        engine.model.answer(*call())
        await engine.post("a", "a")
        await engine.until(lambda: list(engine.workspace.permissions.pending))
        await within(engine.workspace.delete_session(engine.session_id))
        assert list(engine.workspace.permissions.pending) == []


async def test_deleting_one_session_leaves_the_others(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate, "answer")
        await engine.post("a", "a")
        await gate.reached()
        other = await engine.workspace.create_session("other")
        await within(engine.workspace.delete_session(other.id))
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
        reader = Reader(engine.workspace.feed)
        at_release: list[object] = []

        async def aclose() -> None:
            at_release.append(([run.ended for run in engine.store.runs("w", "", "", 10)], engine.workspace.feed.closed))

        engine.workspace.agent.aclose = aclose  # type: ignore[method-assign]
        engine.disk.hold()
        closing = await engine.soon(engine.workspace.close(5.0))
        with pytest.raises(Conflict) as refused:
            await engine.post("c", "c")
        assert refused.value.code == "workspace_closing"
        with pytest.raises(Conflict):
            await engine.workspace.create_session("")
        engine.disk.release()
        await within(closing)
        assert at_release == [([True, True], True)]
        assert engine.transcript() == [("user", "a", ""), ("assistant", "half ", "canceled")]
        reader.take_all()
        told = [event.payload.run_id for event in reader.events if isinstance(event.payload, RunComplete)]
        assert told == ["b", "a"]


async def test_scenario_24_closing_between_accept_and_enter(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        end_streams = engine.workspace.feed.close
        told: list[str] = []

        def close() -> None:
            told.extend(engine.terminals())
            end_streams()

        engine.workspace.feed.close = close  # type: ignore[method-assign]
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
        await within(engine.workspace._recorder.write(Batch()))
        assert engine.terminals()["a"].cancelled


async def test_a_cancel_that_cannot_be_written_yet_is_in_force_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher_module, "STORE_WAIT_S", 0.01)
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
        assert [m.text for m in await engine.workspace.messages(engine.session_id, "", 0)][-1] == "second "
        gate.open()
        for run_id in ("a", *(receipt.run_id for receipt in queued)):
            assert (await engine.ended(run_id)).state == "completed"
        assert [text for role, text, _ in engine.transcript() if role == "user"] == ["a", "b", "c"]
