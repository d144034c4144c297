"""What every store must do with versions of files, undone messages and undos; and a store of before there were any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import apsw
import pytest
from msgspec import structs

from covey.doctor.oracle import examine
from covey.doctor.repair import repair
from covey.protocol.events import created
from covey.protocol.growth import TextPiece
from covey.store import base
from covey.store.base import (
    AppendText,
    DropMessages,
    DropSession,
    PutFileVersion,
    PutMessage,
    PutSession,
    PutUndo,
    Store,
    UndoFile,
    UndoRow,
    digest_of,
)
from covey.store.sqlite import SqliteStore
from tests.store.test_store_conformance import MAKERS, STORES, change, message, session
from tests.support.old_stores import old_store

ONE, TWO, THREE = b"one\n", b"two\r\n\0\xff", b""


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = MAKERS[request.param](tmp_path)
    yield made
    made.close()


def version(
    before: bytes | None, after: bytes | None, path: str = "/p/a.py", *, run_id: str = "r", session_id: str = "s"
) -> PutFileVersion:
    return PutFileVersion(session_id, run_id, path, before, after, message_id="m", mode=0o755)


def undo(undo_id: str = "u", session_id: str = "s", *, done: bool = False) -> UndoRow:
    return UndoRow(undo_id, session_id, ("r",), 1.5, (UndoFile(b"/p/\xff", digest_of(ONE), None, 0o644),), done)


def contents(store: Store) -> list[bool]:
    return [store.content("w", digest_of(content)) == content for content in (ONE, TWO, THREE)]


def test_versions_come_back_in_order_with_their_contents(store: Store) -> None:
    store.commit([change(version(None, ONE), version(ONE, TWO)), change(version(TWO, THREE, run_id="r2"))])
    first, second = store.file_steps("w", "s", ["r"])
    assert (first.before, first.after, second.before) == (None, digest_of(ONE), digest_of(ONE))
    assert (first.path, first.message_id, first.mode, first.run_id) == ("/p/a.py", "m", 0o755, "r")
    assert first.before_kept and second.before_kept
    assert [step.run_id for step in store.file_steps("w", "s", ["r2", "r"])] == ["r", "r", "r2"]
    assert store.file_steps("w", "s", None) == store.file_steps("w", "s", ["r2", "r"])
    assert contents(store) == [True, True, True]
    assert store.content("w", digest_of(b"never seen")) is None
    assert (
        store.file_steps("w", "s", []) == store.file_steps("w", "t", ["r"]) == store.file_steps("x", "s", ["r"]) == []
    )


def test_a_path_need_not_be_text(store: Store) -> None:
    store.commit([change(version(None, ONE, "/p/\udcff.py"))])
    assert store.file_steps("w", "s", ["r"])[0].path == "/p/\udcff.py"


def test_a_large_content_is_not_kept_but_known(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "CONTENT_BYTES", 4)
    large = b"12345"
    store.commit([change(version(ONE, large), version(large, ONE))])
    first, second = store.file_steps("w", "s", ["r"])
    assert first.after == second.before == digest_of(large)
    assert (first.before_kept, second.before_kept) == (True, False)
    assert store.content("w", digest_of(large)) is None


def test_beyond_the_bound_of_a_session_the_oldest_contents_go(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "SESSION_CONTENT_BYTES", 30)
    texts = [bytes([65 + number]) * 10 for number in range(6)]
    store.commit([change(version(texts[0], texts[1], session_id="other", run_id="o"))])
    for before, after in pairwise(texts):
        store.commit([change(version(before, after))])
    assert [step.before_kept for step in store.file_steps("w", "s", ["r"])] == [True, True, False, False, True]
    assert [store.content("w", digest_of(text)) == text for text in texts] == [True, True, False, False, True, True]
    store.commit([change(DropSession("other"))])
    assert [store.content("w", digest_of(text)) == text for text in texts] == [False, False, False, False, True, True]


def test_an_empty_content_is_kept_as_long_as_any_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "SESSION_CONTENT_BYTES", 3)
    store.commit([change(version(THREE, None))])
    assert store.content("w", digest_of(THREE)) == THREE
    store.commit([change(version(ONE, TWO, "/p/b")), change(version(b"x", b"y", "/p/b"))])
    assert store.content("w", digest_of(THREE)) is None


def test_a_dropped_session_takes_its_versions_and_undos_along_but_not_what_others_need(store: Store) -> None:
    store.commit([change(PutSession(session("s")), PutSession(session("t")))])
    store.commit([change(version(ONE, TWO), PutUndo(undo())), change(version(TWO, THREE, session_id="t"))])
    store.commit([change(PutUndo(undo("u2", "t"))), change(DropSession("s"))])
    assert store.file_steps("w", "s", ["r"]) == []
    assert contents(store) == [False, True, True]
    assert [row.id for row in store.undos("w", pending=True)] == ["u2"]
    store.commit([change(PutUndo(undo(done=True)))])
    assert [row.id for row in store.undos("w", pending=True)] == ["u2"], (
        "what is done for a session that is gone is nothing"
    )


def test_messages_are_dropped_one_by_one_and_only_where_they_belong(store: Store) -> None:
    texts = AppendText("b", (TextPiece(0, "text", 0, "x"),))
    store.commit([change(PutMessage(message("a")), PutMessage(message("b")), PutMessage(message("c")), texts)])
    store.commit([change(DropMessages("other", ("a",))), change(DropMessages("s", ("a",)), workspace="x")])
    store.commit([change(DropMessages("s", ("b", "c", "unknown")))])
    assert [m.id for m in store.messages("w", "s", "", 0)] == ["a"]
    store.commit([change(PutMessage(message("b")))])
    assert store.messages("w", "s", "", 0)[1].text == "", "the text that was saved of it is gone too"


def test_an_undo_is_pending_until_it_is_done_and_its_id_counts(store: Store) -> None:
    rows = {undo_id: undo(undo_id, "A1") for undo_id in ("Z1", "Z2")}
    store.commit([change(PutSession(session("A1"))), change(PutUndo(rows["Z2"]), PutUndo(rows["Z1"]))])
    assert [row.id for row in store.undos("w", pending=True)] == ["Z1", "Z2"]
    assert store.undos("w", pending=True)[1] == rows["Z2"]
    assert store.undos("x", pending=True) == []
    store.commit([change(PutUndo(structs.replace(rows["Z1"], done=True)))])
    assert [row.id for row in store.undos("w", pending=True)] == ["Z2"]
    assert [row.id for row in store.undos("w", pending=False)] == ["Z1", "Z2"]
    assert store.newest_id("w") == "Z2"


# ── SQLite ──


def filled(directory: Path) -> None:
    store = SqliteStore(directory / "covey.db")
    talk = structs.replace(session(), message_count=1)
    said = structs.replace(message("m1"), run_id=None)
    store.commit([change(PutSession(talk), PutMessage(said), events=(created(talk), created(said)))])
    store.close()


def test_a_store_of_the_first_version_is_taken_over_with_all_that_it_holds(tmp_path: Path) -> None:
    old_store(tmp_path, 1, turns=1)
    with closing(SqliteStore(tmp_path / "covey.db")) as store:
        assert [row.session.id for row in store.sessions("w")] == ["s"]
        assert [m.id for m in store.messages("w", "s", "", 0)] == ["m000000u", "m000000a"]
        store.commit([change(version(ONE, TWO))])
        assert contents(store)[:2] == [True, True]


def test_the_doctor_takes_a_store_of_the_first_version_for_what_it_is(tmp_path: Path) -> None:
    old_store(tmp_path, 1)
    before = (tmp_path / "covey.db").read_bytes()
    assert examine(tmp_path).findings == []
    assert repair(tmp_path).backup is None
    assert (tmp_path / "covey.db").read_bytes() == before


def test_a_store_of_the_first_version_that_has_lost_its_version_gets_that_one_back(tmp_path: Path) -> None:
    old_store(tmp_path, 1)
    with closing(apsw.Connection(str(tmp_path / "covey.db"))) as connection:
        connection.pragma("user_version", 0)
    assert [finding.kind for finding in repair(tmp_path).before.findings] == ["lost_version"]
    filled(tmp_path)
    assert examine(tmp_path).findings == []


def test_a_content_that_the_disk_has_changed_is_not_given_out(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "covey.db")) as store:
        store.commit([change(version(ONE, TWO))])
        store._writer.execute("UPDATE blobs SET content = x'aabb' WHERE digest = ?", (digest_of(ONE),))
        assert contents(store)[:2] == [False, True]
