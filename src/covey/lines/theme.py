"""Lines → text for a terminal, in the colours of a theme. Whatever others wrote loses its control characters here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from covey.lines.line import Style, StyledLine
from covey.lines.plain_text import plain

VARIABLE = "COVEY_THEME"
"""Chooses a theme by its name; without it, what the terminal says of itself counts."""


@dataclass(frozen=True, slots=True)
class Theme:
    name: str
    codes: Mapping[Style, str]
    """Parameters of SGR, the control sequence for colours. A style without any looks like plain text."""


_SHAPES: dict[Style, str] = {"dim": "2", "strong": "1", "emphasis": "3", "struck": "9", "heading": "1", "key": "1"}
_SHAPES |= {"border": "2", "bar": "7", "accent": "1", "selected": "7", "found": "7"}
SIXTEEN = Theme(
    "16",
    {
        **_SHAPES,
        "heading": "1;36",
        "marker": "36",
        "quote": "2",
        "link": "4",
        "code": "36",
        "keyword": "35",
        "string": "32",
        "number": "36",
        "comment": "2",
        "added": "32",
        "removed": "31",
        "success": "32",
        "warning": "33",
        "error": "31",
        "tool": "1",
        "accent": "1;36",
        "found": "30;43",
    },
)
"""The terminal's own colours: these are readable on whatever background its user has chosen."""
DARK = Theme(
    "dark",
    {
        **_SHAPES,
        "dim": "38;5;245",
        "heading": "1;38;5;117",
        "marker": "38;5;75",
        "quote": "38;5;246",
        "link": "4;38;5;111",
        "code": "38;5;180",
        "keyword": "38;5;176",
        "string": "38;5;114",
        "number": "38;5;173",
        "comment": "38;5;243",
        "added": "38;5;114",
        "removed": "38;5;174",
        "success": "38;5;114",
        "warning": "38;5;179",
        "error": "38;5;203",
        "tool": "1;38;5;252",
        "key": "1;38;5;117",
        "border": "38;5;240",
        "bar": "38;5;252;48;5;236",
        "accent": "1;38;5;117",
        "selected": "38;5;255;48;5;25",
        "found": "38;5;16;48;5;179",
    },
)
LIGHT = Theme(
    "light",
    {
        **_SHAPES,
        "dim": "38;5;242",
        "heading": "1;38;5;25",
        "marker": "38;5;25",
        "quote": "38;5;240",
        "link": "4;38;5;25",
        "code": "38;5;94",
        "keyword": "38;5;90",
        "string": "38;5;28",
        "number": "38;5;130",
        "comment": "38;5;243",
        "added": "38;5;28",
        "removed": "38;5;124",
        "success": "38;5;28",
        "warning": "38;5;130",
        "error": "38;5;160",
        "tool": "1;38;5;235",
        "key": "1;38;5;25",
        "border": "38;5;249",
        "bar": "38;5;236;48;5;254",
        "accent": "1;38;5;25",
        "selected": "38;5;16;48;5;153",
        "found": "38;5;16;48;5;221",
    },
)
NONE = Theme("none", {})
SHAPES = Theme("none", _SHAPES)
"""No colours, for a screen: what is selected or meant is still told apart, by bold, dim and reversed text."""
THEMES = {theme.name: theme for theme in (DARK, LIGHT, SIXTEEN, NONE)}


def paint(line: StyledLine, theme: Theme) -> str:
    """The line as a terminal shows it. Its text is made plain, and has no line end: what it says stays on its row."""
    return "".join(_painted(span.text, theme.codes.get(span.style, "")) for span in line.spans)


def _painted(text: str, code: str) -> str:
    safe = plain(text).replace("\n", " ")
    return f"\x1b[{code}m{safe}\x1b[0m" if code and safe else safe


def theme_doubt(env: Mapping[str, str]) -> str:
    """What is wrong with the user's choice; '' if nothing is."""
    chosen = env.get(VARIABLE, "")
    if not chosen or chosen in THEMES:
        return ""
    *names, last = THEMES
    return f"{VARIABLE}={chosen} is no theme: it may be {', '.join(names)} or {last}."


def choose_theme(env: Mapping[str, str], *, is_terminal: bool) -> Theme:
    """What the environment asks for. A no wins over everything, then the user's choice, then what is known."""
    forced = env.get("FORCE_COLOR", "0") not in ("", "0") or env.get("CLICOLOR_FORCE", "0") not in ("", "0")
    if env.get("NO_COLOR"):
        return NONE
    if not forced and (not is_terminal or env.get("TERM") == "dumb" or env.get("CLICOLOR") == "0"):
        return NONE
    if chosen := THEMES.get(env.get(VARIABLE, "")):
        return chosen
    if env.get("COLORTERM") not in ("truecolor", "24bit") and "256" not in env.get("TERM", ""):
        return SIXTEEN
    return LIGHT if env.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15") else DARK
