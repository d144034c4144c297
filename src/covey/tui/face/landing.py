"""What is shown where there is no conversation yet: where one is, and what was done here lately. Pure."""

from __future__ import annotations

from covey import __version__
from covey.client.view.records import SessionRecord
from covey.client.view.view import View
from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import one_line
from covey.lines.widths import cut
from covey.lines.wrap import wrap
from covey.protocol.messages import Session
from covey.tui.face import looks
from covey.tui.face.boxes import spread
from covey.tui.face.lists import ago
from covey.tui.face.state import FaceState

RECENT = 6
NO_MODEL = "no model yet: /login gives Covey a key"
ASKS = {
    "ask": "asks before it changes anything",
    "plan": "looks, and changes nothing",
    "accept_edits": "edits without asking",
    "sandboxed": "works in the sandbox without asking",
}


def landing_rows(state: FaceState, view: View, columns: int, height: int) -> list[StyledLine]:
    """The most important last: it is cut from above where there is little room."""
    rows = [line(Span("  covey ", "accent"), Span(__version__, "dim"))]
    if view.workspace:
        rows.append(line(Span(f"  {one_line(view.workspace.path)}", "dim")))
        model = state.new_model or looks.model(view)
        problem = view.workspace.config.model_problem
        if model or not problem:
            said = f"{model.rpartition('/')[2]} · {ASKS[state.new_mode]}" if model else NO_MODEL
            rows.append(line(Span(f"  {said}", "dim" if model else "warning")))
        for warning in filter(None, (problem, *view.workspace.warnings[:3])):
            rows += wrap([Span(one_line(warning), "warning")], columns - 4, (Span("  "),), (Span("  "),))
    elif state.is_starting:
        rows.append(line(Span(f"  {state.is_starting} …", "dim")))
    if state.unsent:
        rows += [StyledLine(), *_unsent(state, view, columns)]
        return rows[-height:]
    recent = looks.listed(view)[:RECENT]
    if recent:
        rows += [StyledLine(), line(Span("  Recent", "dim"))]
        rows += [_recent(n, entry, view, state.now, columns) for n, entry in enumerate(recent, 1)]
    # No ! is offered: a command of one's own belongs to a session, and there is none yet.
    rows += [StyledLine(), line(Span("  / commands   @ files   ? keys", "dim")), StyledLine()]
    return rows[-height:]


def _recent(number: int, entry: tuple[Session, SessionRecord], view: View, now: float, columns: int) -> StyledLine:
    known, record = entry
    mark = looks.mark(view, known, record)
    style: Style = "warning" if mark in ("?", "✗") else "accent"
    title = cut(one_line(known.title) or "untitled", max(min(columns, 90) - 24, 8))
    left = line(Span(f"   alt+{number} ", "key"), Span(f"{mark or ' '} ", style), title)
    return spread(left, line(Span(ago(now - known.updated_at), "dim"), "  "), min(columns, 90))


def _unsent(state: FaceState, view: View, columns: int) -> list[StyledLine]:
    rows = wrap(
        [Span(cut(one_line(state.unsent), columns * 4))],
        columns - 6,
        (Span("  ┃ ", "accent"),),
        (Span("  ┃ ", "accent"),),
    )
    said = "sending …" if view.link.state == "connected" else "not sent yet"
    return [*rows, line(Span("  ┃ ", "accent"), Span(said, "warning"))]
