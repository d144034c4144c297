"""Places in a text, in the units of each encoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.tools.lsp.positions import BadRange, Encoding, LineIndex, Position, Range, read_position, read_range

TEXT = "ü = 1\r\n😀 = add(ü)\nlast"


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 7), ("utf-16", 5), ("utf-32", 4)])
def test_l4_the_column_of_a_name_after_other_characters(encoding: Encoding, column: int) -> None:
    index = LineIndex(TEXT, encoding)
    assert index.position(TEXT.index("add")) == Position(1, column)
    assert index.between(Range(Position(1, column), Position(1, column + 3))) == "add"


@given(st.text(alphabet="aü😀\r\n\u2028\x0b", max_size=30), st.sampled_from(["utf-8", "utf-16", "utf-32"]), st.data())
def test_every_offset_has_one_position(text: str, encoding: Encoding, data: st.DataObject) -> None:
    index = LineIndex(text, encoding)
    offset = data.draw(st.integers(0, len(text)))
    found = index.offset(index.position(offset))
    # Between \r and \n is no place of its own: it is the end of the line.
    assert found == offset or (text[offset - 1 : offset + 1] == "\r\n" and found == offset - 1)


def test_a_column_after_the_end_is_the_end_and_a_line_after_it_is_none() -> None:
    index = LineIndex("ab\ncd")
    assert index.offset(Position(0, 99)) == 2
    with pytest.raises(BadRange):
        index.offset(Position(2, 0))
    with pytest.raises(BadRange):
        LineIndex("😀").offset(Position(0, 1))


@pytest.mark.parametrize("given", [None, {}, {"line": -1, "character": 0}, {"line": "1", "character": 0}, {"line": 1}])
def test_what_is_no_position_is_refused(given: object) -> None:
    with pytest.raises(BadRange):
        read_position(given)
    with pytest.raises(BadRange):
        read_range({"start": given, "end": {"line": 0, "character": 0}})


def test_a_range_does_not_end_before_it_begins() -> None:
    with pytest.raises(BadRange):
        read_range({"start": {"line": 1, "character": 0}, "end": {"line": 0, "character": 5}})
