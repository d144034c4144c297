"""Text is cut between characters, never inside of one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.protocol.utf8 import next_character


@given(text=st.text(st.characters(exclude_categories=["Cs"])), at=st.integers(0, 100))
def test_the_place_is_the_next_at_which_both_sides_are_whole(text: str, at: int) -> None:
    data = text.encode()
    at = min(at, len(data))
    found = next_character(data, at)
    begins = {len(text[:index].encode()) for index in range(len(text) + 1)}
    assert found == min(place for place in begins if place >= at)
