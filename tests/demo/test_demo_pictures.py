"""The pictures in docs/screens, and the small terminal that draws them."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from covey.lines.widths import width
from tests.demo.record import PLACE
from tests.demo.record_tui import PICTURES, SCREENS, SIZES
from tests.demo.svg import GROUNDS, picture
from tests.demo.terminal import ScreenModel


def test_rows_that_are_drawn_over_are_as_they_became() -> None:
    screen = ScreenModel()
    screen.feed("one\n⠋ waits\n  │ more\x1b[1A\r\x1b[J\x1b[32mtwo\x1b[0m\nhalf\r\x1b[Kwhole")
    assert screen.text == "one\ntwo\nwhole"
    assert screen.rows[1] == [("t", "32"), ("w", "32"), ("o", "32")]


def test_whatever_covey_does_not_use_is_found() -> None:
    for hostile in ("\x1b[2H", "\x07", "\u202e"):
        with pytest.raises(AssertionError):
            ScreenModel().feed(hostile)


@pytest.mark.parametrize("theme", GROUNDS)
@pytest.mark.parametrize("columns", [80, 120])
def test_there_is_a_picture_of_each_theme_at_each_width(theme: str, columns: int) -> None:
    drawn = (PLACE / f"run-{columns}-{theme}.svg").read_text()
    texts = "".join(ElementTree.fromstring(drawn).itertext())
    assert "Allow it?" in texts and "✓" in texts and "collecting 4 of 6" in texts
    assert GROUNDS[theme][0] in drawn


def test_two_windows_and_a_command_are_shown_through_a_cancel_and_a_kill() -> None:
    shown = (PLACE / "together.txt").read_text()
    for words in ("cancelled by kim", "cancelled by you", "cancelled by somebody else", "exit code 4", "queue 1 ▸"):
        assert words in shown
    assert "allowed by ann" in shown
    assert "is here, and once." in "".join(ElementTree.parse(PLACE / "together.svg").getroot().itertext())
    *_, last = shown.split("kill -9")
    assert last.count("interrupted: The server stopped") == 2, "in both windows, once"
    assert last.count("is here, and once.") == 2


@pytest.mark.parametrize(("columns", "lines"), SIZES.items())
def test_each_screen_of_the_terminal_face_is_there_at_each_size(columns: int, lines: int) -> None:
    _, *pages = f"\n{(PLACE / f'tui-{columns}.txt').read_text()}".split("\n## ")
    shown = {page.partition("\n")[0]: page.splitlines() for page in pages}
    assert list(shown) == SCREENS
    edge = f"+{'-' * columns}+"
    for name, rows in shown.items():
        first, last = (number for number, row in enumerate(rows) if row == edge)
        inside = rows[first + 1 : last]
        assert len(inside) == lines, name
        assert all(width(row) <= columns + 1 for row in inside), name
        assert "keys" in inside[-1], name
    for number, name in PICTURES:
        assert (PLACE / f"tui-{number}-{name}.svg").exists()


def test_blanks_keep_their_places_in_browsers_that_drop_or_join_them() -> None:
    drawn = picture([[(char, "") for char in "  a   b "]], 80, "dark")
    (text,) = [each for each in ElementTree.fromstring(drawn).iter() if each.tag.endswith("text")]
    assert (text.text, text.get("x"), text.get("textLength")) == ("a\u00a0\u00a0 b", "30.8", "42.0")


def test_what_is_drawn_is_text_and_no_markup() -> None:
    drawn = picture([[(char, "1;38;5;117") for char in "<a & b>"]], 80, "dark")
    (text,) = [each for each in ElementTree.fromstring(drawn).iter() if each.tag.endswith("text")]
    assert (text.text, text.get("fill"), text.get("font-weight")) == ("<a & b>", "#87d7ff", "bold")
