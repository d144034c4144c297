"""What a server would change, checked before anything is written."""

from __future__ import annotations

from typing import Any

import pytest

from covey.tools.lsp.edits import FILES_LIMIT, BadEdit, read_workspace_edit, renamed

TEXT = "def add(x):\n    return x\nprint('ü', add(1))\n"


def edit(line: int, start: int, end: int, text: str = "plus") -> dict[str, Any]:
    return {
        "range": {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}},
        "newText": text,
    }


def rename(*edits: dict[str, Any]) -> str:
    return renamed(read_workspace_edit({"changes": {"u": list(edits)}}), lambda uri: TEXT, "add", "plus")["u"]


def test_l5_every_range_that_holds_the_old_name_changes() -> None:
    assert rename(edit(2, 11, 14), edit(0, 4, 7)) == TEXT.replace("add", "plus")


def test_a_longer_piece_that_holds_the_name_may_be_replaced() -> None:
    assert rename(edit(0, 0, 11, "def plus(x):")) == TEXT.replace("def add", "def plus")


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ([edit(0, 4, 7), edit(2, 12, 15)], r"line 3 there is 'dd\('"),
        ([edit(0, 4, 7), edit(0, 5, 7)], "overlap"),
        ([edit(9, 0, 3)], "line 10 is not in the text"),
        ([edit(0, 0, 11, "rm -rf /")], "and not 'add'"),
    ],
)
def test_l5_one_wrong_range_and_nothing_changes(edits: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(BadEdit, match=why):
        rename(*edits)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "no name there"),
        ({}, "nothing to change"),
        ({"documentChanges": [{"kind": "delete", "uri": "file:///x"}]}, "create, move or delete"),
        ({"changes": {"u": [{"newText": "x"}]}}, "cannot be read"),
        ({"changes": {str(number): [edit(0, 4, 7)] for number in range(FILES_LIMIT + 1)}}, "too much"),
    ],
)
def test_what_is_more_than_a_change_of_texts_is_refused(given: Any, why: str) -> None:
    with pytest.raises(BadEdit, match=why):
        read_workspace_edit(given)


def test_document_changes_are_read_too() -> None:
    given = {"documentChanges": [{"textDocument": {"uri": "u", "version": None}, "edits": [edit(0, 4, 7)]}]}
    assert list(read_workspace_edit(given)) == ["u"]
