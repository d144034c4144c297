"""Lists, pages and suggestions as rows, docked above the prompt. Pure."""

from __future__ import annotations

from covey.client.view.view import View
from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import one_line
from covey.lines.widths import cut, width
from covey.tui.face import lists
from covey.tui.face.boxes import beside, fit, rule, spread, window
from covey.tui.face.composer import Completion
from covey.tui.face.fuzzy import places
from covey.tui.face.line_editor import line_with_caret
from covey.tui.face.sizes import WIDEST_ROW, page_columns
from covey.tui.face.state import Item, Picker, TextPage

SUGGESTIONS_SHOWN = 8
PREVIEW_FROM = 100
"""Columns from which a list of sessions has a preview beside it."""
ABOVE_ITEMS = 2
"""Rows of a list above its items: the title, and what was typed."""
Caret = tuple[int, int] | None


def picker_height(room: int) -> int:
    """How many rows a list may take of those above the prompt."""
    return max(room * 2 // 3, min(room, 8))


def _shown_items(picker: Picker, count: int, columns: int, height: int) -> range:
    has_preview = picker.kind == "sessions" and columns >= PREVIEW_FROM
    rows = max(min(count, height - 3), 1) if not has_preview else max(height - 3, 1)
    return window(count, min(picker.selected, max(count - 1, 0)), rows)


def item_at(picker: Picker, columns: int, height: int, row: int) -> int | None:
    """Which of the fitting items stands in this row of `picker_rows`; None: none does."""
    shown = _shown_items(picker, len(lists.fitting(picker)), columns, height)
    return shown[row - ABOVE_ITEMS] if ABOVE_ITEMS <= row < ABOVE_ITEMS + len(shown) else None


def _shown_suggestions(completion: Completion, room: int) -> range:
    at = min(completion.selected, len(completion.items) - 1)
    return window(len(completion.items), at, min(room, SUGGESTIONS_SHOWN))


def suggestion_at(completion: Completion, room: int, row: int) -> int | None:
    """Which one stands in this row of `completion_rows`; None: none does."""
    shown = _shown_suggestions(completion, room)
    return shown[row] if 0 <= row < len(shown) else None


def picker_rows(picker: Picker, view: View, columns: int, height: int) -> tuple[list[StyledLine], Caret]:
    """A title, what was typed, the items around the chosen one. Without a caret, it stands in the prompt."""
    found = lists.fitting(picker)
    has_preview = picker.kind == "sessions" and columns >= PREVIEW_FROM
    selected = min(picker.selected, max(len(found) - 1, 0))
    list_columns = min(columns * 3 // 5 if has_preview else columns, WIDEST_ROW)
    lines = [
        _item_row(found[n], picker, n == selected, list_columns)
        for n in _shown_items(picker, len(found), columns, height)
    ]
    if not found:
        why = "loading …" if picker.is_loading else "nothing fits" if picker.items else "there are none"
        lines = [line(Span(f"  {why}", "dim"))]
    if has_preview:
        shown = lists.preview(view, found[selected].id) if found else []
        about = [Span(cut(text, columns - list_columns - 4), "dim") for text in shown]
        height = max(len(lines), len(about))
        about += [Span("")] * (height - len(about))
        edge = Span("│ ", "border")
        lines = beside([(lines, list_columns), ([line(edge, each) for each in about], columns - list_columns)], height)
    count = f"{len(found)} of {len(picker.items)}" if picker.query.text else f"{len(picker.items)}"
    head = rule(columns, picker.title, count, "accent")
    if not picker.filters:
        return [head, line(Span(f" {cut(picker.hint, columns - 2)}", "dim")), *lines], None
    if picker.renaming is not None:
        query, column = line_with_caret(picker.renaming, columns - 1, " new title: ")
    else:
        query, column = line_with_caret(picker.query, columns - 1, " › ")
    hint = _hint(picker)
    return [head, query, *lines, *([hint] if hint.spans else [])], (1, column)


def _hint(picker: Picker) -> StyledLine:
    if picker.deleting:
        return line(Span(" the same key again deletes it; any other leaves it", "warning"))
    words = "⏎ keep it   esc back" if picker.renaming is not None else picker.hint
    return line(Span(f" {words}", "dim")) if words else StyledLine()


def _item_row(item: Item, picker: Picker, is_selected: bool, columns: int) -> StyledLine:
    mark = {"": " ", "older": " "}.get(item.mark, item.mark)
    about = cut(item.about, columns // 2)
    room = columns - width(about) - 8  # the mark, the sign of what is current, and a gap
    text = cut(item.text, max(room, 8))
    style: Style = "selected" if is_selected else ""
    if item.id == picker.deleting:
        style = "removed"
    hits = set(places(picker.query.text, item.text))
    spans = [Span(f" {mark} ", "warning" if mark in "?✗" else "accent")]
    spans += _highlighted(text, hits, style)
    right = line(Span(about, "dim"), Span(" ✓ " if item.is_current else "   ", "success"))
    return spread(StyledLine(tuple(spans)), right, columns)


def _highlighted(text: str, hits: set[int], style: Style) -> list[Span]:
    if not hits or style:
        return [Span(text, style)]
    spans: list[Span] = []
    for number, char in enumerate(text):
        kind: Style = "accent" if number in hits else style
        if spans and spans[-1].style == kind:
            spans[-1] = Span(spans[-1].text + char, kind)
        else:
            spans.append(Span(char, kind))
    return spans


def page_rows(page: TextPage, columns: int, height: int) -> list[StyledLine]:
    rows = max(height - 1, 1)
    lines = page.text(page_columns(columns)).lines
    top = max(0, min(page.top, len(lines) - rows))
    last = min(top + rows, len(lines))
    where = f"{last * 100 // max(len(lines), 1)} %" if len(lines) > rows else ""
    right = " · ".join(filter(None, [page.hint, where]))
    shown = [fit(line(" ", *each.spans), columns) for each in lines[top:last]]
    return [rule(columns, page.title, right, "accent"), *shown, *[StyledLine()] * (rows - len(shown))]


def completion_rows(completion: Completion, columns: int, room: int = SUGGESTIONS_SHOWN) -> list[StyledLine]:
    """Around the chosen one, in at most so many rows."""
    if not completion.items or room < 1:
        return []
    rows: list[StyledLine] = []
    at = min(completion.selected, len(completion.items) - 1)
    sign = "/" if completion.kind == "command" else "@"
    widest = max((width(s.text) for s in completion.items[:200]), default=0)
    for number in _shown_suggestions(completion, room):
        each = completion.items[number]
        style: Style = "selected" if number == at else ""
        name = _highlighted(cut(one_line(each.text), columns - 4), set(each.places), style)
        pad = " " * (min(widest, columns // 2) - width(each.text) + 3)
        about = Span(f"{pad}{one_line(each.about)}", "dim") if each.about else Span("")
        rows.append(fit(line(Span(f"   {sign}", "dim"), *name, about), columns))
    return rows
