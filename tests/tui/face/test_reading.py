"""Finding one's way: the count of a search, the page of keys, the palette."""

from __future__ import annotations

import re

import pytest

from tests.tui.face.desk import Desk, a_prompt


def test_a_search_says_which_of_how_many_hits_is_shown() -> None:
    desk = Desk()
    for number in range(3):
        desk.event(a_prompt(f"m{number}", f"r{number}", f"the needle {number}"))
    desk.look()
    desk.keys("ctrl+f")
    desk.write("needle")
    assert any("search: needle" in row and "3 of 3" in row for row in desk.screen)
    desk.keys("up")
    assert any("search: needle" in row and "2 of 3" in row for row in desk.screen)
    desk.keys("enter")
    assert any("search: needle" in row and "2 of 3" in row for row in desk.screen), "Enter stays at the hit"
    assert "n next   N before" in desk.screen[-1]
    desk.keys("N")
    assert any("search: needle" in row and "1 of 3" in row for row in desk.screen)
    desk.keys("/")
    desk.write("x")
    assert any("search: needlex" in row and "not found" in row for row in desk.screen)


@pytest.mark.parametrize("columns", [40, 60, 100, 200])
def test_the_page_of_keys_cuts_nothing_however_narrow_it_is(columns: int) -> None:
    desk = Desk(columns, 400)
    desk.keys("f1")
    page = [row for row in desk.screen if "keys ──" not in row]
    assert not [row for row in page if row.rstrip().endswith("…")]
    said = " ".join(" ".join(page).split())
    assert "ctrl+j" in said and "these keys, if nothing else" in said


def test_the_words_of_the_palette_stand_apart_from_their_keys() -> None:
    desk = Desk(60, 40)
    desk.keys("ctrl+p")
    rows = [row for row in desk.screen if row.rstrip().endswith(("/undo", "/fork", "/mode"))]
    assert rows and all(re.search(r"  /[a-z]+ *$", row) for row in rows)
