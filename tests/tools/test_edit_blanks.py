"""Edits whose text is there but for blanks: made with the file's own indentation, or refused, never guessed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.tools.base import ToolFailed
from covey.tools.replacement import replace_text

NOTE = "Whitespace at line ends or starts did not match old_string; the indentation of the file was used."


def replaced(text: str, old: str, new: str) -> str:
    result = replace_text(text, old, new, everywhere=False, name="a")
    assert result.note == NOTE
    return result.text


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        # shifted as a whole
        ("class A:\n    def f():\n        pass\n", "def f():\n    pass", "def f():\n    go()\n    if x:\n        y",
         "class A:\n    def f():\n        go()\n        if x:\n            y\n"),
        ("def f():\n    pass\n", "    def f():\n        pass\n", "    def g():\n        pass\n",
         "def g():\n    pass\n"),
        ("    a\n    b\n", "        a\n        b", "    x\n        a\n        b", "x\n    a\n    b\n"),
        ("        a\n        b\n", "    a\n    b", "x\n    a\n        b", "    x\n        a\n            b\n"),
        # tabs where the model saw blanks, and the other way round
        ("\tif a:\n\t\tb()\n", "    if a:\n        b()", "    if a:\n        c()\n            d()",
         "\tif a:\n\t\tc()\n\t\t\td()\n"),
        ("if a:\n\tb()\n", "if a:\n    b()", "if a:\n    if c:\n        b()", "if a:\n\tif c:\n\t\tb()\n"),
        ("\ta\n\tb\n", "a\nb", "a\n    b", "\ta\n\t\tb\n"),
        ("if a:\n    b()\n", "if a:\n\tb()", "if a:\n\tif c:\n\t\tb()", "if a:\n    if c:\n        b()\n"),
        # steps of another width
        ("if a:\n  b\n", "if a:\n    b", "if a:\n    b\n    if c:\n        d", "if a:\n  b\n  if c:\n    d\n"),
        # blanks at line ends, and lines that stay as they are in the file
        ("a  \nb\t\nc\n", "a\nb\nc", "a\nB\nc", "a  \nB\nc\n"),
        ("a\nb\n", "a   \nb", "a   \nB", "a\nB\n"),
        ("x\n\n  \ny\n", "x\n\n\ny", "x\n\nz", "x\n\nz\n"),
        # without any indentation: line for line
        ("def f():\n    return 1\n", "def f():\nreturn 1", "def f():\nreturn 2", "def f():\n    return 2\n"),
        # line ends
        ("  a\r\n  b\r\n", "a\nb\n", "a\nc\nd\n", "  a\r\n  c\r\n  d\r\n"),
        ("  a\nb", "a\nb\n", "c\nb\n", "  c\nb"),
        # deleting, and what follows
        ("  a\nb\n", "a\t\n", "", "b\n"),
        ("  a\nb\n", "a\t", "", "\nb\n"),
        ("  a\nb\n", "a\t\n", "c", "  cb\n"),
        ("  a\nb\n", "a\t", "c\n", "  c\n\nb\n"),
    ],
)  # fmt: skip
def test_the_place_is_found_and_keeps_its_indentation(text: str, old: str, new: str, after: str) -> None:
    assert replaced(text, old, new) == after


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        ("  a\n\ta\n", "    a", "b", r"it occurs more than once, on lines 1, 2\. Give it exactly"),
        ("  a\n" * 50, "\ta", "b", "on lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more"),
        ("if a:\n    b\n", "if a:\nb", "c\nd\ne", "it is here:\n     1\tif a:\n     2\t    b"),
        ("a b\n", "a  b", "c", "most similar"),  # blanks inside of a line are text
        ("x = a\n", " a", "b", None),  # exact, and in the middle of a line
        ("\ta\n", "    a", "\ta", "differ only in whitespace"),
        ("\ta\n", "     1\ta", "b", "Leave out the line numbers and tabs"),
        ("\n\n", " \n ", "b", "old_string is not in a"),
    ],
)
def test_what_is_not_clear_is_refused(text: str, old: str, new: str, message: str | None) -> None:
    if message is None:
        assert replace_text(text, old, new, everywhere=False, name="a").note == ""
        return
    with pytest.raises(ToolFailed, match=message):
        replace_text(text, old, new, everywhere=False, name="a")


LINES = st.lists(st.sampled_from(["", "a", "  a", "\tb", "    b", "a b", "c  "]), min_size=1, max_size=8)


@settings(deadline=None)
@given(LINES, LINES, LINES, LINES)
def test_all_but_the_place_stays(before: list[str], there: list[str], after: list[str], new: list[str]) -> None:
    """Whatever is made of an edit: the lines around it are untouched, and the words of the new text are in it."""
    there = [f"<{index}>{line}" for index, line in enumerate(there)]
    text = "\n".join([*before, *(f"   {line} " for line in there), *after])
    old, put = "\n".join(f"\t{line}" for line in there), "\n".join(new)
    try:
        result = replace_text(text, old, put, everywhere=False, name="a")
    except ToolFailed:
        return
    lines = result.text.split("\n")
    assert lines[: len(before)] == before
    assert lines[len(lines) - len(after) :] == after
    middle = lines[len(before) : len(lines) - len(after)]
    assert [line.strip() for line in middle] == ([line.strip() for line in new] if put.strip("\n") or put else [""])
