"""Which diagnostics may be shown, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from covey.tools.lsp.answers import list_places, list_symbols, path_of, read_places, read_symbols
from covey.tools.lsp.complaints import SHOWN, Complaint, Pushed, describe, language_of, read_complaints
from covey.tools.lsp.entries import KNOWN, ServerEntry, entries_of

Said = list[tuple[object, list[Complaint]]]
WRONG = [Complaint(1, "error", "wrong")]
AT = {"start": {"line": 2, "character": 0}, "end": {"line": 2, "character": 1}}


def pushed(*said: tuple[object, list[Complaint]], version: int = 2) -> Pushed:
    file = Pushed()
    file.changed(version)
    for each in said:
        file.pushed(*each)
    return file


@pytest.mark.parametrize(
    ("said", "freshness"),
    [
        ([], "stale"),
        ([(1, WRONG)], "stale"),
        ([(3, WRONG)], "stale"),
        ([(2, WRONG)], "fresh"),
        ([(None, WRONG)], "settling"),
    ],
)
def test_l1_only_what_is_about_the_newest_text_counts(
    said: list[tuple[object, list[Complaint]]], freshness: str
) -> None:
    file = pushed(*said)
    assert file.freshness == freshness
    assert file.complaints == ([] if freshness == "stale" else WRONG)


def test_l1_with_the_next_change_nothing_is_known_again() -> None:
    file = pushed((2, WRONG))
    file.changed(3)
    assert (file.freshness, file.complaints) == ("stale", [])


def test_complaints_are_read_and_what_is_none_is_left_out() -> None:
    given: list[Any] = [
        {"range": AT, "severity": 1, "message": "a\n  b", "source": "ty", "code": 7},
        {"range": AT, "message": 5},
        {"message": "no place"},
        None,
    ]
    assert [complaint.text for complaint in read_complaints(given)] == ["line 3: error: a b (ty 7)"]
    assert read_complaints({"x": 1}) == []


def test_errors_come_first_each_once_and_the_rest_is_counted() -> None:
    many = [Complaint(number, "warning", "w") for number in range(30)]
    text = describe("a.py", [*many, *WRONG, *WRONG])
    assert text.splitlines()[1] == "- line 1: error: wrong"
    assert text.endswith(f"- and {31 - SHOWN} more")
    assert describe("a.py", [Complaint(1, "note", "n")], min_severity="warning") == ""


def test_places_and_symbols_of_all_shapes() -> None:
    link = {"targetUri": "file:///a%20b.py", "targetSelectionRange": AT, "targetRange": AT}
    assert read_places([link, link, {"uri": "untitled:x", "range": AT}, 5]) == [(Path("/a b.py"), 3)]
    assert read_places({"uri": "file:///a.py", "range": AT}) == [(Path("/a.py"), 3)]
    assert read_places(None) == []
    nested = [{"name": "A", "kind": 5, "range": AT, "children": [{"name": "f", "kind": 6, "range": AT}]}]
    flat = [{"name": "g", "kind": 12, "location": {"uri": "file:///a.py", "range": AT}}]
    assert list_symbols(read_symbols(nested), str) == "class A (line 3)\n  method f (line 3)"
    assert list_symbols(read_symbols(flat), str) == "/a.py:3: function g"
    places = read_places([{"uri": f"file:///{number}", "range": AT} for number in range(103)])
    assert list_places(places, str, lambda place: "").endswith("/99:3\n... and 3 more")


@pytest.mark.parametrize("uri", [None, 5, "http://x/y", "file://host", "file:///a%00b", "file:relative"])
def test_only_files_are_files(uri: object) -> None:
    assert path_of(uri) is None


def test_of_servers_with_one_role_the_first_that_is_there_is_used() -> None:
    there = {"ruff", "pyright-langserver", "pylsp", "clangd"}
    names = [
        entry.name for entry in entries_of([], frozenset(), lambda name: name if name in there else None, known=True)
    ]
    assert names == ["ruff", "pyright", "clangd"]


def test_a_configured_server_comes_first_and_a_disabled_one_never() -> None:
    own = ServerEntry("mine", ("mine",), frozenset({".py"}), role="python")
    found = entries_of([own], frozenset({"ruff"}), lambda name: name, known=True)
    assert found[0] == own and {"ruff", "ty", "pyright"}.isdisjoint(entry.name for entry in found)
    assert entries_of([own], frozenset(), lambda name: name, known=False) == [own]


def test_every_known_server_is_for_some_files() -> None:
    assert all(entry.suffixes and entry.command for entry in KNOWN)
    assert language_of(Path("a.tsx")) == "typescriptreact" and language_of(Path("Makefile")) == "plaintext"


def test_l3_after_a_change_of_other_files_what_is_said_first_is_not_believed_at_once() -> None:
    file = pushed()
    file.doubt()
    file.pushed(2, WRONG)
    seen = [file.freshness]
    file.pushed(2, [])
    file.settled()
    assert [*seen, file.freshness] == ["settling", "fresh"] and file.complaints == []
