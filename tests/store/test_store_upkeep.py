"""What SQLite does when nobody waits, in bounded pieces; and a store of an earlier version that is opened at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from msgspec import structs

from covey.doctor.oracle import examine
from covey.doctor.repair import repair
from covey.protocol.events import created, deleted
from covey.protocol.growth import TextPiece
from covey.store import schema, sqlite_conversations, sqlite_search, sqlite_upkeep
from covey.store.base import (
    AppendText,
    Change,
    DropSession,
    LogBounds,
    PutFileVersion,
    PutMessage,
    PutSession,
    PutWorkspace,
    WorkspaceRow,
    Write,
)
from covey.store.journal import Journal
from covey.store.session_order import NEWEST
from covey.store.sqlite import SqliteStore
from tests.store.publishing import Published, say, within_bound
from tests.store.test_store_conformance import change, message, session, text
from tests.support.disk import BOUND_S, Disk
from tests.support.old_stores import VERSIONS, old_store

pytestmark = pytest.mark.anyio


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "covey.db")) as made:
        yield made


def count(store: SqliteStore, table: str) -> int:
    return int(store._writer.execute(f"SELECT count(*) FROM {table}").get)


def pieces(store: SqliteStore) -> int:
    done = 0
    while store.upkeep():
        done += 1
    return done


# ── sessions that are dropped ──


def test_a_long_session_is_gone_at_once_and_its_messages_go_in_pieces(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_conversations, "DROP_BATCH", 10)
    pieces(store)
    store.commit([change(PutSession(structs.replace(session(), title="needle")), PutSession(session("t")))])
    store.commit(
        [change(PutMessage(structs.replace(message(f"m{n}", text("needle")), role="user"))) for n in range(35)]
    )
    store.commit([change(PutMessage(message("kept", session_id="t")))])
    versions = [PutFileVersion("s", "r", f"/p/{n}", b"%d" % n, None) for n in range(25)]
    store.commit([change(*versions, AppendText("m34", (TextPiece(0, "text", 6, "!"),)))])
    store.commit([change(DropSession("s"))])
    assert [row.session.id for row in store.sessions("w")] == ["t"]
    assert count(store, "messages") == 26, "a batch goes with the session"
    assert store.search("w", "needle", 5)[:2] == ((), ())
    steps = [count(store, "messages")]
    while store.upkeep():
        steps.append(count(store, "messages"))
    assert steps == [26, 16, 6, 1], "never more than a batch in one transaction"
    tables = ("message_tails", "file_versions", "blobs", "dropped_sessions", "search")
    assert [count(store, table) for table in tables] == [0, 0, 0, 0, 1]


def test_the_doctor_finds_nothing_wrong_with_a_session_that_is_half_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_conversations, "DROP_BATCH", 2)
    talk = structs.replace(session(), message_count=5)
    said = [structs.replace(message(f"m{n}"), run_id=None) for n in range(5)]
    with closing(SqliteStore(tmp_path / "covey.db")) as store:
        store.commit([change(PutWorkspace(WorkspaceRow("w", "/somewhere", 7, 1)))])
        written: list[Write] = [PutMessage(one) for one in said]
        store.commit([change(PutSession(talk), *written, events=(created(talk), *map(created, said)))])
        store.commit([change(AppendText("m4", (TextPiece(0, "text", 0, "!"),)))])
        store.commit([change(DropSession("s"), events=(deleted(talk),))])
        assert count(store, "dropped_sessions") == count(store, "message_tails") == 1
    assert examine(tmp_path).findings == []


# ── events ──


def test_a_long_log_is_trimmed_in_pieces(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_upkeep, "TRIM_BATCH", 10)
    pieces(store)
    store.commit([change(events=(created(session()),) * 45), change(events=(created(session()),) * 3, workspace="x")])
    store.trim_events("w", 5)
    assert store.log_bounds("w") == LogBounds(10, 45)
    assert store.upkeep()
    assert store.log_bounds("w") == LogBounds(20, 45)
    pieces(store)
    assert store.log_bounds("w") == LogBounds(40, 45)
    assert store.log_bounds("x") == LogBounds(0, 3)


# ── the length of the file ──


def test_what_is_removed_is_given_back_to_the_disk_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_upkeep, "FREE_PAGES_KEPT", 10)
    monkeypatch.setattr(sqlite_upkeep, "VACUUM_PAGES", 50)
    path = tmp_path / "covey.db"
    with closing(SqliteStore(path)) as store:
        store.commit([Change("w", (), (created(session()),), (b"x" * 100_000,)) for _ in range(20)])
        store.trim_events("w", 1)
        free = store._writer.pragma("freelist_count")
        assert free > 400
        assert pieces(store) >= (free - 10) // 50
        assert store._writer.pragma("freelist_count") == 10
    assert path.stat().st_size < 60 * 4096 + 200_000


# ── old stores ──


def test_the_steps_of_earlier_versions_are_as_they_were() -> None:
    assert schema.STEPS[: len(VERSIONS)] == VERSIONS


def test_a_store_of_the_second_version_opens_at_once_and_is_searched_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = old_store(tmp_path, 2, turns=2_000)
    statements: list[str] = []
    monkeypatch.setattr(sqlite_search, "_fill_messages", _noted(sqlite_search._fill_messages, statements))
    with closing(SqliteStore(path)) as store:
        assert statements == [], "nothing is taken up while it is opened"
        assert [row.session.title for row in store.sessions_page("w", NEWEST, 5, children=False, archived=False)] == [
            "An old session"
        ]
        assert len(store.messages("w", "s", "", 0)) == 4_000
        assert [m.id for m in store.messages_before("w", "s", "", 2)] == ["m001999u", "m001999a"]
        assert store.last_run_seq("w") == 2_000
        assert store.search("w", "penguins", 5) == ((), (), False)
        store.commit([change(PutMessage(structs.replace(message("new", text("penguins")), role="user")))])
        assert [hit.message_id for hit in store.search("w", "penguins", 5).messages] == ["new"]
        assert store.upkeep() and store.upkeep()
        newest = store.search("w", "penguins", 3)
        assert [hit.message_id for hit in newest.messages] == ["new", "m001999a", "m001998a"], "the newest come first"
        assert not newest.is_complete
        pieces(store)
        done = store.search("w", "answer 0 penguins", 3)
        assert ([hit.message_id for hit in done.messages], done.is_complete) == (["m000000a"], True)
        assert [hit.session_id for hit in store.search("w", "old", 5).titles] == ["s"]
    assert len(statements) >= 4_000 // sqlite_search.FILL_MESSAGES
    with closing(SqliteStore(path)) as store:
        assert store.search("w", "penguins", 3).is_complete
        assert pieces(store) <= 1, "it is done once"


def _noted(function, notes: list[str]):  # type: ignore[no-untyped-def] # a wrapper of whatever it is
    def noted(*args):  # type: ignore[no-untyped-def]
        notes.append(function.__name__)
        return function(*args)

    return noted


def test_taking_up_old_messages_goes_on_where_it_was_when_the_server_ended(tmp_path: Path) -> None:
    path = old_store(tmp_path, 2, turns=300)
    with closing(SqliteStore(path)) as store:
        store.upkeep()
        store.upkeep()
        left = store._writer.execute("SELECT messages_left FROM search_progress").get
        assert 0 < left < 600
    with closing(SqliteStore(path)) as store:
        assert store._writer.execute("SELECT messages_left FROM search_progress").get == left
        pieces(store)
        assert len(store.search("w", "penguins", 1_000).messages) == 300


def test_an_old_row_that_cannot_be_read_does_not_keep_the_others_from_being_found(tmp_path: Path) -> None:
    path = old_store(tmp_path, 2, turns=3)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE messages SET value = x'ff' WHERE id = 'm000001a'")
    with closing(SqliteStore(path)) as store:
        pieces(store)
        assert [hit.message_id for hit in store.search("w", "penguins", 5).messages] == ["m000002a", "m000000a"]


def test_after_a_repair_the_index_is_made_anew(tmp_path: Path) -> None:
    path = old_store(tmp_path, 2, turns=3)
    with closing(SqliteStore(path)) as store:
        pieces(store)
        store._writer.execute("UPDATE sessions SET updated_at = 77")
    assert repair(tmp_path).backup is not None
    with closing(SqliteStore(path)) as store:
        pieces(store)
        assert len(store.search("w", "prompt", 50).messages) == 3


# ── the journal does it while nobody writes ──


async def test_the_journal_does_what_was_put_off_until_nothing_is_left() -> None:
    disk = _Lazy(5)
    journal = Journal(disk)
    book = journal.for_workspace("w", Published(), keep_events=10)
    await within_bound(say(book, "a"))
    disk.left += 2
    await within_bound(say(book, "b"))
    await journal.aclose(BOUND_S)
    assert disk.left <= 7
    assert disk.groups


async def test_a_piece_that_fails_is_not_tried_again_at_once_and_keeps_nobody_from_writing() -> None:
    disk = _Lazy(-1)
    journal = Journal(disk)
    book = journal.for_workspace("w", Published(), keep_events=10)
    for name in ("a", "b", "c"):
        await within_bound(say(book, name))
    await journal.aclose(BOUND_S)
    assert 1 <= disk.asked <= 5


class _Lazy(Disk):
    """A store with so many pieces to do; -1: each of them fails."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left
        self.asked = 0

    def upkeep(self) -> bool:
        self.asked += 1
        if self.left < 0:
            raise OSError("no")
        self.left = max(0, self.left - 1)
        return self.left > 0
