"""The key table and the themes: no key means two things, and everything can be read."""

from __future__ import annotations

import itertools
import re

import pytest

from covey.lines.line import STYLES, Style
from covey.lines.theme import DARK, LIGHT, NONE, SHAPES, SIXTEEN, THEMES, Theme
from covey.tui.face.keys import DEFAULT, KeyConflict, check, configured
from tests.tui.face.desk import Desk

# ── keys ──


def test_the_default_keys_are_free_of_conflicts_and_every_one_is_in_the_help() -> None:
    check(DEFAULT)
    desk = Desk(100, 400)
    desk.keys("f1")
    shown = " ".join(desk.text.split())
    for binding in DEFAULT:
        assert not binding.about or binding.about in shown, binding.intent


def test_a_configured_key_is_shown_in_footer_and_help_and_works() -> None:
    keys = configured({"palette": "ctrl+o", "details": ["f5"]})
    assert keys.shown("palette") == "ctrl+o"
    assert keys.find(("composer", "editing", "everywhere"), "ctrl+o") == "palette"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"palette": "ctrl+k"}, "keys.palette: ctrl+k already means kill_line"),
        ({"editor": "ctrl+p"}, "keys.editor: ctrl+p already means palette"),
        ({"palette": "k"}, "keys.palette: k could not be typed any more"),
        ({"palete": "ctrl+k"}, "keys.palete: there is no such action"),
        ({"palette": "hyper+k"}, "is no key"),
        ({"palette": "f5", "details": "f5"}, "f5 already means"),
    ],
)
def test_keys_that_cannot_be_are_refused_with_what_to_do(wanted: dict[str, str], said: str) -> None:
    with pytest.raises(KeyConflict, match=re.escape(said)):
        configured(wanted)


# ── themes ──

_LEVELS = (0, 95, 135, 175, 215, 255)
BACKGROUNDS = {"dark": (0, 0, 0), "light": (255, 255, 255)}
DIM_ENOUGH, READABLE = 3.0, 4.5


def rgb(number: int) -> tuple[int, int, int]:
    if number >= 232:
        return (8 + (number - 232) * 10,) * 3
    if number >= 16:
        red, green, blue = (number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6
        return _LEVELS[red], _LEVELS[green], _LEVELS[blue]
    raise AssertionError("a colour of the terminal has no value of its own")


def luminance(colour: tuple[int, int, int]) -> float:
    parts = [value / 255 for value in colour]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("theme", "style"), list(itertools.product((DARK, LIGHT), STYLES)))
def test_row_40_every_style_of_both_themes_is_readable_on_its_background(theme: Theme, style: Style) -> None:
    code = theme.codes.get(style, "")
    ground = re.search(r"48;5;(\d+)", code)
    text = re.search(r"38;5;(\d+)", code)
    if text is None:
        return
    behind = rgb(int(ground[1])) if ground else BACKGROUNDS[theme.name]
    needed = READABLE if style not in ("border", "dim", "comment") else DIM_ENOUGH if style != "border" else 1.5
    assert contrast(rgb(int(text[1])), behind) >= needed


def test_row_40_sixteen_colours_never_set_text_and_ground_apart_and_none_sets_nothing() -> None:
    for style, code in SIXTEEN.codes.items():
        numbers = {int(number) for number in code.split(";")}
        has_ground = bool(numbers & set(range(40, 48)))
        has_text = bool(numbers & set(range(30, 38)))
        assert not has_ground or has_text, style
    assert dict(NONE.codes) == {}
    for style in ("selected", "found", "accent", "key"):
        assert SHAPES.codes.get(style), "told apart without colours"
    assert all(int(number) < 30 for code in SHAPES.codes.values() for number in code.split(";"))
    assert set(THEMES) == {"dark", "light", "16", "none"}
