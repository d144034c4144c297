"""How much of a screen its parts take: for the layout, and for keys that move by a page. Pure."""

from __future__ import annotations

from covey.tui.face.editor import TextRow, row_of, wrapped
from covey.tui.face.state import FaceState

TINY_COLUMNS, TINY_ROWS = 40, 10
"""Below this there is room for the conversation, asks and the prompt alone."""
LOW_ROWS = 16
AIRY_ROWS = 28
"""From so many rows on, there is room for an empty one below the first."""
LEFT_FROM, RIGHT_FROM = 160, 120
"""Columns of a screen from which it has sides."""
LEFT_COLUMNS, RIGHT_COLUMNS = 30, 32
WIDEST_BODY, MOST_SPARE = 180, 48
"""From so many columns of the conversation on, the sides grow, by so many together."""
WIDEST_ROW = 112
"""Of a list: further apart, what stands at either end of a row is not read as one."""
BORDER, RIGHT_BORDER = "│ ", " │ "
HIGHEST_SHARE = 3
"""The prompt takes a third of the screen at most, and moves below its edge."""


def is_tiny(state: FaceState) -> bool:
    return state.width < TINY_COLUMNS or state.height < TINY_ROWS


def is_low(state: FaceState) -> bool:
    """What is asked needs every row: nothing but it, and the keys that answer it, is shown."""
    return state.height < LOW_ROWS


def head_rows(state: FaceState) -> int:
    return 0 if is_tiny(state) else 2 if state.height >= AIRY_ROWS else 1


def foot_rows(state: FaceState) -> int:
    return 0 if is_tiny(state) else 1


def composer_top(state: FaceState, rows: tuple[TextRow, ...]) -> tuple[int, int]:
    """The first row of the prompt that is shown, so that the caret is among them, and how many are at most."""
    most = max(state.height // HIGHEST_SHARE, 1)
    at = row_of(rows, state.composer.editor.caret)
    return (max(0, min(at - most + 1, len(rows) - most)) if len(rows) > most else 0), most


def body_columns(state: FaceState) -> int:
    """Columns of the conversation, and of what is docked below it."""
    width, left, right = max(state.width, 10), left_columns(state), right_columns(state)
    return width - left - right - len(BORDER) * bool(left) - len(RIGHT_BORDER) * bool(right)


def left_columns(state: FaceState) -> int:
    return LEFT_COLUMNS + _spare(state) // 3 if state.width >= LEFT_FROM and not state.hides_sides else 0


def right_columns(state: FaceState) -> int:
    return RIGHT_COLUMNS + _spare(state) * 2 // 3 if state.width >= RIGHT_FROM and not state.hides_sides else 0


def _spare(state: FaceState) -> int:
    """What the sides get of a very wide screen: the conversation has no use for more, and their titles are whole."""
    needed = LEFT_COLUMNS + len(BORDER) + WIDEST_BODY + len(RIGHT_BORDER) + RIGHT_COLUMNS
    return max(min(state.width - needed, MOST_SPARE), 0)


def text_columns(columns: int) -> int:
    """Columns of the prompt's text, beside the sign before it."""
    return max(columns - 4, 4)


def prompt_rows(state: FaceState, columns: int) -> int:
    """With the rule above it."""
    rows = len(wrapped(state.composer.text, text_columns(columns), state.composer.label))
    return min(rows, max(state.height // HIGHEST_SHARE, 1)) + 1


def page_columns(columns: int) -> int:
    """Of the text of a page: a column is free at either side."""
    return max(columns - 2, 8)
