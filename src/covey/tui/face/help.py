"""The page with all keys, made from the key table. Pure."""

from __future__ import annotations

from functools import partial

from covey.lines.line import Span, StyledLine, line
from covey.lines.widths import width
from covey.lines.wrap import wrap
from covey.tui.face.keys import TITLES, Context, KeyTable, shown
from covey.tui.face.state import PageText, TextPage

ORDER: tuple[Context, ...] = (
    "composer",
    "everywhere",
    "transcript",
    "permission",
    "question",
    "approval",
    "queue",
    "picker",
    "page",
    "completion",
    "editing",
)
"""What is needed first comes first."""
WIDEST = 84
"""Further apart, keys and words would not be read together."""
SIGNS = (
    ("/", "a command"),
    ("@", "a file of this directory"),
    ("!", "a command of your own, beside the agent; !! keeps it from the model"),
    ("?", "these keys, if nothing else is written"),
)


def help_page(keys: KeyTable) -> TextPage:
    return TextPage("keys", partial(_all_keys, keys), hint="esc closes")


def _all_keys(keys: KeyTable, columns: int) -> PageText:
    """What a key does is wrapped, and never cut."""
    columns = min(columns, WIDEST)
    lines: list[StyledLine] = []
    for context in ORDER:
        lines += [StyledLine(), line(Span(f" {TITLES[context]}", "heading"))]
        for binding in keys.of(context):
            lines += _rows("  ".join(shown(key) for key in binding.keys), binding.about, columns)
    lines += [StyledLine(), line(Span(" In the prompt", "heading"))]
    for sign, about in SIGNS:
        lines += _rows(sign, about, columns)
    changed = Span('Every key can be changed: [keys] in your configuration, such as  palette = "ctrl+k"', "dim")
    lines += [StyledLine(), *wrap([changed], columns, (Span(" "),), (Span(" "),))]
    return PageText(tuple(lines[1:]))


def _rows(names: str, about: str, columns: int) -> list[StyledLine]:
    room = columns // 3
    rest = (Span(" " * (room + 4)),)
    head = Span(f"   {names:<{room}} ", "key")
    if width(names) <= room:
        return wrap([Span(about)], columns, (head,), rest)
    margin = (Span("   "),)
    return [*wrap([Span(names, "key")], columns, margin, margin), *wrap([Span(about)], columns, rest, rest)]
