"""The state and the view → one frame, and where on it things are, for the mouse. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from covey.client.view.view import View
from covey.lines.line import Span, StyledLine, line
from covey.lines.plain_text import one_line
from covey.lines.widths import cut_line
from covey.lines.words import counted
from covey.tui.face import looks
from covey.tui.face.ask_lines import ask_panel
from covey.tui.face.boxes import beside, bottom_of, line_width, spread
from covey.tui.face.composer_lines import composer_rows
from covey.tui.face.landing import landing_rows
from covey.tui.face.line_editor import line_with_caret
from covey.tui.face.list_lines import completion_rows, page_rows, picker_height, picker_rows
from covey.tui.face.panel_lines import left_side, pinned_rows, right_side
from covey.tui.face.room import fewest_of_talk
from covey.tui.face.sizes import (
    BORDER,
    RIGHT_BORDER,
    body_columns,
    foot_rows,
    head_rows,
    left_columns,
    right_columns,
)
from covey.tui.face.state import FaceState, Picker, SearchBar, TextPage
from covey.tui.face.status_lines import footer_line, status_line
from covey.tui.frame import ScreenFrame

Caret = tuple[int, int]
Part = Literal["ask", "pinned", "suggestions", "picker"]


class Pane(Protocol):
    """The conversation, as rows of a given size."""

    def rows(self, columns: int, height: int) -> Sequence[StyledLine]: ...

    @property
    def is_following(self) -> bool: ...

    @property
    def new_below(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Regions:
    """Where on the screen things are: rows from the top, columns from the left."""

    left: int
    columns: int
    conversation: range
    composer: range
    parts: Mapping[Part, range]
    """What is docked in between."""


@dataclass(frozen=True, slots=True)
class Layout:
    frame: ScreenFrame
    regions: Regions


def lay_out(state: FaceState, view: View, pane: Pane, client_id: str) -> Layout:
    width, height = max(state.width, 10), max(state.height, 4)
    left, columns, right = left_columns(state), body_columns(state), right_columns(state)
    head = [status_line(state, view, width, client_id), StyledLine()][: head_rows(state)]
    foot = [footer_line(state, view, width)][: foot_rows(state)]
    body_height = height - len(head) - len(foot)
    body = _body(state, view, pane, columns, body_height, client_id, has_right=bool(right))
    first = len(head)
    rows = body.rows
    if left or right:
        rows = _with_sides(state, view, rows, left, columns, right, client_id)
    frame_rows = tuple(_no_wider(row, width) for row in [*head, *rows, *foot][:height])
    offset = left + len(BORDER) * bool(left)
    where = (body.caret[0] + first, body.caret[1] + offset) if body.caret else None
    parts: dict[Part, range] = {part: _moved(there, first) for part, there in body.parts.items()}
    regions = Regions(offset, columns, _moved(body.talk, first), _moved(body.prompt, first), parts)
    return Layout(ScreenFrame(width, frame_rows, where, _title(view)), regions)


def _no_wider(row: StyledLine, columns: int) -> StyledLine:
    return row if line_width(row) <= columns else cut_line(row, columns)


def _moved(rows: range, by: int) -> range:
    return range(rows.start + by, rows.stop + by)


@dataclass(frozen=True, slots=True)
class _Body:
    """What is between the first row and the last one."""

    rows: list[StyledLine]
    caret: Caret | None
    talk: range
    prompt: range
    parts: Mapping[Part, range]


def _body(
    state: FaceState, view: View, pane: Pane, columns: int, height: int, client_id: str, *, has_right: bool
) -> _Body:
    """Conversation, asks, what is pinned, suggestions, prompt: from the top, just so high."""
    prompt, caret = composer_rows(state, view, columns)
    prompt = prompt[: max(height - 1, 1)]
    room = height - len(prompt)
    at: Caret | None = (room + caret[0], caret[1]) if caret[0] < len(prompt) else None
    if isinstance(state.overlay, TextPage):
        rows = page_rows(state.overlay, columns, room)
        return _Body([*rows, *prompt], None, range(0), range(room, height), {})
    if isinstance(state.overlay, Picker):
        return _with_picker(state, state.overlay, view, pane, columns, room, prompt, at)
    ask, ask_caret = ask_panel(state, view, client_id)
    fewest = fewest_of_talk(state) if ask else 1
    completion = state.composer.completion
    suggests = completion if state.focus == "composer" else None
    suggested = completion_rows(suggests, columns, room - fewest) if suggests else []
    pinned = pinned_rows(state, view, columns, has_right=has_right)
    search, search_caret = _search_row(state, columns)
    others = len(pinned) if state.focus == "queue" else 0  # what has the keys is seen
    ask = ask[: max(room - fewest - others, 0)]
    below = (search + ask + pinned)[: max(room - fewest, 0)] + suggested
    below = below[-max(room - fewest, 0) :] if room > 1 else []
    talk_height = room - len(below)
    talk = _conversation(state, view, pane, columns, talk_height)
    if search_caret is not None:
        at = (talk_height, search_caret)
    elif ask_caret:
        at = (talk_height + len(search) + ask_caret[0], ask_caret[1])
    elif state.focus in ("transcript", "queue"):
        at = None
    parts = _docked(room, {"ask": len(ask), "pinned": len(pinned), "suggestions": len(suggested)})
    return _Body([*talk, *below, *prompt], at, range(talk_height), range(room, height), parts)


def _docked(bottom: int, heights: Mapping[Part, int]) -> dict[Part, range]:
    """Where each part is, from the lowest up."""
    found: dict[Part, range] = {}
    for part, rows in reversed(list(heights.items())):
        found[part] = range(bottom - rows, bottom)
        bottom -= rows
    return found


def _with_picker(
    state: FaceState,
    picker: Picker,
    view: View,
    pane: Pane,
    columns: int,
    room: int,
    prompt: list[StyledLine],
    prompt_caret: Caret | None,
) -> _Body:
    rows, caret = picker_rows(picker, view, columns, picker_height(room))
    rows = rows[:room]
    talk_height = room - len(rows)
    talk = _conversation(state, view, pane, columns, talk_height)
    at = (talk_height + caret[0], caret[1]) if caret else prompt_caret
    parts = _docked(room, {"picker": len(rows)})
    return _Body([*talk, *rows, *prompt], at, range(talk_height), range(room, room + len(prompt)), parts)


def _conversation(state: FaceState, view: View, pane: Pane, columns: int, height: int) -> list[StyledLine]:
    if height <= 0:
        return []
    if not view.current:
        return bottom_of(landing_rows(state, view, columns, height), height)
    rows = list(pane.rows(columns, height))
    if pane.is_following or height < 2:
        return rows
    new = f"{pane.new_below} new below" if pane.new_below else "more below"
    way = "last" if state.focus == "transcript" else "to_end"  # the key that the last row names
    mark = line(Span(f" ▼ {new} ", "accent"), Span(state.preferences.keys.shown(way), "dim"))
    return [*rows[:-1], mark]


def _search_row(state: FaceState, columns: int) -> tuple[list[StyledLine], int | None]:
    bar = state.search
    if bar is None:
        return [], None
    count = _search_count(bar)
    row, column = line_with_caret(bar.query, columns - len(count) - 1, " search: ")
    shown = spread(row, line(Span(count, "dim")), columns)
    return [shown], column if bar.is_typing else None


def _search_count(bar: SearchBar) -> str:
    if not bar.query.text:
        return ""
    here = f"{bar.number} of {bar.total}" if bar.number else "" if bar.further_up else "not found"
    if bar.is_loading:
        further = "looking further up …"
    else:
        further = f"{counted(len(bar.further_up), 'message')} further up" if bar.further_up else ""
    return " · ".join(filter(None, (here, further))) + " "


def _with_sides(
    state: FaceState, view: View, body: list[StyledLine], left: int, columns: int, right: int, client_id: str
) -> list[StyledLine]:
    height = len(body)
    border = [line(Span(BORDER, "border"))] * height
    parts: list[tuple[Sequence[StyledLine], int]] = []
    if left:
        parts += [(left_side(state, view, left, height, client_id), left), (border, len(BORDER))]
    parts.append((body, columns))
    if right:
        border = [line(Span(RIGHT_BORDER, "border"))] * height
        parts += [(border, len(RIGHT_BORDER)), (right_side(state, view, right, height), right)]
    return beside(parts, height)


def _title(view: View) -> str:
    """Of the window: what it is about, and whether it works or asks."""
    sign = "? " if looks.asks_here(view) else "● " if looks.is_busy(view) else ""
    return f"{sign}{one_line(looks.title(view))} · covey"
