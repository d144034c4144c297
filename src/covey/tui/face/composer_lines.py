"""The prompt as rows: wrapped, with its tokens, what is selected, and where the caret stands. Pure."""

from __future__ import annotations

from covey.client.view.view import View
from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.widths import TAB
from covey.tui.face import answering, looks
from covey.tui.face.boxes import rule
from covey.tui.face.composer import Composer
from covey.tui.face.editor import TextRow, caret_column, cells, is_token, row_of, wrapped
from covey.tui.face.notice_lines import notice_rows
from covey.tui.face.sizes import composer_top, text_columns
from covey.tui.face.state import FaceState


def composer_rows(state: FaceState, view: View, columns: int) -> tuple[list[StyledLine], tuple[int, int]]:
    """A rule, and the rows of the text below it; row and column of the caret in them."""
    composer = state.composer
    room = text_columns(columns)
    rows = wrapped(composer.text, room, composer.label)
    at = row_of(rows, composer.editor.caret)
    first, most = composer_top(state, rows)
    shown = rows[first : first + most]
    is_focused = state.focus == "composer" and state.overlay is None and not state.search
    said = notice_rows(state, columns)
    lines = said or [_rule(state, view, columns, is_focused=is_focused)]
    above = len(lines)
    for number, row in enumerate(shown):
        is_first = first + number == 0
        mark: Style = "accent" if is_focused else "dim"
        spans = _row_spans(composer, row) if composer.text else _placeholder(state, view)
        lines.append(line(Span(f" {'> ' if is_first else '  '}", mark), *spans))
    column = caret_column(composer.text, rows[at], composer.editor.caret, composer.label)
    return lines, (at - first + above, min(column + 3, columns - 1))


def _rule(state: FaceState, view: View, columns: int, *, is_focused: bool) -> StyledLine:
    composer = state.composer
    left = ""
    if composer.editing:
        left = "editing a queued prompt: ⏎ changes it, esc leaves it"
    elif composer.is_shell:
        hidden = composer.text.startswith("!!") == state.preferences.shares_shell
        left = "your own command" + (", kept from the model" if hidden else "")
    elif composer.history_at is not None:
        left = f"earlier prompt {composer.history_at + 1} of {len(state.history)}"
    mode = looks.mode(view) if view.current else state.new_mode
    right = "" if mode == "ask" else looks.MODE_WORDS[mode]
    if view.skips_permissions:
        right = "nothing is asked"
    return rule(columns, left, right, "accent" if is_focused and (left or right) else "border")


def _placeholder(state: FaceState, view: View) -> list[Span]:
    if state.focus == "ask":
        # Half an answer is written above, and the row below it says where esc leads.
        leaves = answering.behind_escape(state, view) == answering.KEEP_TYPING
        return [Span("answer above" + f", or {answering.KEEP_TYPING}: esc" * leaves, "dim")]
    if looks.is_busy(view):
        return [Span("steer it, or " * looks.can_be_steered(view) + "write what comes next", "dim")]
    return [Span("What should I do?" if not view.current else "", "dim")]


def _row_spans(composer: Composer, row: TextRow) -> list[Span]:
    """Pieces of one style each: plain, a token, selected."""
    start, end = composer.editor.selection or (0, 0)
    spans: list[Span] = []
    at = row.start
    for cluster, _ in cells(composer.text[row.start : row.end], composer.label):
        style: Style = "selected" if start <= at < end else ""
        text = cluster
        if is_token(cluster[0]):
            text, style = composer.label(cluster[0]), style or "link"
        elif cluster == "\t":
            text = " " * TAB
        if spans and spans[-1].style == style and style != "link":
            spans[-1] = Span(spans[-1].text + text, style)
        else:
            spans.append(Span(text, style))
        at += len(cluster)
    return spans
