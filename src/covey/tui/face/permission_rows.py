"""A permission as rows: the command or the change, why it is asked, and the keys. Says what is not shown. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from msgspec import structs

from covey.client.view.records import AskRequest
from covey.lines.diffs import beginning, near_changes, numbered_rows, read_diff, split_rows
from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import visible
from covey.lines.request_text import reasons
from covey.lines.widths import expanded, width
from covey.lines.words import counted
from covey.lines.wrap import broken, wrap
from covey.protocol.events import PermissionRequest
from covey.tui.face.key_rows import flowed, key_spans
from covey.tui.face.room import ask_rows_left
from covey.tui.face.sizes import body_columns, is_low
from covey.tui.face.state import FaceState

NARROW_PANEL, WIDE_PANEL = 100, 180
"""The panel is no wider, however wide the screen is; the second with a change that stands beside what was before."""
SPLIT_FROM = 100
"""Columns of text from which there is room for both."""
FRAME = 4
"""Columns of a panel beside its text."""
OUTSIDE = "It runs outside the sandbox."
CONTEXT_SHOWN = (None, 2, 1, 0)
"""Lines around a change: all that the server gave or, where there is no room for them, fewer."""


def panel_width(state: FaceState, request: AskRequest | None = None) -> int:
    """Columns of the panel with its frame."""
    is_change = isinstance(request, PermissionRequest) and bool(request.params.get("diff"))
    columns = body_columns(state)
    has_room = is_change and not state.is_unified and columns - FRAME >= SPLIT_FROM
    return min(columns, WIDE_PANEL if has_room else NARROW_PANEL)


def panel_columns(state: FaceState, request: AskRequest | None = None) -> int:
    """Columns of text in it."""
    return max(panel_width(state, request) - FRAME, 10)


def as_chosen(state: FaceState, request: PermissionRequest) -> PermissionRequest:
    """With what is said of the sandbox as it is turned on or off in the panel."""
    return structs.replace(request, sandbox=OUTSIDE) if state.ask.unsandboxed else request


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked about, as far as the panel shows it."""

    rows: list[StyledLine]
    is_cut: bool = False
    """Some of what it would do is not shown, so it cannot be allowed yet."""
    is_whole: bool = True
    """Nothing is left out, lines that stay as they are included."""


def subject(state: FaceState, request: PermissionRequest) -> Subject:
    """As much as there is room for: lines that stay as they are go first, and what changes is cut last."""
    columns = panel_columns(state, request)
    below = [*reason_rows(state, request, columns), *gap(state), *answer_rows(state, request, columns, is_whole=False)]
    most = ask_rows_left(state, len(below))
    rows: list[StyledLine] = []
    for context in CONTEXT_SHOWN if request.params.get("diff") else CONTEXT_SHOWN[:1]:
        rows = _rows(request, columns, is_unified=state.is_unified, context=context)
        if len(rows) <= most:
            return Subject(rows, is_whole=context is None)
    return Subject(cut_rows(rows, most), is_cut=True, is_whole=False)


def cut_rows(rows: list[StyledLine], most: int) -> list[StyledLine]:
    """The first of them, and how many there are beside these."""
    if len(rows) <= most:
        return rows
    return [*rows[: most - 1], line(Span(f"  … {counted(len(rows) - most + 1, 'more row')}", "dim"))]


def gap(state: FaceState) -> list[StyledLine]:
    return [] if is_low(state) else [StyledLine()]


def reason_rows(state: FaceState, request: PermissionRequest, columns: int) -> list[StyledLine]:
    """Why it is asked; on a low screen only the page says so."""
    texts = reasons(as_chosen(state, request)) if not is_low(state) else ()
    return [row for text in texts for row in wrap([Span(visible(text), "dim")], columns)]


def answer_rows(state: FaceState, request: PermissionRequest, columns: int, *, is_whole: bool) -> list[StyledLine]:
    """The keys that answer it."""
    panel, keys = state.ask, state.preferences.keys
    spans = key_spans(keys, ("allow_once", "once, with network" if panel.network else "once"))
    spans += key_spans(keys, ("allow_session", "session"))
    if request.action == "write":
        spans += key_spans(keys, ("allow_edits", "all edits"))
    if request.rules:
        spans += key_spans(keys, ("allow_always", "always …"))
    if request.prefix_rules:
        spans += key_spans(keys, ("allow_prefix", "always, any words …"))
    spans += key_spans(keys, ("deny", "deny"), ("deny_with_words", "deny with words"))
    if request.confined and not is_low(state):
        spans += key_spans(keys, ("with_network", f"network: {'on' if panel.network else 'off'}"))
        spans += key_spans(keys, ("without_sandbox", f"sandbox: {'off' if panel.unsandboxed else 'on'}"))
    spans += key_spans(keys, ("whole", "whole" if is_whole else "see all of it"))
    if request.params.get("diff") and body_columns(state) - FRAME >= SPLIT_FROM:
        spans += key_spans(keys, ("diff_shape", "beside each other" if state.is_unified else "unified"))
    return flowed(spans, columns)


def _rows(request: PermissionRequest, columns: int, *, is_unified: bool, context: int | None) -> list[StyledLine]:
    command, diff = request.params.get("command"), request.params.get("diff")
    if isinstance(command, str) and command.strip():
        where = request.params.get("working_dir")
        rows = [line(Span(f"in {visible(str(where))}", "dim"))] if where else []
        for number, text in enumerate(command.split("\n")):
            sign = Span("$ " if number == 0 else "  ", "dim")
            for at, row in enumerate(broken(expanded(visible(text)), max(columns - 2, 8), "strong")):
                rows.append(line(sign if at == 0 else Span("  "), *row.spans))
        return rows
    head = wrap([Span(visible(request.description), "strong")], columns)
    if isinstance(diff, str) and diff:
        return [*head, *diff_rows(diff, columns, is_unified=is_unified, context=context)]
    return [*head, *_content(request, columns)]


def _content(request: PermissionRequest, columns: int) -> list[StyledLine]:
    """What would be written, where the server could not say what it changes."""
    params = request.params
    if isinstance(content := params.get("content"), str):
        marked = [("+", text) for text in content.split("\n")]
    elif "old_string" in params and "new_string" in params:
        marked = [("-", text) for text in str(params["old_string"]).split("\n")]
        marked += [("+", text) for text in str(params["new_string"]).split("\n")]
    else:
        return []
    rows: list[StyledLine] = []
    for sign, text in marked:
        style: Style = "added" if sign == "+" else "removed"
        for row in broken(expanded(visible(text)), max(columns - 2, 8), style):
            rows.append(line(Span(f"{sign} ", style), *row.spans))
    return rows


@lru_cache(maxsize=8)
def diff_rows(
    diff: str, columns: int, *, is_unified: bool = False, context: int | None = None
) -> tuple[StyledLine, ...]:
    """Every character of a change: beside what was there before, if there is room; what is too wide goes on below."""
    shown = _visible(diff)
    lines, _ = read_diff(shown, 0, len(shown), beginning(shown))
    if context is not None:
        lines = near_changes(lines, context)
    if columns >= SPLIT_FROM and not is_unified:
        return tuple(split_rows(lines, columns))
    rows: list[StyledLine] = []
    for row in numbered_rows(lines):
        *before, last = row.spans
        indent = sum(width(span.text) for span in before)
        first, *rest = broken(last.text, max(columns - indent, 8), last.style)
        rows.append(StyledLine((*before, *first.spans)))
        rows += [line(Span(" " * indent), *more.spans) for more in rest]
    return tuple(rows)


def _visible(text: str) -> str:
    return "\n".join(visible(each) for each in text.split("\n"))
