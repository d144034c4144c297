"""Pages of messages and sessions: what they give in every store, and by which way SQLite finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from covey.protocol.errors import NotFound
from covey.protocol.growth import TextPiece
from covey.protocol.messages import Session
from covey.store.base import AppendText, DropSession, Place, PutMessage, PutSession, SetMark, Store
from covey.store.session_order import NEWEST, newest_of_all, page_in
from covey.store.sqlite import SqliteStore
from tests.store.test_store_conformance import MAKERS, STORES, change, message, session


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = MAKERS[request.param](tmp_path)
    yield made
    made.close()


# ── messages ──


def last(store: Store, before: str, limit: int, session_id: str = "s") -> str:
    return "".join(found.id for found in store.messages_before("w", session_id, before, limit))


def test_a_page_of_messages_ends_before_one_and_is_in_order(store: Store) -> None:
    for name in "abcdefg":
        store.commit([change(PutMessage(message(name)), PutMessage(message(f"{name}!", session_id="other")))])
    assert last(store, "", 3) == "efg"
    assert last(store, "e", 3) == "bcd"
    assert last(store, "b", 3) == "a"
    assert last(store, "a", 3) == ""
    assert last(store, "", 100) == "abcdefg"
    assert last(store, "", 3, "nobody") == ""


def test_no_page_ends_before_a_message_that_is_not_there(store: Store) -> None:
    store.commit([change(PutMessage(message("a")), PutMessage(message("b", session_id="other")))])
    for before in ("gone", "b"):
        with pytest.raises(NotFound) as raised:
            store.messages_before("w", "s", before, 3)
        assert raised.value.code == "message_not_found"


def test_the_last_page_has_the_text_that_was_saved_of_a_message_in_progress(store: Store) -> None:
    store.commit([change(PutMessage(message("a"))), change(PutMessage(message("b")))])
    store.commit([change(AppendText("b", (TextPiece(0, "text", 0, "half"),)))])
    assert [found.text for found in store.messages_before("w", "s", "", 2)] == ["", "half"]


# ── sessions ──


def listed(store: Store, before: str = "", limit: int = 100, *, children: bool = False, archived: bool = False) -> str:
    rows = page_in("w", store, before, limit, children=children, archived=archived)
    return "".join(row.session.id for row in rows)


def put(store: Store, *sessions: Session, workspace: str = "w") -> None:
    store.commit([change(PutSession(one), workspace=workspace) for one in sessions])


def test_pages_of_sessions_go_from_the_newest_to_the_oldest_and_ids_decide_between_equals(store: Store) -> None:
    put(store, session("a", 5), session("b", 9), session("c", 5), session("d", 1))
    put(store, session("z", 99), workspace="x")
    assert listed(store) == "bcad"
    assert listed(store, limit=2) == "bc"
    assert listed(store, "c", 2) == "ad"
    assert listed(store, "d", 2) == ""
    with pytest.raises(NotFound, match="'z'"):
        listed(store, "z")


def test_the_newest_sessions_of_all_workspaces_are_merged_in_the_same_order(store: Store) -> None:
    put(store, *(session(f"a{number:02}", 2 * number) for number in range(60)))
    put(store, *(session(f"b{number:02}", 2 * number + 1) for number in range(3)), workspace="x")
    paths = {"w": "/w", "x": "/x", "empty": "/empty"}

    def page(before: Place, limit: int) -> list[str]:
        found = newest_of_all(store, paths, before, limit, children=False, archived=False)
        assert all((each.path == "/x") == each.session.id.startswith("b") for each in found)
        return [each.session.id for each in found]

    everything = page(NEWEST, 100)
    assert everything == [f"a{number:02}" for number in range(59, 2, -1)] + ["b02", "a02", "b01", "a01", "b00", "a00"]
    assert page((6, "a03"), 2) == ["b02", "a02"], "a page goes on in the other workspace"
    assert page((0, "a00"), 2) == []


def test_agents_own_sessions_and_archived_ones_are_listed_only_if_asked_for(store: Store) -> None:
    child = structs.replace(session("b", 8), parent_session_id="a")
    aside = structs.replace(session("c", 7), archived_at=3)
    both = structs.replace(session("d", 6), parent_session_id="a", archived_at=3)
    put(store, session("a", 9), child, aside, both, session("e", 5))
    assert listed(store) == "ae"
    assert listed(store, children=True) == "abe"
    assert listed(store, archived=True) == "ace"
    assert listed(store, children=True, archived=True) == "abcde"
    assert listed(store, "b", 2, children=True, archived=True) == "cd"
    assert listed(store, "c", 2) == "e", "a page goes on from a session that it would not list"


def test_a_session_that_changes_moves_to_another_place_and_another_shelf(store: Store) -> None:
    put(store, session("a", 1), session("b", 2))
    put(store, session("a", 3))
    assert listed(store) == "ab"
    put(store, structs.replace(session("a", 3), archived_at=4))
    assert listed(store) == "b"
    assert listed(store, archived=True) == "ab"
    put(store, session("a", 3))
    store.commit([change(SetMark("a", 7)), change(DropSession("b"))])
    (row,) = store.sessions_page("w", NEWEST, 9, children=False, archived=False)
    assert (row.session.id, row.mark) == ("a", 7)


def test_one_session_is_found_with_its_mark_and_children_by_their_parent(store: Store) -> None:
    child, other = (structs.replace(session(name, 1), parent_session_id="a") for name in "bc")
    grandchild = structs.replace(session("d", 1), parent_session_id="b")
    put(store, session("a", 9), child, other, grandchild, session("e", 9))
    put(store, structs.replace(session("f", 1), parent_session_id="a"), workspace="x")
    assert store.newest_mark("w") == 0
    store.commit([change(SetMark("a", 7)), change(SetMark("e", 3))])
    row = store.session("w", "a")
    assert row is not None
    assert (row.session.id, row.mark, store.newest_mark("w"), store.newest_mark("x")) == ("a", 7, 7, 0)
    assert (store.session("w", "nobody"), store.session("w", "f")) == (None, None)
    assert [row.session.id for row in store.child_sessions("w", "a")] == ["b", "c"]
    assert store.child_sessions("w", "e") == store.child_sessions("w", "") == []


def test_the_size_of_a_session_is_that_of_its_messages(store: Store) -> None:
    assert store.session_size("w", "s") == 0
    store.commit([change(PutMessage(message("a")), PutMessage(message("b", session_id="other")))])
    one = store.session_size("w", "s")
    store.commit([change(PutMessage(message("c")))])
    assert store.session_size("w", "s") == 2 * one > 0


# ── by which way ──


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[SqliteStore, list[str]]]:
    """A store with something in it, and the plans of all queries that are read from then on."""
    with closing(SqliteStore(tmp_path / "covey.db")) as made:
        kinds: list[dict[str, Any]] = [{}, {"parent_session_id": "a"}, {"archived_at": 3}]
        put(made, *(structs.replace(session(f"s{n}", n), **kinds[n % 3]) for n in range(300)))
        made.commit([change(PutMessage(message(f"m{n:03}", session_id=f"s{n % 3}"))) for n in range(300)])
        made.commit([change(AppendText("m299", (TextPiece(0, "text", 0, "x"),)))])
        plans: list[str] = []
        read = made._read

        def noting(query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
            plans.extend(detail for *_, detail in read(f"EXPLAIN QUERY PLAN {query}", *values))
            return read(query, *values)

        monkeypatch.setattr(made, "_read", noting)
        yield made, plans


READS: dict[str, Callable[[SqliteStore], Any]] = {
    "last page": lambda store: store.messages_before("w", "s1", "", 5),
    "page before": lambda store: store.messages_before("w", "s1", "m100", 5),
    "page after": lambda store: store.messages("w", "s1", "m100", 5),
    "since": lambda store: store.messages_since("w", "s1", "m100"),
    "newest sessions": lambda store: store.sessions_page("w", NEWEST, 5, children=False, archived=False),
    "sessions before": lambda store: page_in("w", store, "s100", 5, children=False, archived=False),
    "all sessions before": lambda store: page_in("w", store, "s100", 5, children=True, archived=True),
    "one session": lambda store: store.session("w", "s100"),
    "children": lambda store: store.child_sessions("w", "a"),
    "newest mark": lambda store: store.newest_mark("w"),
    "size": lambda store: store.session_size("w", "s1"),
    "sizes of events": lambda store: store.event_sizes("w", 5),
}


@pytest.mark.parametrize("name", READS)
def test_a_page_is_found_by_an_index_and_never_sorted(watched: tuple[SqliteStore, list[str]], name: str) -> None:
    store, plans = watched
    READS[name](store)
    assert plans
    assert not [plan for plan in plans if "SCAN" in plan and "CONSTANT ROW" not in plan]
    assert not [plan for plan in plans if "TEMP B-TREE" in plan]
    assert all("messages_by_session" in plan for plan in plans if "position<" in plan or "position>" in plan)


def test_a_message_is_found_by_its_id_and_not_by_looking_through_its_session(
    watched: tuple[SqliteStore, list[str]],
) -> None:
    store, plans = watched
    store.messages_before("w", "s1", "m100", 5)
    assert "(id=?)" in plans[0]
