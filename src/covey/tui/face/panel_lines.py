"""What is pinned between the conversation and the prompt, and what stands at the sides of a wide screen. Pure."""

from __future__ import annotations

from typing import Any

from covey.client.view.view import View
from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import one_line
from covey.lines.widths import cut, width
from covey.lines.words import called, dollars
from covey.protocol.messages import Session
from covey.protocol.runs import Run
from covey.tui.face import looks
from covey.tui.face.boxes import fit, rule, spread
from covey.tui.face.sizes import WIDEST_ROW
from covey.tui.face.state import FaceState
from covey.tui.face.status_lines import clock, doing, spinner

QUEUE_SHOWN = 4
PEOPLE_SHOWN = 6
FOLDED_BELOW = 24
"""Rows of a screen below which the queue and the things to do are one row."""
QueueEntry = tuple[str, str, str, Style]
"""Its run, the prompt, what is to be known of it, and how that looks."""
_TODO: dict[str, tuple[str, Style]] = {"completed": ("✓", "success"), "in_progress": ("▸", "accent")}


def pinned_rows(state: FaceState, view: View, columns: int, *, has_right: bool) -> list[StyledLine]:
    """Things to do and the queue, as much of them as there is room for; what the sides show is left out."""
    todos, queue = _pinned_todos(state, view), looks.queue(view)
    if _is_folded(state):
        return _folded(todos, queue, columns)
    rows: list[StyledLine] = []
    if _has_todo_rows(state, todos, has_right):
        rows += _todo_rows(todos, columns, shows_all=state.shows_todos)
    if (queue and not has_right) or state.focus == "queue":
        rows += _queue_rows(state, view, queue, columns)
    return rows


def _pinned_todos(state: FaceState, view: View) -> Any:
    """A list of which all is done has nothing to say any more, unless it is asked for."""
    todos = looks.todos(view)
    return todos if state.shows_todos or _done(todos) < len(todos) else ()


def _is_folded(state: FaceState) -> bool:
    return state.height < FOLDED_BELOW and state.focus != "queue" and not state.shows_todos


def _has_todo_rows(state: FaceState, todos: Any, has_right: bool) -> bool:
    return bool(todos) and (not has_right or state.shows_todos)


def _folded(todos: Any, queue: list[Run], columns: int) -> list[StyledLine]:
    pieces = []
    if todos:
        pieces.append(f"todos {_done(todos)}/{len(todos)} ▸ {one_line(_next_todo(todos))}")
    if queue:
        pieces.append(f"queue {len(queue)} ▸ {one_line(queue[0].prompt)}")
    each = columns // max(len(pieces), 1) - 2
    return [line(Span(" " + "   ".join(cut(piece, each) for piece in pieces), "dim"))] if pieces else []


def _done(todos: Any) -> int:
    return sum(todo.get("status") == "completed" for todo in todos)


def _next_todo(todos: Any) -> str:
    under_way = [todo for todo in todos if todo.get("status") == "in_progress"]
    left = under_way or [todo for todo in todos if todo.get("status") != "completed"]
    return str(left[0].get("active_form") or left[0].get("content") or "")


def _todo_rows(todos: Any, columns: int, *, shows_all: bool) -> list[StyledLine]:
    head = f" todos {_done(todos)}/{len(todos)}"
    if not shows_all:
        return [
            line(Span(head, "dim"), Span(f" ▸ {cut(one_line(_next_todo(todos)), columns - width(head) - 4)}", "dim"))
        ]
    return [line(Span(head, "dim")), *(_todo_row(todo, columns) for todo in todos)]


def _todo_row(todo: dict[str, Any], columns: int) -> StyledLine:
    status = str(todo.get("status", ""))
    mark, style = _TODO.get(status, ("○", "dim"))
    text = cut(one_line(str(todo.get("content") or "")), columns - 5)
    return line(Span(f"   {mark} ", style), Span(text, "dim" if status == "completed" else ""))


def _queue_rows(state: FaceState, view: View, queue: list[Run], columns: int) -> list[StyledLine]:
    entries = _queue_entries(state, view, queue)
    room = min(columns, WIDEST_ROW)
    is_focused = state.focus == "queue"
    start = _first_queued(state, entries)
    rows = [rule(columns, "queue", str(len(entries)), "accent" if is_focused else "border")]
    for number, (run_id, prompt, about, style) in enumerate(entries[start : start + QUEUE_SHOWN], start + 1):
        right = Span(f"{about} ", style)
        text = cut(one_line(prompt), max(room - width(right.text) - 6, 8))
        chosen: Style = "selected" if is_focused and run_id == state.queued else ""
        rows.append(spread(line(Span(f" {number} ", "dim"), Span(text, chosen)), line(right), room))
    if len(entries) > start + QUEUE_SHOWN:
        rows.append(line(Span(f"   … {len(entries) - start - QUEUE_SHOWN} more", "dim")))
    return rows


def queued_at(state: FaceState, view: View, row: int, *, has_right: bool) -> str:
    """The prompt in this row of `pinned_rows`; of the row that stands for all of them, the first. '': none."""
    queue = looks.queue(view)
    if _is_folded(state):
        return queue[0].run_id if queue else ""
    todos = _pinned_todos(state, view)
    above = len(_todo_rows(todos, 80, shows_all=state.shows_todos)) if _has_todo_rows(state, todos, has_right) else 0
    entries = _queue_entries(state, view, queue)
    shown = entries[_first_queued(state, entries) :][:QUEUE_SHOWN]
    at = row - above - 1
    return shown[at][0] if 0 <= at < len(shown) else ""


def _first_queued(state: FaceState, entries: list[QueueEntry]) -> int:
    """Which of them is on top, so that the chosen one is in sight."""
    if state.focus != "queue":
        return 0
    at = next((n for n, entry in enumerate(entries) if entry[0] == state.queued), 0)
    return max(0, min(at - QUEUE_SHOWN + 1, len(entries) - QUEUE_SHOWN))


def _queue_entries(state: FaceState, view: View, queue: list[Run]) -> list[QueueEntry]:
    entries: list[QueueEntry] = []
    for run in queue:
        who, editor = called(run.posted_by, state.me), called(run.parked_by, state.me)
        edits = f"{editor} {'edit' if editor == 'you' else 'edits'} it"
        how = edits if run.parked_by else "joins the turn" if looks.joins(view, run) else "waits"
        entries.append((run.run_id, run.prompt, " · ".join(filter(None, (who, how))), "dim"))
    for run_id, sent in view.outbox.prompts.items():
        if sent.prompt.session_id == view.current and state.focus == "queue":
            said = "refused" if sent.state == "refused" else "not sent yet"
            entries.append((run_id, sent.prompt.prompt, said, "error" if sent.state == "refused" else "warning"))
    return entries


# ── the sides ──


def _sessions_fitting(people_rows: int, height: int) -> int:
    return max(height - people_rows - 3, 1)


def sessions_shown(state: FaceState, view: View, height: int, client_id: str) -> list[Session]:
    """Those at the left side, from its second row on."""
    present = min(len(looks.present(view, client_id, state.me)), PEOPLE_SHOWN)
    rows = _sessions_fitting(present + bool(present), height)
    return [known for known, _ in looks.listed(view)[:rows]]


def left_side(state: FaceState, view: View, columns: int, height: int, client_id: str) -> list[StyledLine]:
    """Sessions with their marks, and who is here."""
    present = looks.present(view, client_id, state.me)
    people = [line(Span(" here", "dim"))] if present else []
    for each in present[:PEOPLE_SHOWN]:
        name = "you" if each.is_you or each.is_yours else one_line(each.name)
        kind = {"tui": "another window" if each.is_yours else "", "run": "covey run", "web": "browser"}.get(
            each.kind, each.kind
        )
        where = "" if each.is_here else "elsewhere"
        about = " · ".join(filter(None, (kind, where)))
        people.append(spread(line("   ", Span(cut(name, columns - 6))), line(Span(f"{about} ", "dim")), columns))
    rows = [line(Span(" sessions", "dim"))]
    found = looks.listed(view)
    for known, record in found[: _sessions_fitting(len(people), height)]:
        mark = looks.mark(view, known, record)
        style: Style = "selected" if known.id == view.current else ""
        title = cut(one_line(known.title) or "untitled", columns - 5)
        kind_of: Style = "warning" if mark in ("?", "✗") else "accent"
        rows.append(line(Span(f" {mark or ' '} ", kind_of), Span(title, style)))
    if len(found) > len(rows) - 1:
        rows.append(line(Span(f"   … {len(found) - len(rows) + 1} more", "dim")))
    rows += [StyledLine()] * (height - len(rows) - len(people)) + people
    return [fit(row, columns) for row in rows[:height]]


def right_side(state: FaceState, view: View, columns: int, height: int) -> list[StyledLine]:
    """What the run does, how full the context is, things to do, the queue."""
    rows: list[StyledLine] = []
    if found := looks.active(view):
        words, style = doing(found, view, state.now)
        since = clock(state.now - (found.run.started_at or found.run.accepted_at))
        sign = spinner(found, view, state.now)
        head = line(Span(f"{sign} ", style), Span(words))
        rows += [spread(head, line(Span(since, "dim"), " "), columns), StyledLine()]
    rows += _facts(view, columns)
    if todos := looks.todos(view):
        rows += [StyledLine(), line(Span(f"todos {_done(todos)}/{len(todos)}", "dim"))]
        rows += [_narrow_todo(todo, columns) for todo in todos[:12]]
    if queue := looks.queue(view):
        rows += [StyledLine(), line(Span(f"queue {len(queue)}", "dim"))]
        rows += [
            line(Span(f"{n} ", "dim"), cut(one_line(run.prompt), columns - 3)) for n, run in enumerate(queue[:6], 1)
        ]
    return [fit(row, columns) for row in rows[:height]]


def _narrow_todo(todo: dict[str, Any], columns: int) -> StyledLine:
    status = str(todo.get("status", ""))
    mark, style = _TODO.get(status, ("○", "dim"))
    text = cut(one_line(str(todo.get("content") or "")), columns - 4)
    return line(Span(f"{mark} ", style), Span(text, "dim" if status == "completed" else ""))


def _facts(view: View, columns: int) -> list[StyledLine]:
    rows: list[StyledLine] = []
    if model := looks.model(view):
        rows.append(_fact("model", cut(model.rpartition("/")[2], columns - 10)))
    rows.append(_fact("mode", looks.MODE_WORDS[looks.mode(view)]))
    if (share := looks.context_share(view)) is not None:
        filled = min(round(share * 10), 10)
        rows.append(_fact("context", f"{'█' * filled}{'░' * (10 - filled)} {share:.0%}"))
    if (meters := looks.meters(view)) and meters.cost:
        rows.append(_fact("cost", dollars(meters.cost)))
    return rows


def _fact(name: str, value: str) -> StyledLine:
    return line(Span(f"{name:<8}", "dim"), value)
