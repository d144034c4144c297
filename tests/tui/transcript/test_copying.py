"""What is copied is what was written: row 36 of what must not fail."""

from __future__ import annotations

import json

import pytest

from covey.client.view.view import View
from tests.demo.transcript import ANSWER, DIFF
from tests.tui.transcript.support import Screen, answer, call, message, result, text_part, user, view_of

PROSE = (
    "A paragraph with **bold words**, `code` and a [link](https://example.org/a/b) that is wrapped more than once, so."
)
MARKS = "- [x] done with it\n- 漢字かな and 👩‍👩‍👧 emoji\n\n> quoted **text** that goes on until it is wrapped\n\ttab"
TABLE = "| a | b |\n|---|---|\n| one | two **three** |\n| x | a long cell that has to be wrapped at this width |"
CODE = "```python\ndef f():\n\treturn 'a line of code that is wider than the screen, and so it is cut somewhere'\n```"


def select(screen: Screen, first: str, last: str) -> str:
    """Drag from where the first words stand on the screen to the end of the last ones."""
    rows = screen.texts()
    start = next(number for number, row in enumerate(rows) if first in row)
    end = next(number for number, row in enumerate(rows) if number >= start and last in row)
    column = rows[start].index(first)
    transcript = screen.transcript
    transcript.select(transcript.hit(start, column), transcript.hit(end, rows[end].index(last) + len(last) - 1))
    return transcript.selected_text()


def all_of(view: View, columns: int) -> str:
    """Drag over everything."""
    screen = Screen(view, columns, 200)
    rows = screen.texts()
    last = max(number for number, row in enumerate(rows) if row)
    transcript = screen.transcript
    transcript.select(transcript.hit(0, 0), transcript.hit(last, columns))
    return transcript.selected_text()


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("source", [PROSE, MARKS, TABLE, CODE, ANSWER, "\n\n".join((PROSE, TABLE, CODE, MARKS))])
def test_row_36_all_of_an_answer_is_its_source(source: str, columns: int) -> None:
    assert all_of(view_of([answer("a", source)]), columns).rstrip() == source.rstrip()


def test_row_36_words_across_wrapped_rows_have_no_breaks() -> None:
    screen = Screen(view_of([answer("a", PROSE)]), 40)
    assert select(screen, "paragraph", "link") == "paragraph with **bold words**, `code` and a [link"
    assert select(screen, "wrapped", "once") == "wrapped more than once"
    assert select(screen, "bold", "bold words") == "bold words"


def test_row_36_cells_of_a_table_have_no_padding_and_code_has_its_tabs() -> None:
    screen = Screen(view_of([answer("a", TABLE)]), 80)
    assert select(screen, "one", "three") == "one | two **three"
    screen = Screen(view_of([answer("a", CODE)]), 40)
    whole = select(screen, "def", "where'")
    assert whole == "def f():\n\treturn 'a line of code that is wider than the screen, and so it is cut somewhere'"


@pytest.mark.parametrize("columns", [60, 100, 200])
def test_row_36_a_diff_is_a_patch_without_our_numbers(columns: int) -> None:
    facts = json.dumps({"file_path": "t.py", "diff": DIFF, "additions": 4, "removals": 3})
    view = view_of(
        [message("a", "assistant", call("c", "edit", '{"file_path":"t.py"}')), result("t", "c", "ok", facts=facts)]
    )
    screen = Screen(view, columns, 60)
    screen.rows()
    assert screen.transcript.toggle("call c")
    rows = screen.texts()
    first = next(number for number, row in enumerate(rows) if "time.time()" in row)
    last = next(number for number, row in enumerate(rows) if "later = now + 1" in row)
    transcript = screen.transcript
    transcript.select(transcript.hit(first, 0), transcript.hit(last, columns))
    copied = transcript.selected_text()
    assert copied in DIFF and copied.startswith("-    now = time.time()") and "11" not in copied


def test_row_36_a_result_and_a_prompt_have_no_gutter() -> None:
    output = "first\n\tsecond with a tab and so many words that it is wider than the screen is\n\nlast"
    messages = [user("u", "one\n  two"), message("a", "assistant", call("c")), result("t", "c", output)]
    screen = Screen(view_of(messages), 40, 40)
    screen.rows()
    screen.transcript.toggle("call c")
    assert select(screen, "first", "last") == output
    assert select(screen, "one", "two") == "one\n  two"


def test_row_36_what_a_folded_card_shows_has_neither_bar_nor_number() -> None:
    facts = json.dumps({"file_path": "t.py", "diff": DIFF, "additions": 4, "removals": 3})
    calls = [call("c", "edit", '{"file_path":"t.py"}'), call("d")]
    messages = [message("a", "assistant", *calls), result("t", "c", "ok", facts=facts)]
    screen = Screen(view_of([*messages, result("v", "d", "first\n    second\n")]), 80, 40)
    rows = screen.texts()
    assert any(row == "  │     second" for row in rows)
    assert select(screen, "│ first", "second") == "first\n    second"
    changed = next(row for row in rows if "time.time()" in row)
    assert select(screen, changed, "time.time()") == "-     now = time.time()"


def test_row_36_a_file_that_was_read_has_no_numbers_and_its_colours() -> None:
    content = "     1\tdef f():\n     2\t    return 'x'\n\n[The file goes on.]"
    view = view_of([message("a", "assistant", call("c", "view", '{"file_path":"a/b.py"}')), result("t", "c", content)])
    screen = Screen(view)
    screen.rows()
    screen.transcript.toggle("call c")
    assert select(screen, "def", "'x'") == "def f():\n    return 'x'"
    screen.transcript.select(None)
    styles = {span.text: span.style for row in screen.rows() for span in row.spans}
    assert styles["def"] == "keyword" and styles["'x'"] == "string" and styles["[The file goes on.]"] == "dim"


def test_row_36_several_items_have_a_blank_line_where_the_screen_has_one() -> None:
    screen = Screen(view_of([user("u", "why?"), answer("a", "**Because** of it.")]))
    assert select(screen, "why", "of it.") == "why?\n\n**Because** of it."
    screen.transcript.select(None)
    assert screen.transcript.selected_text() == "" and not screen.transcript.has_selection


def test_row_36_whole_things_are_copied_by_name() -> None:
    fence = "say\n\n```py\nx = 1\n\ny = 2\n```\nand\n~~~\nplain\n~~~\n"
    view = view_of([user("u", "q"), answer("a", fence), message("b", "assistant", call("c"))])
    screen = Screen(view)
    screen.rows()
    assert screen.transcript.last_answer() == fence
    assert screen.transcript.item_text("u") == "q"


def test_what_is_selected_is_marked_and_the_rest_is_the_same_object() -> None:
    screen = Screen(view_of([answer("a", "one\n\ntwo\n\nthree"), message("b", "assistant", text_part("x"))]))
    before = screen.rows()
    transcript = screen.transcript
    transcript.select(transcript.hit(2, 2), transcript.hit(2, 3))
    rows = screen.rows()
    assert [span.text for span in rows[2].spans if span.style == "selected"] == ["tw"]
    assert all(one is other for number, (one, other) in enumerate(zip(before, rows, strict=True)) if number != 2)
    assert screen.rows()[2] is rows[2]


@pytest.mark.parametrize(("first", "last"), [("paragraph", "bold words"), ("wrapped", "once"), ("code", "code")])
def test_a_selection_outlives_another_width(first: str, last: str) -> None:
    screen = Screen(view_of([answer("a", PROSE)]), 40)
    before = select(screen, first, last)
    for columns in (25, 100, 60, 40):
        screen.columns = columns
        screen.texts()
        assert screen.transcript.selected_text() == before


def test_a_selection_over_items_and_code_outlives_another_width() -> None:
    screen = Screen(view_of([user("u", "a prompt of mine"), answer("a", CODE)]), 80)
    before = select(screen, "prompt", "where'")
    assert before.endswith("somewhere'")
    for columns in (40, 120):
        screen.columns = columns
        screen.texts()
        assert screen.transcript.selected_text() == before
