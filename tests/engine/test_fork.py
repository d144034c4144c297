"""Fork: a conversation goes on in a session of its own, whole, and the one it came from stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from covey.protocol.errors import ApiError, NotFound
from covey.protocol.events import Event
from covey.protocol.messages import Message, Session
from covey.protocol.requests import ForkSession, UndoTurns
from covey.store.base import StoreFailed
from tests.engine.test_undo import undoing
from tests.support.engine import Gate, call, within
from tests.support.undoing import Undoing

pytestmark = pytest.mark.anyio


def as_told(message: Message) -> Message:
    """What a copy and its original share."""
    return structs.replace(message, id="", session_id="", run_id=None)


async def go_on(at: Undoing, session_id: str, prompt: str) -> list[str]:
    """The next prompt in the fork; gives what the model saw of the users' words."""
    at.engine.session_id = session_id
    await at.engine.ended((await at.engine.post(prompt)).run_id)
    return at.engine.model.prompts[-1]


async def test_a_fork_has_all_messages_under_new_ids_and_goes_on_by_itself(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {"a.py": "one"})
        source, original = at.engine.session_id, at.messages()
        fork = await at.fork()
        copies = at.messages(fork)
        assert [as_told(m) for m in copies] == [as_told(m) for m in original]
        assert not {m.id for m in copies} & {m.id for m in original}
        assert {(m.session_id, m.run_id) for m in copies} == {(fork, None)}
        session = at.engine.workspace.sessions.get(fork)
        assert (session.forked_from, session.parent_session_id, session.title) == (source, "", "first (fork)")
        assert (session.message_count, session.cost) == (len(original), 0.0)
        assert await go_on(at, fork, "second") == ["first", "second"]
        assert at.messages(source) == original
        assert at.text("a.py") == "one"


async def test_everybody_is_told_in_one_change(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {})
        at.engine.events.clear()
        groups = len(at.engine.disk.groups)
        fork = await at.fork(title="another way")

        def kind(event: Event) -> str:
            return f"{event.type} {event.change}"

        assert [kind(event) for event in at.engine.events] == [
            "session created", "message created", "message created", "session updated"
        ]  # fmt: skip
        assert {event.session_id for event in at.engine.events} == {fork}
        created, told = at.engine.of_type(Session)
        assert (created.title, told.message_count, told.title) == ("another way", 2, "another way")
        (change,) = [change for group in at.engine.disk.groups[groups:] for change in group if change.events]
        assert len(change.events) == 4


async def test_a_fork_ends_at_the_message_but_never_between_a_call_and_its_results(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {})
        at.engine.model.answer("I look", *call(call_id="c1"), *call(call_id="c2", index=1, subject="2"))
        at.engine.model.answer("seen")
        await at.engine.ended((await at.engine.post("second")).run_id)
        prompt, answer, asked, calls, one, two, seen = at.messages()
        ends = {prompt: 1, answer: 2, asked: 3, calls: 6, one: 6, two: 6, seen: 7}
        for message, length in ends.items():
            copies = at.messages(await at.fork(message.id))
            assert [as_told(m) for m in copies] == [as_told(m) for m in at.messages()[:length]]


async def test_a_step_under_way_is_left_out(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        gate = Gate()
        await at.turn("first", {})
        at.engine.model.answer("half an ans", gate)
        run_id = (await at.engine.post("second")).run_id
        await gate.reached()
        fork = await at.fork()
        assert [text for _, text in at.said(fork)] == ["first", "did first", "second"]
        gate.open()
        await at.engine.ended(run_id)


async def test_a_fork_of_a_part_knows_nothing_of_the_rest(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {})
        sessions, source = at.engine.workspace._parts.book, at.engine.session_id
        summary = structs.replace(at.messages()[1], is_summary_message=True)
        sessions.change(source, prompt_tokens=9, cost=1.5, todos=({"content": "x"},), summary_message_id=summary.id)
        first = sessions.get(await at.fork())
        assert (first.prompt_tokens, first.cost, first.todos) == (9, 0.0, ({"content": "x"},))
        assert first.summary_message_id == at.messages(first.id)[1].id
        part = sessions.get(await at.fork(at.messages()[0].id))
        assert (part.prompt_tokens, part.todos, part.summary_message_id) == (0, None, "")
        assert (await at.undo()).removed_messages == 2
        assert sessions.get(source).summary_message_id == ""


async def test_turns_of_a_fork_can_be_undone_but_not_what_was_copied(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {"a.py": "one"})
        at.engine.session_id = await at.fork()
        with pytest.raises(ApiError, match="nothing to undo"):
            await at.undo()
        await at.turn("second", {"a.py": "two"})
        await at.undo()
        assert ([text for _, text in at.said()][-1], at.text("a.py")) == ("did first", "one")


async def test_what_does_not_exist_is_not_found(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {})
        with pytest.raises(NotFound, match="no session"):
            await at.undos.fork("nobody", ForkSession())
        with pytest.raises(NotFound, match="no message"):
            await at.fork("nobody")
        empty = (await at.engine.workspace.sessions.create("")).id
        with pytest.raises(NotFound, match="no message"):
            await at.undos.fork(empty, ForkSession(message_id=at.messages()[0].id))
        assert (await at.undos.fork(empty, ForkSession())).message_count == 0


async def test_a_store_that_cannot_write_leaves_no_session(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {})
        known = at.engine.workspace.sessions.all()
        at.engine.disk.full = True
        with pytest.raises(StoreFailed):
            await at.fork()
        at.engine.disk.full = False
        assert at.engine.workspace.sessions.all() == known


async def test_a_session_that_is_being_undone_is_not_forked_half_way(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {})
        at.engine.disk.hold()
        task = await at.engine.soon(at.undos.undo(at.engine.session_id, UndoTurns()))
        with pytest.raises(ApiError, match="being undone"):
            await at.fork()
        at.engine.disk.release()
        await within(task)


async def test_a_workspace_that_is_closing_neither_undoes_nor_forks(tmp_path: Path) -> None:
    async with undoing(tmp_path) as at:
        await at.turn("first", {})
        await at.engine.close()
        for attempt in (at.undo(), at.fork()):
            with pytest.raises(ApiError) as raised:
                await attempt
            assert raised.value.code == "workspace_closing"
