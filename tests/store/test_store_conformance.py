"""What every store must do. A new one is added to `store` below and has to pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from covey.protocol.events import Event, created, encode_event, updated
from covey.protocol.growth import TextPiece
from covey.protocol.messages import (
    Attachment,
    Finish,
    FinishPart,
    Message,
    Part,
    Role,
    Session,
    ShellCommand,
    ShellCommandPart,
    Text,
    TextPart,
)
from covey.protocol.runs import Run
from covey.store.base import (
    AppendText,
    Change,
    DropSession,
    InsertRun,
    LogBounds,
    PutEarlyCancel,
    PutMessage,
    PutSession,
    PutWorkspace,
    RunExists,
    RunRow,
    SetMark,
    Store,
    UpdateRun,
    WorkspaceRow,
    Write,
)
from covey.store.sqlite import SqliteStore
from tests.support.memory_store import MemoryStore


def on_postgres(directory: Path) -> Store:
    """A real server, from a wheel, which all tests share."""
    from tests.support.claiming_store import ClaimingStore
    from tests.support.postgres import postgres

    return ClaimingStore(postgres().new_database())


MAKERS: dict[str, Callable[[Path], Store]] = {
    "sqlite": lambda directory: SqliteStore(directory / "covey.db"),
    "memory": lambda directory: MemoryStore(),
    "postgres": on_postgres,
}
STORES = list(MAKERS)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = MAKERS[request.param](tmp_path)
    yield made
    made.close()


def change(*writes: Write, events: tuple[Event, ...] = (), workspace: str = "w") -> Change:
    return Change(workspace, writes, events, tuple(encode_event(event) for event in events))


def session(session_id: str = "s", updated_at: int = 1) -> Session:
    return Session(
        id=session_id, parent_session_id="", title="t", message_count=0, prompt_tokens=0, completion_tokens=0,
        summary_message_id="", cost=0.0, created_at=1, updated_at=updated_at, is_busy=False, attached_clients=0,
    )  # fmt: skip


def message(message_id: str = "m", *parts: Part, session_id: str = "s", run_id: str = "r") -> Message:
    return Message(
        id=message_id, role="assistant", session_id=session_id, parts=parts, model="", provider="", created_at=1,
        updated_at=1, run_id=run_id,
    )  # fmt: skip


def run(run_id: str = "r", seq: int = 1, session_id: str = "s") -> Run:
    return Run(
        run_id=run_id, session_id=session_id, seq=seq, state="accepted", mode="fold", prompt="p", accepted_at=1.5
    )


def text(value: str) -> TextPart:
    return TextPart(data=Text(text=value))


def test_events_are_numbered_without_gaps_for_each_workspace(store: Store) -> None:
    one, two = created(session("a")), updated(session("b"))
    assert store.commit([change(events=(one, two)), change(events=(two,)), change(events=(one,), workspace="x")]) == [
        1,
        3,
        1,
    ]
    assert store.commit([change()]) == [4]
    assert store.commit([change(events=(one,))]) == [4]
    assert store.log_bounds("w") == LogBounds(0, 4)
    assert store.log_bounds("x") == LogBounds(0, 1)
    assert store.log_bounds("nobody") == LogBounds(0, 0)
    assert [event.seq for event in store.events("w", 1, 3, "", 100)] == [2, 3]
    assert store.events("w", 0, 4, "", 1)[0].encoded == encode_event(one)
    assert store.next_size("w", 0, 4, "") == len(encode_event(one))
    assert store.next_size("w", 4, 4, "") == 0


def test_events_of_one_session_come_with_those_of_none(store: Store) -> None:
    everywhere = Event("updated", session("a"), "")
    store.commit([change(events=(created(session("a")), created(session("b")), everywhere))])
    assert [event.seq for event in store.events("w", 0, 9, "b", 100)] == [2, 3]
    assert store.next_size("w", 0, 9, "b") == len(encode_event(created(session("b"))))


def test_trimming_keeps_the_newest_and_the_numbering(store: Store) -> None:
    event = created(session())
    store.commit([change(events=(event,) * 10)])
    store.trim_events("w", 3)
    assert store.log_bounds("w") == LogBounds(7, 10)
    store.trim_events("w", 0)
    assert store.log_bounds("w") == LogBounds(9, 10)
    assert store.commit([change(events=(event,))]) == [11]


def test_a_run_is_inserted_once_and_nothing_is_written_beside_a_second_one(store: Store) -> None:
    row = RunRow(run(), "digest", (Attachment(file_path="p", file_name="n", mime_type="text/plain", content=b"\0x"),))
    again = InsertRun(RunRow(run(seq=2), "other"))
    results = store.commit(
        [
            change(InsertRun(row), events=(created(run()),)),
            change(again, PutSession(session()), events=(created(run()),)),
            change(events=(created(run()),)),
        ]
    )
    assert results[0] == 1
    assert isinstance(results[1], RunExists)
    assert results[2] == 2
    assert store.run("w", "r") == row
    assert store.run("w", "unknown") is None
    assert store.run("other", "r") is None
    assert store.sessions("w") == []


def test_a_run_changes_and_ends(store: Store) -> None:
    store.commit([change(InsertRun(RunRow(run(), "d"))), change(InsertRun(RunRow(run("r2", 2), "d")))])
    assert [row.run.run_id for row in store.open_runs("w")] == ["r", "r2"]
    queued = structs.replace(run(), state="queued", cancelled_by="session_cancel")
    store.commit([change(UpdateRun(queued))])
    assert store.run("w", "r") == RunRow(queued, "d", ())
    ended = structs.replace(run(), state="cancelled", ended_at=2.5)
    store.commit([change(UpdateRun(ended))])
    assert [row.run.run_id for row in store.open_runs("w")] == ["r2"]
    assert [r.run_id for r in store.runs("w", "", "", 10)] == ["r2", "r"]
    assert [r.run_id for r in store.runs("w", "s", "cancelled", 10)] == ["r"]
    assert store.runs("w", "another", "", 10) == []
    assert len(store.runs("w", "", "", 1)) == 1
    assert store.last_run_seq("w") == 2
    assert store.last_run_seq("nobody") == 0


def test_messages_keep_their_order_when_they_change(store: Store) -> None:
    store.commit([change(PutMessage(message("a"))), change(PutMessage(message("b"))), change(PutMessage(message("c")))])
    finish = FinishPart(data=Finish(reason="end_turn", time=3))
    store.commit([change(PutMessage(message("a", text("hi"), finish)))])
    found = store.messages("w", "s", "", 0)
    assert [m.id for m in found] == ["a", "b", "c"]
    assert found[0].text == "hi"
    assert found[0].finish
    assert [m.id for m in store.messages("w", "s", "a", 1)] == ["b"]
    assert store.messages("w", "another", "", 0) == []


def test_messages_since_one_come_with_the_answers_before_it_in_its_turn(store: Store) -> None:
    def said(message_id: str, role: Role, session_id: str = "s") -> PutMessage:
        return PutMessage(structs.replace(message(message_id, session_id=session_id), role=role))

    turns: list[tuple[str, Role]] = [
        ("u1", "user"), ("a1", "assistant"), ("u2", "user"), ("a2", "assistant"), ("t2", "tool"), ("a3", "assistant"),
        ("sum", "assistant"), ("t3", "tool"), ("u3", "user"), ("a4", "assistant"),
    ]  # fmt: skip
    for one in turns:
        store.commit([change(said(*one), said(f"{one[0]} elsewhere", one[1], "other"))])

    def since(message_id: str) -> str:
        return " ".join(found.id for found in store.messages_since("w", "s", message_id))

    assert since("sum") == "a2 a3 sum t3 u3 a4"
    assert since("u2") == "a1 u2 a2 t2 a3 sum t3 u3 a4"
    assert since("a4") == "a4"
    assert since("u1") == since("") == since("gone") == since("sum elsewhere") == " ".join(name for name, _ in turns)
    assert store.messages_since("x", "s", "sum") == []
    store.commit([change(AppendText("a4", (TextPiece(0, "text", 0, "half"),)))])
    assert store.messages_since("w", "s", "sum")[-1].text == "half"


def command(message_id: str) -> Message:
    part = ShellCommandPart(data=ShellCommand(command="make", output="", exit_code=0, share=True))
    return structs.replace(message(message_id, part), role="user", run_id=None)


def test_commands_of_people_are_no_prompts(store: Store) -> None:
    def asked(message_id: str, run_id: str | None = "r") -> Message:
        return structs.replace(message(message_id, text(message_id)), role="user", run_id=run_id)

    said = [asked("u1"), command("c1"), asked("copy", None), message("a1"), command("c2"), message("sum"), asked("u2")]
    store.commit([change(*map(PutMessage, said))])
    assert [found.id for found in store.prompts("w", "s", 10)] == ["u2", "copy", "u1"]
    assert [found.id for found in store.prompts("w", "s", 1)] == ["u2"]
    assert store.prompts("w", "other", 10) == store.prompts("x", "s", 10) == []
    assert [found.id for found in store.messages_since("w", "s", "sum")] == ["a1", "c2", "sum", "u2"]


def test_the_messages_of_one_run(store: Store) -> None:
    store.commit([change(PutMessage(message(name, run_id=name[0]))) for name in ("a1", "b1", "a2", "b2")])
    store.commit([change(PutMessage(message("a3", session_id="other", run_id="a")))])
    store.commit([change(AppendText("a2", (TextPiece(0, "text", 0, "half"),)))])
    found = store.messages_of_run("w", "s", "a")
    assert [(one.id, one.text) for one in found] == [("a1", ""), ("a2", "half")]
    assert store.messages_of_run("w", "s", "c") == store.messages_of_run("x", "s", "a") == []


def test_text_saved_on_the_way_is_part_of_a_message_until_it_is_written_whole(store: Store) -> None:
    first, second = TextPiece(0, "text", 0, "Hel"), TextPiece(0, "text", 3, "lo 👋")
    call = TextPiece(1, "reasoning", 0, "hm")
    store.commit([change(PutMessage(message("m"))), change(AppendText("m", (first,)))])
    store.commit([change(AppendText("m", (second, call)))])
    (found,) = store.messages("w", "s", "", 0)
    assert found.text == "Hello 👋"
    assert len(found.parts) == 2
    store.commit([change(PutMessage(message("m", text("whole"))))])
    (found,) = store.messages("w", "s", "", 0)
    assert found.parts == (text("whole"),)


def test_saved_text_that_does_not_continue_its_message_is_not_read(store: Store) -> None:
    """Nothing writes it; but a message that cannot be read would be worse than one without its last words."""
    saved = (TextPiece(0, "text", 5, "!"), TextPiece(3, "text", 0, "?"))
    store.commit([change(PutMessage(message("m", text("whole"))), AppendText("m", saved))])
    (found,) = store.messages("w", "s", "", 0)
    assert found.parts == (text("whole!"),)


def test_a_write_of_an_unknown_kind_is_not_dropped_in_silence(store: Store) -> None:
    with pytest.raises(AssertionError):
        store.commit([change("a write that nobody knows")])  # type: ignore[arg-type] # a type checker would see it


def test_the_mark_only_rises_and_survives_changes_of_the_session(store: Store) -> None:
    store.commit([change(PutSession(session())), change(SetMark("s", 5)), change(SetMark("s", 3))])
    store.commit([change(PutSession(session(updated_at=9)))])
    (row,) = store.sessions("w")
    assert (row.mark, row.session.updated_at) == (5, 9)


def test_sessions_are_listed_newest_first_and_dropped_with_their_messages_but_not_their_runs(store: Store) -> None:
    store.commit([change(PutSession(session("old", 1)), PutSession(session("new", 2)))])
    assert [row.session.id for row in store.sessions("w")] == ["new", "old"]
    store.commit([change(InsertRun(RunRow(run(session_id="old"), "d")), PutMessage(message(session_id="old")))])
    store.commit([change(AppendText("m", (TextPiece(0, "text", 0, "x"),))), change(DropSession("old"))])
    assert [row.session.id for row in store.sessions("w")] == ["new"]
    assert store.messages("w", "old", "", 0) == []
    assert store.run("w", "r") is not None


def test_workspaces_and_early_cancels_are_kept(store: Store) -> None:
    row = WorkspaceRow("w", "/somewhere", 7, 1)
    store.commit([change(PutWorkspace(row)), change(PutEarlyCancel("late", 20.0), PutEarlyCancel("soon", 10.0))])
    assert store.workspaces() == [row]
    assert [cancel.run_id for cancel in store.early_cancels("w")] == ["soon", "late"]
    assert store.early_cancels("x") == []


def test_the_newest_id_counts_messages_and_sessions_also_deleted_ones(store: Store) -> None:
    assert store.newest_id("w") == ""
    store.commit([change(PutSession(session("B1"))), change(PutMessage(message("A9", session_id="B1")), workspace="x")])
    assert store.newest_id("w") == "B1"
    if isinstance(store, SqliteStore):
        assert store.newest_id("y") == "A9", "in one file messages are unique among all workspaces"
    gone = session("C1")
    store.commit([change(PutSession(gone), events=(created(gone),)), change(DropSession("C1"))])
    assert store.newest_id("w") == "C1"
