"""Search: what it finds in every store, and what is special about the index in SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from covey.protocol.growth import TextPiece
from covey.protocol.messages import (
    Finish,
    FinishPart,
    Message,
    Reasoning,
    ReasoningPart,
    Role,
    ShellCommand,
    ShellCommandPart,
    ToolResult,
    ToolResultPart,
)
from covey.store import search_text, sqlite_search
from covey.store.base import (
    AppendText,
    DropMessages,
    DropSession,
    PutMessage,
    PutSession,
    SearchUnavailable,
    Store,
)
from covey.store.search_text import Hits
from covey.store.sqlite import SqliteStore
from tests.store.test_store_conformance import MAKERS, STORES, change, message, session, text

END = FinishPart(data=Finish(reason="end_turn", time=1))


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = MAKERS[request.param](tmp_path)
    made.commit([change(PutSession(session()))])
    yield made
    made.close()


def said(message_id: str, words: str, role: Role = "user", session_id: str = "s") -> PutMessage:
    made = message(message_id, text(words), *((END,) if role == "assistant" else ()), session_id=session_id)
    return PutMessage(structs.replace(made, role=role))


def found(store: Store, query: str, limit: int = 10) -> str:
    return "".join(hit.message_id for hit in store.search("w", query, limit).messages)


def titles(store: Store, query: str) -> str:
    return "".join(hit.session_id for hit in store.search("w", query, 10).titles)


# ── every store ──


def test_all_words_must_be_there_in_any_order_and_the_last_may_be_a_beginning(store: Store) -> None:
    store.commit([change(said("a", "The quick brown fox")), change(said("b", "A quick answer, fixed", "assistant"))])
    assert found(store, "quick") == "ba", "the newest first"
    assert found(store, "fox quick") == "a"
    assert found(store, "quick fo") == "a"
    assert found(store, "qui fox") == "", "only the last word may be cut short"
    assert found(store, "quick fo ") == "", "and not once a blank says that it is whole"
    assert found(store, "QUICK") == "ba"
    assert found(store, "") == found(store, "  !? ") == ""
    assert found(store, "quick", limit=1) == "b"


def test_case_and_accents_do_not_matter_and_words_may_have_signs_in_between(store: Store) -> None:
    store.commit([change(said("a", "Das Café ÜBER foo-bar.py"))])
    for query in ("cafe", "CAFÉ", "uber", "foo-bar", "foo bar", "bar.py", "foo_bar foo"):
        assert found(store, query) == "a", query
    assert found(store, "bar-foo") == "", "words that belong together stand next to each other"


def test_a_hit_shows_the_line_around_it_and_its_place_in_code_points(store: Store) -> None:
    store.commit([change(said("a", "👋 " * 100 + "then the Käse\nwas gone; no käse " + "x " * 200))])
    (hit,) = store.search("w", "kase", 5).messages
    assert (hit.session_id, hit.message_id, hit.role, hit.at) == ("s", "a", "user", 1)
    assert [hit.snippet[start:end] for start, end in hit.places] == ["Käse", "käse"]
    assert "\n" not in hit.snippet
    assert len(hit.snippet) == search_text.SNIPPET_CHARS


@pytest.mark.parametrize(
    "query", ['"', "'", "a AND", "NOT b", "text:x", "a*b*", "(", "^a", "NEAR(a b)", "a + b", "-", "\0a"]
)
def test_a_query_is_words_and_never_syntax(store: Store, query: str) -> None:
    store.commit([change(said("a", "nothing of the kind"))])
    assert found(store, query) == ""


def test_words_that_mean_something_to_sqlite_are_found_as_words(store: Store) -> None:
    store.commit([change(said("a", 'cats AND dogs OR "birds" NOT near text:bees'))])
    for query in ("and", "OR", "not near", '"birds"', "text:bees", "AND OR NOT"):
        assert found(store, query) == "a", query


def test_only_what_people_and_models_said_is_searched(store: Store) -> None:
    result = ToolResult(tool_call_id="t", name="view", content="needle", metadata="", is_error=False)
    thought = ReasoningPart(data=Reasoning(thinking="needle", signature=""))
    typed = ShellCommandPart(data=ShellCommand(command="grep thread", output="needle", exit_code=0))
    parts = message("b", thought, text("pin"), END), structs.replace(message("c", typed), role="user")
    tool = structs.replace(message("a", ToolResultPart(data=result)), role="tool")
    store.commit([change(PutMessage(one)) for one in (tool, *parts)])
    assert found(store, "needle") == ""
    assert found(store, "pin") == "b"
    assert found(store, "thread") == "c"


def test_a_message_is_found_once_it_is_finished_and_as_it_is_then(store: Store) -> None:
    store.commit([change(PutMessage(message("a", text("early")))), change(said("u", "early"))])
    store.commit([change(AppendText("a", (TextPiece(0, "text", 5, " bird"),)))])
    assert found(store, "early") == "u"
    store.commit([change(PutMessage(message("a", text("late bird"), END)))])
    assert found(store, "early") == "u"
    assert found(store, "late") == "a"
    store.commit([change(PutMessage(message("a", text("other"), END)))])
    assert found(store, "late") == ""
    assert found(store, "other") == "a"


def test_titles_are_found_as_they_are_now(store: Store) -> None:
    old, new = (
        structs.replace(session("o", 1), title="About owls"),
        structs.replace(session("n", 2), title="Owls again"),
    )
    store.commit([change(PutSession(new)), change(PutSession(old))])
    assert titles(store, "owl") == "no", "the newest first"
    (hit, _) = store.search("w", "owls", 5).titles
    assert (hit.message_id, hit.role, hit.snippet, hit.places) == ("", "", "Owls again", ((0, 4),))
    store.commit([change(PutSession(structs.replace(old, title="Renamed", updated_at=9)))])
    assert titles(store, "owl") == "n"
    assert titles(store, "renamed") == "o"


def test_what_is_dropped_and_what_is_elsewhere_is_not_found(store: Store) -> None:
    other = structs.replace(session("t"), title="needle")
    store.commit(
        [change(PutSession(other), said("a", "needle"), said("b", "needle"), said("c", "needle", session_id="t"))]
    )
    store.commit([change(PutSession(other), said("d", "needle", session_id="t"), workspace="x")])
    assert found(store, "needle") == "cba"
    store.commit([change(DropMessages("s", ("b",))), change(DropSession("t"))])
    assert found(store, "needle") == "a"
    assert titles(store, "needle") == ""
    assert [hit.message_id for hit in store.search("x", "needle", 5).messages] == ["d"]


# ── SQLite ──


def traced(connection: apsw.Connection) -> list[str]:
    """Every statement from now on."""
    statements: list[str] = []

    def note(cursor: apsw.Cursor, statement: str, values: object) -> bool:
        statements.append(statement)
        return True

    connection.exec_trace = note
    return statements


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "covey.db")) as made:
        made.commit([change(PutSession(session()))])
        yield made


@given(st.text(max_size=40))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_query_fails(sqlite: SqliteStore, query: str) -> None:
    assert isinstance(sqlite.search("w", query, 3), Hits)


def test_places_are_where_the_words_are_whatever_stands_around_them(sqlite: SqliteStore) -> None:
    line = "Ελλάδα naïve ﬁne İstanbul 東京 a\u0301b straße 𝒳x word"
    sqlite.commit([change(said("a", line))])
    for word in ("naïve", "word", "straße"):
        (hit,) = sqlite.search("w", word, 3).messages
        assert [hit.snippet[start:end] for start, end in hit.places] == [word]


def test_growth_of_a_message_does_not_touch_the_index(sqlite: SqliteStore) -> None:
    sqlite.commit([change(PutMessage(message("a", text("x"))))])
    written = traced(sqlite._writer)
    sqlite.commit([change(AppendText("a", (TextPiece(0, "text", 1, "y"),)), PutSession(session(updated_at=9)))])
    sqlite.commit([change(PutMessage(message("a", text("xyz"))))])
    assert not [statement for statement in written if "INTO search" in statement]
    sqlite.commit([change(PutMessage(message("a", text("xyz"), END)))])
    assert len([statement for statement in written if "INTO search" in statement]) == 1
    sqlite._writer.exec_trace = None


def test_a_change_that_fails_leaves_nothing_to_be_found(sqlite: SqliteStore) -> None:
    broken = PutMessage(structs.replace(message("b"), id=None))
    with pytest.raises(Exception, match="NOT NULL"):
        sqlite.commit([change(said("a", "needle"), broken)])
    assert found(sqlite, "needle") == ""


def test_only_the_beginning_of_a_very_long_message_is_searched(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_text, "TEXT_CHARS", 20)
    sqlite.commit([change(said("a", "first " * 4 + "last"))])
    assert found(sqlite, "first") == "a"
    assert found(sqlite, "last") == ""


def test_a_query_looks_at_a_bounded_number_of_rows(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    sqlite.commit([change(said(f"m{number:03}", "needle")) for number in range(300)])
    connection = sqlite._reader()
    read = traced(connection)
    assert len(sqlite.search("w", "needle", 5).messages) == 5
    assert len([statement for statement in read if "FROM messages m" in statement]) == 5
    monkeypatch.setattr(sqlite_search, "SCANNED", 7)
    assert len(sqlite.search("w", "needle", 100).messages) == 7
    connection.exec_trace = None


def test_without_fts5_a_store_works_says_so_and_catches_up_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "covey.db"
    with closing(SqliteStore(path)) as store:
        store.commit([change(PutSession(session()), said("a", "needle"))])
    with monkeypatch.context() as then:
        then.setattr(sqlite_search, "has_fts5", lambda: False)
        with closing(SqliteStore(path)) as store:
            store.commit([change(said("b", "needle"), DropMessages("s", ("a",)))])
            store.commit([change(PutSession(structs.replace(session(), title="needle")))])
            while store.upkeep():
                pass
            with pytest.raises(SearchUnavailable, match="FTS5"):
                store.search("w", "needle", 5)
    with closing(SqliteStore(path)) as store:
        while store.upkeep():
            pass
        assert found(store, "needle") == "b"
        assert titles(store, "needle") == "s"


def test_the_sqlite_that_comes_with_covey_has_fts5() -> None:
    assert sqlite_search.has_fts5()
    assert "ENABLE_FTS5" in apsw.compile_options


def test_what_is_searched_of_a_message() -> None:
    assert search_text.searched_text(message("a", text("one"), text("two"))) == "one\ntwo"
    system: Message = structs.replace(message("a", text("one")), role="system")
    assert search_text.searched_text(system) == ""
