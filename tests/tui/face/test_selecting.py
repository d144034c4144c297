"""Rows of the conversation by keyboard: selected, and copied as they were written."""

from __future__ import annotations

from covey.tui.face.effects import Copy
from tests.tui.face.desk import Desk, a_prompt


def test_rows_are_selected_and_copied_by_keys() -> None:
    desk = Desk()
    desk.event(a_prompt(text="one\ntwo\nthree"))
    desk.look()
    assert "three" in desk.text
    desk.keys("tab", "v", "v")
    assert [span.text for row in desk.face.frame(desk.now).rows for span in row.spans if span.style == "selected"]
    assert desk.keys("y") == [Copy("one\ntwo", "the selection")]
    assert desk.keys("y") == [Copy("one\ntwo\nthree", "the item")]
    desk.keys("v", "v", "v", "V")
    assert desk.keys("ctrl+c") == [Copy("one\ntwo", "the selection")]
