"""Colours: by meaning, only where they are wanted, and never a way for others to drive the terminal."""

from __future__ import annotations

import pytest

from covey.lines.line import STYLES, Span, line
from covey.lines.theme import DARK, LIGHT, NONE, SIXTEEN, THEMES, choose_theme, paint, theme_doubt


def test_every_theme_with_colours_has_one_for_every_style() -> None:
    for theme in (DARK, LIGHT, SIXTEEN):
        assert set(STYLES) - set(theme.codes) == {""}
    assert not NONE.codes


def test_text_of_others_is_plain_in_every_theme() -> None:
    hostile = line(Span("a\x1b[31mb\nc\x9b", "error"), "\u202ed")
    assert paint(hostile, NONE) == "a[31mb cd"
    assert paint(hostile, SIXTEEN) == "\x1b[31ma[31mb c\x1b[0md"
    assert {paint(line("x"), theme) for theme in THEMES.values()} == {"x"}


@pytest.mark.parametrize(
    ("env", "is_terminal", "theme"),
    [
        ({"TERM": "xterm"}, True, SIXTEEN),
        ({"TERM": "xterm-256color"}, True, DARK),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, True, DARK),
        ({"TERM": "xterm-256color", "COLORFGBG": "0;15"}, True, LIGHT),
        ({"TERM": "xterm-256color", "COLORFGBG": "15;0"}, True, DARK),
        ({"TERM": "xterm-256color", "COVEY_THEME": "light"}, True, LIGHT),
        ({"TERM": "xterm-256color", "COVEY_THEME": "no such"}, True, DARK),
        ({"TERM": "xterm-256color"}, False, NONE),
        ({"TERM": "xterm-256color", "FORCE_COLOR": "1"}, False, DARK),
        ({"TERM": "xterm-256color", "CLICOLOR_FORCE": "1"}, False, DARK),
        ({"TERM": "xterm-256color", "FORCE_COLOR": "0"}, False, NONE),
        ({"TERM": "xterm-256color", "CLICOLOR": "0"}, True, NONE),
        ({"TERM": "xterm-256color", "NO_COLOR": "1", "FORCE_COLOR": "1"}, True, NONE),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, True, DARK),
        ({"TERM": "dumb"}, True, NONE),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, SIXTEEN),
    ],
)
def test_the_environment_says_which_colours_are_wanted(env: dict[str, str], is_terminal: bool, theme: object) -> None:
    assert choose_theme(env, is_terminal=is_terminal) is theme


def test_a_theme_that_there_is_not_is_named_with_those_that_there_are() -> None:
    assert theme_doubt({"COVEY_THEME": "bogus"}) == "COVEY_THEME=bogus is no theme: it may be dark, light, 16 or none."
    assert {theme_doubt(env) for env in ({}, {"COVEY_THEME": ""}, {"COVEY_THEME": "16"})} == {""}
